import fc from 'fast-check';
import { expect } from 'vitest';
import { NotAuthentic, Poison } from '../../../src/core/domain/errors.ts';
import { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Webhook } from '../../../src/core/domain/provider.ts';
import { DropCause } from '../../../src/core/domain/webhook-cause.ts';
import { anyText } from '../../../world/inputs/any-text.ts';
import { partAt, partsOf, withPart } from '../../../world/inputs/each-part.ts';
import { replacePart } from '../../../world/inputs/replace-part.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { errorOf } from './error-of.ts';
import { orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

const UNKNOWN_STATUS = '999';
/** Values that nobody can read in place of a value: of a kind that no field has, and for a time also what is no time. */
export const unreadable = (was: unknown): readonly unknown[] => [
  [],
  {},
  [[]],
  ...(typeof was === 'string' && /^\d{4}-\d\d-\d\dT/.test(was) ? ['tomorrow', '2026-01-31', 120.5, -1] : []),
];

/** Claims about `translateWebhook`. */
export function webhookClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  statusClaims(theatre, claim);
  senderClaims(theatre, claim);
  anyBodyClaims(theatre, claim);
}

/** What a status becomes. */
function statusClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, statuses, stage, ticketOf, received } = theatre;

  for (const { native, fulfillment, status } of statuses) {
    claim(`reads the status ${native} of a ${fulfillment} order as ${status ?? 'no event'}`, async () => {
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
  }

  claim('returns no event for an unknown status', async () => {
    const at = await stage();
    const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), UNKNOWN_STATUS));
    expect(provider.translateWebhook(webhook, at.settings)).toEqual([]);
  });
}

/** Whose webhook it is, and which headers show it. */
function senderClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, webhookAuth, statuses, said, stage, ticketOf, received, expectNoSecrets, settingsWith } = theatre;

  claim("throws NotAuthentic for a webhook signed with another location's secret", async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    const forged = elsewhere.pos.sign(WEBHOOK_URL, await ticketOf(elsewhere), said.native);
    const error = errorOf(() => provider.translateWebhook(received(forged), at.settings));
    expect(error).toBeInstanceOf(NotAuthentic);
    expectNoSecrets(at.pos, error);
  });

  claim('throws NotAuthentic if the signature is missing, empty, too short or too long', async () => {
    const at = await stage();
    const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
    const right = webhook.headers[webhookAuth.header] ?? expect.unreachable('is not signed');
    for (const value of [undefined, '', right.slice(0, -1), `${right}A`, `${right}é`]) {
      const { [webhookAuth.header]: _left, ...headers } = webhook.headers;
      if (value !== undefined) headers[webhookAuth.header] = value;
      expect(() => provider.translateWebhook({ ...webhook, headers }, at.settings)).toThrow(NotAuthentic);
    }
  });

  claim("returns no event for another store's webhook with the same secret", async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    const theirs = elsewhere.pos.settings;
    const secrets = Object.fromEntries(webhookAuth.settings.map((name) => [name, theirs[name]]));
    const settings = settingsWith(at, secrets);
    const ids = Object.entries(theirs).flatMap(([name, value]) =>
      typeof value === 'string' && value.length > 3 && value !== at.pos.settings[name] && !(name in secrets)
        ? [value]
        : [],
    );
    const tickets = {
      pickup: await ticketOf(elsewhere, { type: 'pickup' }),
      delivery: await ticketOf(elsewhere, { type: 'delivery' }),
    };
    for (const { native, fulfillment } of statuses) {
      const webhook = received(elsewhere.pos.sign(WEBHOOK_URL, tickets[fulfillment], native));
      // If the webhook names no store, only the secret shows whose it is.
      if (!ids.some((id) => webhook.body.includes(id))) continue;
      expect(provider.translateWebhook(webhook, settings), native).toEqual([]);
    }
  });

  if (webhookAuth.kind === 'signature') {
    claim('throws NotAuthentic if any byte of the body was changed', async () => {
      const at = await stage();
      const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
      for (let nth = 0; nth < webhook.body.length; nth += 1) {
        const body = Buffer.from(webhook.body);
        body[nth] = (body[nth] ?? 0) ^ 1;
        expect(() => provider.translateWebhook({ ...webhook, body }, at.settings)).toThrow(NotAuthentic);
      }
    });

    claim('verifies the signature before it parses the body', async () => {
      const at = await stage();
      const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said.native));
      const body = Buffer.from('{ no JSON at all');
      expect(() => provider.translateWebhook({ ...webhook, body }, at.settings)).toThrow(NotAuthentic);
    });
  }

  claim('reads a verified webhook from its stored headers, without the signature', async () => {
    const at = await stage();
    const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at, { type: said.fulfillment }), said.native));
    const before = provider.translateWebhook(webhook, at.settings);
    expect(before).toHaveLength(1);
    const { [webhookAuth.header]: _left, ...headers } = onlyRead(theatre, webhook);
    expect(provider.translateWebhook({ ...webhook, headers, verified: true }, at.settings)).toEqual(before);
  });

  claim('reads only the headers webhookAuth.header and webhookHeaders', async () => {
    const at = await stage();
    const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at, { type: said.fulfillment }), said.native));
    const before = provider.translateWebhook(webhook, at.settings);
    const headers = onlyRead(theatre, webhook);
    expect(provider.translateWebhook({ ...webhook, headers }, at.settings)).toEqual(before);
  });
}

/** Bodies that nobody has documented. */
function anyBodyClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, statuses, stage, ticketOf, received } = theatre;

  claim('reads the same events if an optional field has an unreadable value', async () => {
    const at = await stage();
    const tickets = {
      pickup: await ticketOf(at, { type: 'pickup' }),
      delivery: await ticketOf(at, { type: 'delivery' }),
    };
    for (const { native, fulfillment } of statuses) {
      const webhook = received(at.pos.sign(WEBHOOK_URL, tickets[fulfillment], native));
      const read = (json: unknown): unknown => {
        try {
          const body = Buffer.from(JSON.stringify(json));
          const events = provider.translateWebhook({ ...webhook, body, verified: true }, at.settings);
          return events.map(({ status, serviceOrderId, providerOrderId }) => ({
            status,
            serviceOrderId,
            providerOrderId,
          }));
        } catch (error) {
          return error;
        }
      };
      for (const json of jsonOf(webhook.body)) {
        for (const place of partsOf(json)) {
          const without = read(withPart(json, place, undefined));
          if (!Array.isArray(without) || without.length === 0) continue;
          for (const part of unreadable(partAt(json, place))) {
            expect(
              read(withPart(json, place, part)),
              `${native} with ${place.join('.')} as ${JSON.stringify(part)}`,
            ).toEqual(without);
          }
        }
      }
    }
  });

  claim('returns events or throws Poison or NotAuthentic for any bytes', async () => {
    const holds = await holder(theatre);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), holds), { seed: SEED, numRuns: 300 });
  });

  claim('returns events or throws Poison or NotAuthentic for any JSON', async () => {
    const holds = await holder(theatre);
    fc.assert(
      fc.property(
        fc.json().map((text) => Buffer.from(text)),
        holds,
      ),
      { seed: SEED, numRuns: 300 },
    );
  });

  claim(
    'returns events or throws Poison or NotAuthentic for its own payloads with a random part replaced',
    async () => {
      const at = await stage();
      const ticket = await ticketOf(at);
      const bodies = Object.keys(fixtures.statuses).map((native) => at.pos.sign(WEBHOOK_URL, ticket, native).body);
      const originals = bodies.flatMap(jsonOf);
      if (originals.length === 0) return; // A vendor that sends forms has nothing to replace a part of.
      const holds = await holder(theatre);
      const replaced = fc
        .tuple(fc.constantFrom(...originals), fc.nat(), fc.oneof(fc.jsonValue(), anyText()))
        .map(([original, at, part]) => Buffer.from(JSON.stringify(replacePart(original, at, part))));
      fc.assert(fc.property(replaced, holds), { seed: SEED, numRuns: 400 });
    },
  );

  claim('returns events or throws Poison or NotAuthentic for JSON of any depth and a key named __proto__', async () => {
    const holds = await holder(theatre);
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    for (const text of [deep, `{"order":${deep}}`, '{"__proto__":{"order":{}}}', '{"constructor":{"prototype":1}}']) {
      holds(Buffer.from(text));
    }
    expect(({} as Record<string, unknown>)['order']).toBeUndefined();
  });
}

/** Makes the check that each body gives events or one of the two errors. */
async function holder<Settings>({
  provider,
  stage,
  ticketOf,
  received,
  said,
}: Theatre<Settings>): Promise<(bytes: Uint8Array) => void> {
  const at = await stage();
  const webhook = received(at.pos.sign(WEBHOOK_URL, await ticketOf(at), said?.native ?? ''));
  return (bytes) => {
    for (const verified of [true, false]) {
      try {
        const events = provider.translateWebhook({ ...webhook, body: Buffer.from(bytes), verified }, at.settings);
        for (const event of events) StatusEvent.parse(event);
      } catch (error) {
        if (!(error instanceof Poison || error instanceof NotAuthentic)) throw error;
        if (error.cause !== undefined) DropCause.parse(error.cause);
      }
    }
  };
}

/** The headers that the provider declares. */
function onlyRead<Settings>({ provider, webhookAuth }: Theatre<Settings>, { headers }: Webhook): Webhook['headers'] {
  const names = [webhookAuth.header, ...(provider.webhookHeaders ?? [])];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}

/** Nothing for a body that is not JSON. */
function jsonOf(body: Buffer): unknown[] {
  try {
    return [JSON.parse(body.toString())];
  } catch {
    return [];
  }
}
