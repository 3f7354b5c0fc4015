import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GiveUp, NotAuthentic, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import { isAttemptLimit } from '../../src/core/domain/attempt-limit.ts';
import { CREDENTIAL_HEADERS } from '../../src/core/domain/kept-headers.ts';
import type { FulfillmentType, Status } from '../../src/core/domain/lifecycle.ts';
import { CanonicalOrder, type OrderRef, StatusEvent } from '../../src/core/domain/order.ts';
import { perhapsTaken } from '../../src/core/domain/perhaps-taken.ts';
import { DropCause } from '../../src/core/domain/webhook-cause.ts';
import { WebhookAuth } from '../../src/core/domain/webhook-auth.ts';
import type { Credentials, PosContext, Provider, Webhook } from '../../src/core/domain/provider.ts';
import { boundedFetch } from '../../src/core/egress/bounded-fetch.ts';
import type { Fault, SignedWebhook, Simulator, StartSimulator, Ticket } from '../simulators/simulator.ts';
import { anyText } from '../support/any-text.ts';
import { replacePart } from '../support/replace-part.ts';
import { sampleOrder, type SampleOptions } from '../support/sample-order.ts';
import { inMemoryCredentials } from './in-memory-credentials.ts';
import { readContract } from './read-contract.ts';

export type ProviderFixtures = {
  /** The POS, held to its vendor's documentation. Its settings map the items of `sampleOrder` where that is needed. */
  start: StartSimulator;
  /** Fields of the settings and what none of them may be, one value at a time; `undefined` stands for left out. */
  wrongSettings: Readonly<Record<string, readonly unknown[]>>;
  /** The fields that no error and no log may show. */
  secretSettings: readonly string[];
  /**
   * Every native status that is documented and what it says about an order; null: nothing. A fulfillment that the POS
   * never reports it for is left out.
   */
  statuses: Readonly<Record<string, Status | null | Readonly<Partial<Record<FulfillmentType, Status | null>>>>>;
  /** What the simulator's tickets call an order, where the POS never holds the whole of our id. */
  reference?: (serviceOrderId: string) => string;
  /** What the POS is told is paid, where that is not the order's total. */
  paid?: (order: CanonicalOrder) => number | undefined;
  /**
   * What a read says of a native status, where that is not what its webhook says: status and native status of its events.
   */
  reads?: Readonly<Record<string, readonly (readonly [Status, string])[]>>;
  /** The fields that `check` proves: with another POS's value in one of them it fails, and names it. */
  provenSettings?: readonly string[];
  /** Currencies whose smallest amounts the vendor's format cannot hold: such an order is given up, never rounded. */
  unwritable?: readonly string[];
};

const WEBHOOK_URL = 'https://expediter.example.com/webhook/pos/club-1?token=t-1';
const NOW = new Date();
const UNKNOWN_STATUS = '999';
/** Between two orders, so that no POS's limit is what a test trips over. */
const PAUSE_S = 10;
/** The longest that an id of ours may be, in scripts that no header carries. */
const LONGEST_ID = 'Заказ-🎂-№7-'.padEnd(254, '注文');
const FULFILLMENTS: readonly FulfillmentType[] = ['pickup', 'delivery'];

/** What the core relies on, whatever the POS. */
export function providerContract<Settings>(provider: Provider<Settings>, fixtures: ProviderFixtures): void {
  const { start, wrongSettings, secretSettings, provenSettings = [] } = fixtures;
  const { webhookAuth } = provider;
  if (webhookAuth === undefined) throw new Error(`${provider.integration} does not say its webhookAuth`);
  const paidOf = fixtures.paid ?? ((order: CanonicalOrder) => order.money.total);
  const referenceOf = fixtures.reference ?? ((serviceOrderId: string) => serviceOrderId);
  const ends: (() => Promise<void>)[] = [];

  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  /** A POS of one location, and a process that knows it. */
  async function stage(currency = 'EUR') {
    const pos = await start({ currency });
    ends.push(() => pos.stop());
    const settings = provider.settings.parse(pos.settings);
    let now = NOW;
    const kept = inMemoryCredentials(() => now);
    let tokensAsked = 0;
    const credentials: Credentials = {
      accessToken(about) {
        tokensAsked += 1;
        return kept.accessToken(about);
      },
    };
    const contextOf = (signal = AbortSignal.timeout(10_000)): PosContext<Settings> => {
      return { settings, now, signal, credentials, fetch: boundedFetch() };
    };
    const wait = (seconds: number) => (now = new Date(now.getTime() + seconds * 1000));
    return {
      pos,
      settings,
      contextOf,
      async create(order: CanonicalOrder): Promise<OrderRef> {
        try {
          return await provider.createOrder(order, contextOf());
        } catch (error) {
          throw withRefusals(error, pos);
        } finally {
          wait(PAUSE_S);
        }
      },
      wait,
      tokensAsked: () => tokensAsked,
    };
  }
  type Stage = Awaited<ReturnType<typeof stage>>;

  const orderOf = (options: SampleOptions = {}): CanonicalOrder => CanonicalOrder.parse(sampleOrder(options));

  /** What createOrder threw, which may show neither secrets nor the member. */
  async function failureOf({ pos, contextOf }: Stage, signal?: AbortSignal): Promise<Error> {
    const error = await provider.createOrder(orderOf({ type: 'delivery' }), contextOf(signal)).then(
      (ref) => expect.unreachable(`was taken as ${JSON.stringify(ref)}`),
      (error: unknown) => error as Error,
    );
    expectNoSecrets(pos, error);
    return withRefusals(error, pos);
  }

  function expectNoSecrets(pos: Simulator, error: Error): void {
    const text = `${error.message} ${error instanceof GiveUp ? error.reason : ''}`;
    for (const name of secretSettings) expect(text).not.toContain(String(pos.settings[name]));
    expect(text).not.toMatch(/Lovelace|ada@example|3012345678|Lindenstr/i);
  }

  async function ticketOf({ pos, create }: Stage, options: SampleOptions = {}): Promise<Ticket> {
    const order = orderOf(options);
    await create(order);
    const reference = referenceOf(order.serviceOrderId);
    const ticket = pos.tickets.find((ticket) => ticket.serviceOrderId === reference);
    return ticket ?? expect.unreachable(`no ticket for ${reference}; ${refusalsOf(pos)}`);
  }

  function received({ headers, body }: SignedWebhook): Webhook {
    return { headers, body, url: WEBHOOK_URL, receivedAt: NOW, verified: false };
  }

  /** The headers that the provider says it reads. */
  function onlyRead({ headers }: Webhook): Webhook['headers'] {
    const names = [webhookAuth?.header, ...(provider.webhookHeaders ?? [])];
    return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
  }

  const statuses = Object.entries(fixtures.statuses).flatMap(([native, meaning]) =>
    FULFILLMENTS.flatMap((fulfillment) => {
      const status = meaning === null || typeof meaning === 'string' ? meaning : meaning[fulfillment];
      return status === undefined ? [] : [{ native, fulfillment, status }];
    }),
  );
  /** Where not, an operator decides about an order in doubt. */
  const canRepeat = provider.deduplicates || provider.findOrder !== undefined;
  const said = statuses.find(({ status }) => status !== null);
  if (said === undefined) throw new Error('the fixtures know no status that says anything');

  describe(`the provider contract: ${provider.integration}`, () => {
    it('has a name that fits a URL', () => {
      expect(provider.integration).toMatch(/^[a-z0-9][a-z0-9-]*$/);
    });

    it('has an attempt end before an order has waited for too long', () => {
      expect(isAttemptLimit(provider.attemptWithinS ?? 1), 'attemptWithinS: more than 0, 120 at the most').toBe(true);
    });

    it('says for how long a repeat is recognised only where it is', () => {
      if (provider.deduplicatesForS === undefined) return;
      expect(provider.deduplicates, 'deduplicates').toBe(true);
      expect(provider.deduplicatesForS, 'at least an order’s usual time, half an hour').toBeGreaterThanOrEqual(1800);
    });

    describe('settings', () => {
      it('are taken, and again what was made of them', async () => {
        const { settings } = await stage();
        expect(provider.settings.parse(settings)).toEqual(settings);
      });

      it.each(Object.entries({ nothing: undefined, null: null, number: 1, text: 'junk', list: [], 'no field': {} }))(
        'are refused as %s',
        (_name, junk) => {
          expect(provider.settings.safeParse(junk).success).toBe(false);
        },
      );

      it('with an unknown field are refused: mistyped, a "secret" would leave webhooks unverified', async () => {
        const { pos } = await stage();
        expect(provider.settings.safeParse({ ...pos.settings, unheardOf: true }).success).toBe(false);
      });

      it.each(Object.entries(wrongSettings).flatMap(([field, values]) => values.map((value) => ({ field, value }))))(
        'name the field that is wrong: $field $value',
        async ({ field, value }) => {
          const { pos } = await stage();
          const result = provider.settings.safeParse({ ...pos.settings, [field]: value });
          expect(result.error?.issues.map((issue) => String(issue.path[0]))).toContain(field);
        },
      );

      it('can be described', () => {
        expect(z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' })).toMatchObject({
          type: 'object',
        });
      });
    });

    describe('webhookAuth', () => {
      it('is of a form that operators are told', () => {
        expect(WebhookAuth.parse(webhookAuth)).toEqual(webhookAuth);
      });

      it('names fields that the settings have', () => {
        const { settings, previousSetting, urlSetting } = webhookAuth;
        const named = [...settings, previousSetting, urlSetting].filter((name) => name !== undefined);
        const schema = z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' });
        expect(Object.keys(schema.properties ?? {})).toEqual(expect.arrayContaining(named));
      });

      it('is none of webhookHeaders, which are stored in clear: their names are in lower case, none of credentials', () => {
        const { webhookHeaders = [] } = provider;
        for (const name of webhookHeaders) expect(name).toMatch(/^[a-z0-9-]+$/);
        expect(webhookHeaders.filter((name) => [webhookAuth.header, ...CREDENTIAL_HEADERS].includes(name))).toEqual([]);
      });

      it('counts on connect only where there is one', () => {
        if (webhookAuth.byConnect === true) expect(provider.connect).toBeDefined();
      });

      it('says that it is optional where nothing is verified without those settings', async () => {
        const at = await stage();
        const ticket = await ticketOf(at, { type: said.fulfillment });
        const { headers, body } = at.pos.sign(WEBHOOK_URL, ticket, said.native);
        const { [webhookAuth.header]: _left, ...unsigned } = headers;
        const { settings, previousSetting = '', optional = false } = webhookAuth;
        const kept = Object.entries(at.pos.settings).filter(([name]) => ![...settings, previousSetting].includes(name));
        const without = provider.settings.safeParse(Object.fromEntries(kept));
        const passes = (): unknown =>
          provider.translateWebhook(received({ headers: unsigned, body }), without.data as Settings);
        if (optional) expect(passes()).toHaveLength(1);
        else if (without.success) expect(passes).toThrow(NotAuthentic);
      });
    });

    describe('createOrder', () => {
      it.each(FULFILLMENTS)('puts a whole %s order into the kitchen', async (type) => {
        const at = await stage();
        const order = orderOf({ type });
        const ref = await at.create(order);
        expect(at.pos.refusals).toEqual([]);
        expect(at.pos.tickets).toHaveLength(1);
        const ticket = at.pos.tickets[0] as Ticket;
        expect(ticket).toMatchObject({
          serviceOrderId: referenceOf(order.serviceOrderId),
          fulfillment: type,
        });
        expect([undefined, ticket.providerOrderId]).toContain(ref.providerOrderId);
        expect(ticket.lines.map((line) => line.quantity)).toEqual(order.items.map((item) => item.quantity));
        expect(ticket.lines[0]?.modifiers.map((modifier) => modifier.quantity)).toEqual([1, 1]);
        expect(ticket.lines[0]?.note ?? ticket.note).toContain('well done');
        expect(ticket.note).toContain('terrace');
        if (ticket.lines[2]?.ageRestricted !== true) {
          expect(ticket.note, 'who hands it over must see it first').toMatch(/^AGE CHECK: Pale Ale/);
        }
      });

      it.each(['EUR', 'JPY', 'KWD'])('says exactly what is paid in %s', async (currency) => {
        const at = await stage(currency);
        const order = orderOf({ type: 'delivery' });
        order.money.currency = currency;
        if (fixtures.unwritable?.includes(currency)) {
          await expect(at.create(order)).rejects.toBeInstanceOf(GiveUp);
          expect(at.pos.tickets).toEqual([]);
          return;
        }
        await at.create(order);
        expect(at.pos.refusals).toEqual([]);
        expect(at.pos.tickets.map((ticket) => ticket.paid)).toEqual([paidOf(order)]);
      });

      it('carries every script and symbol', async () => {
        const at = await stage();
        const [burger, ...others] = sampleOrder().items;
        const ticket = await ticketOf(at, {
          member: { id: 'm-1', name: '山田 👩‍🍳 Zoë', email: 'zoe@example.com', phone: '+493012345678' },
          items: [{ ...(burger as CanonicalOrder['items'][number]), notes: 'ohne 🧅, مع الجبن' }, ...others],
          notes: 'Zum Geburtstag 🎂: "Zoë\\n"',
        });
        expect(at.pos.refusals).toEqual([]);
        expect(ticket.note).toContain('Zum Geburtstag 🎂: "Zoë\\n"');
        expect(ticket.lines[0]?.note ?? ticket.note).toContain('ohne 🧅, مع الجبن');
      });

      it('cuts what is too long, and says so', async () => {
        const at = await stage();
        const ticket = await ticketOf(at, { notes: '🎂'.repeat(20_000) });
        expect(at.pos.refusals).toEqual([]);
        expect(ticket.note.isWellFormed()).toBe(true);
        if (ticket.note.length < 40_000) expect(ticket.note).toContain('[…]');
      });

      it('takes an order of 300 items', async () => {
        const at = await stage();
        const { items } = sampleOrder();
        const many = Array.from({ length: 100 }, () => items).flat();
        const ticket = await ticketOf(at, { items: many });
        expect(ticket.lines.reduce((sum, line) => sum + line.quantity, 0)).toBe(400);
      });

      it('lets the simulator count its requests and ask behave which order each is for', async () => {
        const at = await stage();
        const heard: string[] = [];
        at.pos.behave = ({ serviceOrderId }) => void heard.push(serviceOrderId);
        for (const nth of [1, 2]) {
          await at.create(orderOf());
          expect(at.pos.requests, 'Simulator.requests').toBeGreaterThanOrEqual(nth);
          expect(new Set(heard).size, 'as many orders as Simulator.behave was asked about').toBe(nth);
        }
      });

      it.skipIf(!canRepeat)('twice makes one ticket', async () => {
        const at = await stage();
        const order = orderOf();
        const first = await at.create(order);
        const second = await again(at, order);
        expect(at.pos.tickets).toHaveLength(1);
        expect(second).toEqual(first);
      });

      it('takes the longest id in any script, all of it, or gives the order up unsent', async () => {
        const at = await stage();
        const [order, other] = ['a', 'b'].map((end) =>
          orderOf({ serviceOrderId: LONGEST_ID + end, type: said.fulfillment }),
        ) as [CanonicalOrder, CanonicalOrder];
        const first = await at.create(order).catch((error: unknown) => error as Error);
        if (first instanceof Error) {
          expect(first).toBeInstanceOf(GiveUp);
          expect(at.pos.requests, 'sent all the same').toBe(0);
          expect(() => provider.checkOrder?.(order), 'checkOrder says so').toThrow(GiveUp);
          return;
        }
        expect(at.pos.tickets).toHaveLength(1);
        if (canRepeat) expect(await again(at, order)).toEqual(first);
        expect(at.pos.tickets).toHaveLength(1);
        const webhook = received(at.pos.sign(WEBHOOK_URL, at.pos.tickets[0] as Ticket, said.native));
        const events = provider.translateWebhook(webhook, at.settings);
        expect(events).toHaveLength(1);
        for (const event of events) {
          expect([undefined, order.serviceOrderId], "our id, or the POS's alone").toContain(event.serviceOrderId);
          const name = event.serviceOrderId ?? event.providerOrderId;
          expect([order.serviceOrderId, first.providerOrderId], 'a name that the core knows').toContain(name);
        }
        await at.create(other);
        expect(at.pos.tickets, 'ids that differ in their last character are two orders').toHaveLength(2);
        expect(at.pos.refusals).toEqual([]);
      });

      it('says that the order may be there when the answer is lost, and then finds it so', async () => {
        const at = await stage();
        const order = orderOf();
        at.pos.behave = once('drop-answer');
        await expect(at.create(order)).rejects.toMatchObject({ name: 'TryAgain', sent: true });
        expect(at.pos.tickets).toHaveLength(1);
        if (!canRepeat) return;
        const ref = await again(at, order);
        expect(at.pos.tickets).toHaveLength(1);
        expect([undefined, at.pos.tickets[0]?.providerOrderId]).toContain(ref?.providerOrderId);
      });

      it('says that the order may be there when the POS hangs', async () => {
        const at = await stage();
        await at.create(orderOf()); // tokens and the like are not what hangs
        at.pos.behave = () => 'hang';
        expect(await failureOf(at, AbortSignal.timeout(150))).toMatchObject({ name: 'TryAgain', sent: true });
      });

      it('sends nothing once the time is up', async () => {
        const at = await stage();
        expect(await failureOf(at, AbortSignal.abort())).toMatchObject({ name: 'TryAgain', sent: false });
        expect(at.pos.requests).toBe(0);
      });

      it('waits as Retry-After says on 429, and the whole location with it', async () => {
        const at = await stage();
        at.pos.behave = () => ({ status: 429, headers: { 'retry-after': '70' } });
        expect(await failureOf(at)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
        at.pos.behave = undefined;
        const { requests } = at.pos;
        at.wait(30);
        expect(await failureOf(at)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 40_000 });
        expect(at.pos.requests).toBe(requests);
        at.wait(40);
        await at.create(orderOf());
        expect(at.pos.tickets).toHaveLength(1);
      });

      it.each([
        // They prove nothing, as there are POS systems that take the order all the same. Where a repeat is harmless they
        // need not.
        [500, !provider.deduplicates],
        [503, !provider.deduplicates],
        [502, true],
        [504, true],
      ])('tries again after %i, perhaps taken: %s', async (status, taken) => {
        const at = await stage();
        at.pos.behave = () => ({ status });
        const error = await failureOf(at);
        expect(error).toBeInstanceOf(TryAgain);
        expect(perhapsTaken(error, provider), 'what the core makes of it').toBe(taken);
        expect(error, 'the core judges by the status').toMatchObject({ httpStatus: status });
      });

      it.each([401, 403])('leaves %i to us', async (status) => {
        const at = await stage();
        at.pos.behave = () => ({ status });
        expect(await failureOf(at)).toBeInstanceOf(NeedsOperator);
      });

      it.each([
        ['nothing', ''],
        ['what is not JSON', '<html>'],
        ['what is not documented', { oops: [1, { deep: 'secret' }] }],
      ])('does not repeat what was refused with 400 and %s', async (_name, body) => {
        const at = await stage();
        at.pos.behave = () => ({ status: 400, body });
        const error = await failureOf(at);
        expect(error instanceof GiveUp || error instanceof NeedsOperator, String(error)).toBe(true);
        if (error instanceof GiveUp) expect(error.reason).toMatch(/^.{1,200}$/s);
      });

      it('gets itself a fresh token when the old one has expired', async (context) => {
        const at = await stage();
        await at.create(orderOf());
        const grantsNone = at.pos.expireTokens === undefined;
        if (grantsNone) {
          expect(at.tokensAsked(), 'tokens were asked for, but the simulator lacks expireTokens and grants').toBe(0);
        }
        context.skip(grantsNone, 'this POS grants no tokens');
        expect(at.pos.grants).toBe(1);
        await at.create(orderOf());
        expect(at.pos.grants, 'tokens are kept').toBe(1);
        at.pos.expireTokens?.();
        await at.create(orderOf());
        expect(at.pos.grants).toBe(2);
        expect(at.pos.tickets).toHaveLength(3);
      });
    });

    it.skipIf(provider.grantSeed === undefined)('renews the grant that operators are shown', async () => {
      const at = await stage();
      const seeds: unknown[] = [];
      const credentials: Credentials = {
        async accessToken({ seed, obtain }) {
          seeds.push(seed);
          return (await obtain(undefined, AbortSignal.timeout(5_000))).accessToken;
        },
      };
      await provider.renewConnection?.({ ...at.contextOf(), credentials });
      expect(seeds).toEqual([provider.grantSeed?.(at.settings)]);
    });

    it.skipIf(provider.check !== undefined)('promises no check that it lacks', () => {
      expect(provenSettings, 'provenSettings').toEqual([]);
    });

    if (provider.check !== undefined) {
      describe('check', () => {
        it('passes with right settings, makes no ticket, and leaves the next order its token', async () => {
          const at = await stage();
          await provider.connect?.({ ...at.contextOf(), webhookUrl: WEBHOOK_URL, locations: 1 });
          await check(at);
          await check(at);
          expect(at.pos.requests, 'requests for a ticket').toBe(0);
          expect(at.pos.refusals).toEqual([]);
          await at.create(orderOf());
          expect(at.pos.tickets).toHaveLength(1);
        });

        it('proves a setting at least', () => {
          expect(provenSettings, 'provenSettings').not.toEqual([]);
        });

        it.each(provenSettings)('with a wrong %s leaves it to us, names it and shows no secret', async (field) => {
          const [at, elsewhere] = [await stage(), await stage()];
          const wrong = elsewhere.pos.settings[field];
          expect(wrong, "another POS's is another").not.toEqual(at.pos.settings[field]);
          const settings = provider.settings.parse({ ...at.pos.settings, [field]: wrong });
          const error = await checkFailure(at, { ...at.contextOf(), settings });
          expect(error).toBeInstanceOf(NeedsOperator);
          expect(error.message).toContain(field);
          expectNoSecrets(elsewhere.pos, error);
        });

        it('tries again when the POS is down', async () => {
          const at = await stage();
          await at.pos.stop();
          expect(await checkFailure(at)).toBeInstanceOf(TryAgain);
        });

        async function check({ contextOf }: Stage): Promise<void> {
          await provider.check?.(contextOf());
        }

        async function checkFailure(at: Stage, context = at.contextOf()): Promise<Error> {
          const error = await provider.check?.(context).then(
            () => expect.unreachable('passed'),
            (error: unknown) => error as Error,
          );
          expectNoSecrets(at.pos, error as Error);
          return error as Error;
        }
      });
    }

    if (provider.findOrder !== undefined) {
      it('findOrder finds nothing where there is nothing', async () => {
        const at = await stage();
        expect(await provider.findOrder?.('no-such-order', at.contextOf())).toBeUndefined();
      });
    }

    if (provider.readStatus !== undefined) {
      const { reads = {} } = fixtures;
      const webhookOf = (pos: Simulator, ticket: Ticket, native: string) =>
        received(pos.sign(WEBHOOK_URL, ticket, native));
      readContract(provider, { stage, orderOf, webhookOf, expectNoSecrets, statuses, reads });
    }

    describe('translateWebhook', () => {
      it.each(statuses)('reads $native of a $fulfillment order as $status', async ({ native, fulfillment, status }) => {
        const at = await stage();
        const order = orderOf({ type: fulfillment });
        const ticket = await ticketOf(at, order);
        const webhook = received(at.pos.sign(WEBHOOK_URL, ticket, native));
        const bytes = Buffer.from(webhook.body);
        const events = provider.translateWebhook(webhook, at.settings);
        expect(webhook.body.equals(bytes), 'the bytes are kept for replay').toBe(true);
        expect(events.map((event) => event.status)).toEqual(status === null ? [] : [status]);
        for (const event of events) {
          expect(StatusEvent.parse(event)).toEqual(event);
          expect(event.nativeStatus).not.toBe('');
          expect([undefined, order.serviceOrderId]).toContain(event.serviceOrderId);
          expect([undefined, ticket.providerOrderId]).toContain(event.providerOrderId);
        }
      });

      it('finds nothing in a status that nobody knows', async () => {
        const at = await stage();
        const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), UNKNOWN_STATUS));
        expect(provider.translateWebhook(webhook, at.settings)).toEqual([]);
      });

      it("drops a webhook signed with another location's secret", async () => {
        const [at, elsewhere] = [await stage(), await stage()];
        const forged = elsewhere.pos.sign(WEBHOOK_URL, await ticketOf(elsewhere), said.native);
        const error = errorOf(() => provider.translateWebhook(received(forged), at.settings));
        expect(error).toBeInstanceOf(NotAuthentic);
        expectNoSecrets(at.pos, error);
      });

      it('drops a webhook whose signature is missing, empty, short or long', async () => {
        const at = await stage();
        const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
        const right = webhook.headers[webhookAuth.header] ?? expect.unreachable('is not signed');
        for (const value of [undefined, '', right.slice(0, -1), `${right}A`, `${right}é`]) {
          const { [webhookAuth.header]: _left, ...headers } = webhook.headers;
          if (value !== undefined) headers[webhookAuth.header] = value;
          expect(() => provider.translateWebhook({ ...webhook, headers }, at.settings)).toThrow(NotAuthentic);
        }
      });

      if (webhookAuth.kind === 'signature') {
        it('drops a webhook of which any byte was changed', async () => {
          const at = await stage();
          const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
          for (let nth = 0; nth < webhook.body.length; nth += 1) {
            const body = Buffer.from(webhook.body);
            body[nth] = (body[nth] ?? 0) ^ 1;
            expect(() => provider.translateWebhook({ ...webhook, body }, at.settings)).toThrow(NotAuthentic);
          }
        });

        it('verifies before it reads', async () => {
          const at = await stage();
          const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
          const body = Buffer.from('{ no JSON at all');
          expect(() => provider.translateWebhook({ ...webhook, body }, at.settings)).toThrow(NotAuthentic);
        });
      }

      it('asks no signature of what was verified before, and reads no header but those that are kept', async () => {
        const at = await stage();
        const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at, { type: said.fulfillment }), said.native));
        const before = provider.translateWebhook(webhook, at.settings);
        expect(before).toHaveLength(1);
        const { [webhookAuth.header]: _left, ...headers } = onlyRead(webhook);
        expect(provider.translateWebhook({ ...webhook, headers, verified: true }, at.settings)).toEqual(before);
      });

      it('reads no header but webhookAuth.header and webhookHeaders', async () => {
        const at = await stage();
        const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at, { type: said.fulfillment }), said.native));
        const before = provider.translateWebhook(webhook, at.settings);
        const headers = onlyRead(webhook);
        expect(provider.translateWebhook({ ...webhook, headers }, at.settings)).toEqual(before);
      });

      describe('answers with events, Poison or NotAuthentic', () => {
        it('to any bytes', async () => {
          const holds = await holder();
          fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), holds), { numRuns: 300 });
        });

        it('to any JSON', async () => {
          const holds = await holder();
          fc.assert(
            fc.property(
              fc.json().map((text) => Buffer.from(text)),
              holds,
            ),
            { numRuns: 300 },
          );
        });

        it('to its own payloads with a part replaced by anything', async (context) => {
          const at = await stage();
          const ticket = await ticketOf(at);
          const bodies = Object.keys(fixtures.statuses).map((native) => at.pos.sign(WEBHOOK_URL, ticket, native).body);
          const originals = bodies.flatMap(jsonOf);
          context.skip(originals.length === 0, 'this POS sends no JSON');
          const holds = await holder();
          const replaced = fc
            .tuple(fc.constantFrom(...originals), fc.nat(), fc.oneof(fc.jsonValue(), anyText()))
            .map(([original, at, part]) => Buffer.from(JSON.stringify(replacePart(original, at, part))));
          fc.assert(fc.property(replaced, holds), { numRuns: 1000 });
        });

        it('to JSON of any depth and a key named __proto__', async () => {
          const holds = await holder();
          const deep = '['.repeat(100_000) + ']'.repeat(100_000);
          for (const text of [
            deep,
            `{"order":${deep}}`,
            '{"__proto__":{"order":{}}}',
            '{"constructor":{"prototype":1}}',
          ]) {
            holds(Buffer.from(text));
          }
          expect(({} as Record<string, unknown>)['order']).toBeUndefined();
        });

        async function holder(): Promise<(bytes: Uint8Array) => void> {
          const at = await stage();
          const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said?.native ?? ''));
          return (bytes) => {
            for (const verified of [true, false]) {
              try {
                const events = provider.translateWebhook(
                  { ...webhook, body: Buffer.from(bytes), verified },
                  at.settings,
                );
                for (const event of events) StatusEvent.parse(event);
              } catch (error) {
                if (!(error instanceof Poison || error instanceof NotAuthentic)) throw error;
                if (error.cause !== undefined) DropCause.parse(error.cause);
              }
            }
          };
        }
      });
    });

    /** What the core does next: repeats where the POS deduplicates, looks it up where it does not. */
    async function again(at: Stage, order: CanonicalOrder) {
      if (provider.deduplicates) return at.create(order);
      if (provider.findOrder === undefined) return undefined;
      return provider.findOrder(order.serviceOrderId, at.contextOf());
    }
  });
}

function refusalsOf({ refusals }: Simulator): string {
  return `the simulator's refusals: ${refusals.join('; ') || 'none'}`;
}

/** The same error, which says beside its stack what the simulator had against the request. */
function withRefusals(error: unknown, pos: Simulator): Error {
  if (!(error instanceof Error)) return new Error(`no Error was thrown but ${typeof error}; ${refusalsOf(pos)}`);
  error.cause ??= refusalsOf(pos);
  return error;
}

function once(fault: Fault): () => Fault | undefined {
  let left: Fault | undefined = fault;
  return () => {
    const now = left;
    left = undefined;
    return now;
  };
}

/** What it throws; it must throw something. */
export function errorOf(throws: () => unknown): Error {
  try {
    throws();
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable('nothing was thrown');
}

/** A vendor that sends forms has nothing to replace a part of. */
function jsonOf(body: Buffer): unknown[] {
  try {
    return [JSON.parse(body.toString())];
  } catch {
    return [];
  }
}
