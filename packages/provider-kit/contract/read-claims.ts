import fc from 'fast-check';
import { expect } from 'vitest';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { type CanonicalOrder, type OrderRef, StatusEvent } from '../../../src/core/domain/order.ts';
import type { Fault, Ticket } from '../../../world/pos/simulator.ts';
import { anyText } from '../../../world/inputs/any-text.ts';
import { replacePart } from '../../../world/inputs/replace-part.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import type { SampleOptions } from '../../../world/platform/sample-order.ts';
import { rejectionOf } from './error-of.ts';
import type { Stage } from './open-stage.ts';
import { orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

/** Wrong answers of a POS, and the error that each must throw. */
const HOSTILE: readonly [string, Fault, typeof TryAgain | typeof NeedsOperator][] = [
  ['an empty body', { status: 200, body: '' }, TryAgain],
  ['HTML', { status: 200, body: '<html>' }, TryAgain],
  ['a list', { status: 200, body: [] }, TryAgain],
  ['null', { status: 200, body: 'null' }, TryAgain],
  ['undocumented JSON', { status: 200, body: { oops: [1, { deep: 'secret' }] } }, TryAgain],
  ['brackets without end', { status: 200, body: '['.repeat(500_000) }, TryAgain],
  ['2 MB', { status: 200, body: { order: 'x'.repeat(2_000_000) } }, TryAgain],
  ['a cut connection', 'drop-answer', TryAgain],
  ['500', { status: 500 }, TryAgain],
  ['503', { status: 503 }, TryAgain],
  ['401', { status: 401 }, NeedsOperator],
  ['403', { status: 403 }, NeedsOperator],
  ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, NeedsOperator],
  ['418', { status: 418, body: { message: 'Ada Lovelace' } }, NeedsOperator],
];

/** Claims about `readStatus`. */
export function readClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  answerClaims(theatre, claim);
  failureClaims(theatre, claim);
}

/** How the claims read. */
function reading<Settings>({ provider, fixtures, expectNoSecrets, statuses }: Theatre<Settings>) {
  const { reads = {} } = fixtures;
  const [said] = statuses.filter(({ native, status }) => status !== null && reads[native] === undefined);
  if (said === undefined) throw new Error('the fixtures need a status that readStatus also reports');
  const { native: NATIVE, fulfillment: TYPE } = said;

  /** A ticket with this status at the POS. */
  async function moved(at: Stage<Settings>, native: string, options: SampleOptions = {}) {
    const order = orderOf(options);
    const before = at.pos.tickets.length;
    await at.create(order);
    const ticket = at.pos.tickets[before] ?? expect.unreachable('there is no ticket');
    become(at, ticket, native);
    return { order, ticket, ref: { providerOrderId: ticket.providerOrderId } };
  }

  function become({ pos }: Stage<Settings>, ticket: Ticket, native: string): void {
    if (pos.become === undefined) expect.unreachable('the simulator lacks become, reads and misread');
    pos.become(ticket, native);
  }

  async function read(
    { contextOf }: Stage<Settings>,
    ref: OrderRef,
    order: CanonicalOrder,
    context = contextOf(),
  ): Promise<readonly StatusEvent[]> {
    return (await provider.readStatus?.(ref, order, context)) ?? [];
  }

  async function readFailure(
    at: Stage<Settings>,
    { ref, order }: { ref: OrderRef; order: CanonicalOrder },
    context = at.contextOf(),
  ): Promise<Error> {
    const error = await rejectionOf(read(at, ref, order, context));
    expectNoSecrets(at.pos, error);
    return error;
  }

  /** The POS's own answer about an order, as a fault. */
  async function pollAndApply(
    at: Stage<Settings>,
    { ref, order }: { ref: OrderRef; order: CanonicalOrder },
  ): Promise<() => { status: number; body: unknown }> {
    const context = at.contextOf();
    let body: unknown;
    const listen: typeof fetch = async (...request) => {
      const response = await context.fetch(...request);
      body = await response.clone().json();
      return response;
    };
    await read(at, ref, order, { ...context, fetch: listen });
    return () => ({ status: 200, body });
  }

  return { reads, NATIVE, TYPE, moved, read, readFailure, pollAndApply };
}

/** What an answer says. */
function answerClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, stage, received, statuses } = theatre;
  const { reads, NATIVE, TYPE, moved, read, readFailure, pollAndApply } = reading(theatre);

  for (const { native, fulfillment } of statuses)
    claim(`reads the status ${native} of a ${fulfillment} order like its webhook`, async () => {
      const at = await stage();
      const { ticket, order, ref } = await moved(at, native, { type: fulfillment });
      const told = provider
        .translateWebhook(received(at.pos.sign(WEBHOOK_URL, ticket, native)), at.settings)
        .map(({ status, nativeStatus }) => [status, nativeStatus] as const);
      const events = await read(at, ref, order);
      expect(events.map(({ status, nativeStatus }) => [status, nativeStatus])).toEqual(reads[native] ?? told);
      for (const event of events) {
        expect(StatusEvent.parse(event)).toEqual(event);
        expect(event.providerOrderId, 'the POS’s id is known').toBe(ticket.providerOrderId);
        expect([undefined, order.serviceOrderId]).toContain(event.serviceOrderId);
        if (event.occurredAt !== undefined) {
          expect(Math.abs(Date.parse(event.occurredAt) - Date.now())).toBeLessThan(60_000);
        }
      }
      expect(JSON.stringify(events), 'nothing of the member').not.toMatch(/Lovelace|ada@example|3012345678|Lindenstr/i);
      expect(at.pos.refusals).toEqual([]);
    });

  claim('makes no ticket, and returns the same events when repeated', async () => {
    const at = await stage();
    const { ref, order } = await moved(at, NATIVE, { type: TYPE });
    const { requests, reads: before = 0 } = at.pos;
    const once = await read(at, ref, order);
    expect(once).toHaveLength(1);
    expect(await read(at, ref, order)).toEqual(once);
    expect(at.pos.reads, 'Simulator.reads').toBe(before + 2);
    expect(at.pos.requests, 'requests for a ticket').toBe(requests);
    expect(at.pos.tickets).toHaveLength(1);
  });

  for (const ref of [{ providerOrderId: 'NOSUCH1' }, {}]) {
    claim(`returns no events for an unknown order: ${JSON.stringify(ref)}`, async () => {
      const at = await stage();
      await moved(at, NATIVE, { type: TYPE });
      expect(await read(at, ref, orderOf())).toEqual([]);
    });
  }

  claim('without the POS’s id, returns the same events or none', async () => {
    const at = await stage();
    await moved(at, NATIVE, { type: TYPE });
    const { ref, order } = await moved(at, NATIVE, { type: TYPE });
    const events = await read(at, {}, order);
    if (events.length > 0) expect(events).toEqual(await read(at, ref, order));
  });

  claim('throws TryAgain if the POS answers about another order', async () => {
    const at = await stage();
    const [one, other] = [await moved(at, NATIVE, { type: TYPE }), await moved(at, NATIVE, { type: TYPE })];
    at.pos.misread = await pollAndApply(at, other);
    expect(await readFailure(at, one)).toBeInstanceOf(TryAgain);
    expect(await read(at, other.ref, other.order)).toHaveLength(1);
  });
}

/** Answers that cannot be believed, or do not come. */
function failureClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { stage } = theatre;
  const { NATIVE, TYPE, moved, read, readFailure, pollAndApply } = reading(theatre);

  for (const [name, fault, error] of HOSTILE)
    claim(`throws ${error.name} if the answer is ${name}`, async () => {
      const at = await stage();
      const about = await moved(at, NATIVE, { type: TYPE });
      at.pos.misread = () => fault;
      expect(await readFailure(at, about)).toBeInstanceOf(error);
      at.pos.misread = undefined;
      at.wait(120);
      const again = (): Promise<unknown> => read(at, about.ref, about.order);
      // After an oversized answer the connection is closed. A request just sent on it gets no answer.
      const unanswered = (error: unknown): Promise<unknown> => {
        if (
          ['2 MB', 'brackets without end'].includes(name) &&
          error instanceof TryAgain &&
          error.httpStatus === undefined
        )
          return again();
        throw error;
      };
      expect(await again().catch(unanswered)).toHaveLength(1);
    });

  claim(
    'after a 429, throws TryAgain until Retry-After is over, and so does createOrder for the location',
    async () => {
      const at = await stage();
      const about = await moved(at, NATIVE, { type: TYPE });
      at.pos.misread = () => ({ status: 429, headers: { 'retry-after': '70' } });
      expect(await readFailure(at, about)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
      const { requests, reads: before } = at.pos;
      at.wait(30);
      expect(await readFailure(at, about)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 40_000 });
      await expect(at.create(orderOf())).rejects.toMatchObject({ name: 'TryAgain', sent: false });
      expect([at.pos.requests, at.pos.reads]).toEqual([requests, before]);
    },
  );

  claim('throws TryAgain at the time limit, and sends nothing after it', async () => {
    const at = await stage();
    const about = await moved(at, NATIVE, { type: TYPE });
    expect(await readFailure(at, about, at.contextOf(AbortSignal.abort()))).toBeInstanceOf(TryAgain);
    expect(at.pos.reads).toBe(0);
    at.pos.misread = () => 'hang';
    expect(await readFailure(at, about, at.contextOf(AbortSignal.timeout(150)))).toBeInstanceOf(TryAgain);
  });

  claim('obtains a fresh token when the old one has expired', async () => {
    const at = await stage();
    const { ref, order } = await moved(at, NATIVE, { type: TYPE });
    at.pos.expireTokens?.();
    expect(await read(at, ref, order)).toHaveLength(1);
  });

  claim('returns events or throws TryAgain for its own answers with a random part replaced', async () => {
    const at = await stage();
    const about = await moved(at, NATIVE, { type: TYPE });
    const { body: original } = (await pollAndApply(at, about))();
    const replaced = fc.tuple(fc.nat(), fc.oneof(fc.jsonValue(), anyText()));
    await fc.assert(
      fc.asyncProperty(replaced, async ([nth, part]) => {
        const answer: typeof fetch = async () => Response.json(replacePart(original, nth, part));
        at.wait(1);
        const context = { ...at.contextOf(), fetch: answer };
        const events = await read(at, about.ref, about.order, context).catch((error: unknown) => {
          if (!(error instanceof TryAgain)) throw error;
          return [];
        });
        for (const event of events) {
          StatusEvent.parse(event);
          expect(event.providerOrderId ?? about.ticket.providerOrderId).toBe(about.ticket.providerOrderId);
          expect(event.serviceOrderId ?? about.order.serviceOrderId).toBe(about.order.serviceOrderId);
        }
      }),
      { seed: SEED, numRuns: 200 },
    );
  });
}
