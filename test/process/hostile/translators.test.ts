import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KitchenOrder, StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider, Webhook } from '../../../src/core/domain/provider.ts';
import { sign } from '../../../src/core/domain/standard-webhooks.ts';
import { DropCause } from '../../../src/core/domain/webhook-cause.ts';
import { boundedFetch } from '../../../src/core/egress/bounded-fetch.ts';
import { verifyAndTranslate } from '../../../src/core/statuses/translate-webhook-request.ts';
import { registry } from '../../../src/providers/index.ts';
import { inMemoryCredentials } from '../../../packages/provider-kit/contract/in-memory-credentials.ts';
import { SIMULATORS, type PosName } from '../../../world/pos/index.ts';
import { anyText } from '../../../world/inputs/any-text.ts';
import { replacePart } from '../../../world/inputs/replace-part.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { MARKER, SECRET, statusText } from '../../../world/hostile/hostile-input.ts';

const RUNS = 500;
const LONGEST_REASON = 500;
/** Codes of a provider that gives no cause: ours do. */
const GENERAL = ['not_authentic', 'unreadable'];

/** What the fuzz needs to know of a provider: settings that sign, and webhooks as its POS would sign them. */
type SignedSamples = {
  settings: unknown;
  webhooks: readonly Webhook[];
  /** The parts of a webhook that its signature covers or is; none where the vendor signs nothing. */
  signedHeaders: readonly string[];
};

const NOW = new Date('2026-01-31T18:30:00Z');
const URL_CALLED = 'https://expediter.example.com/webhook/pos/club-1?token=t-1';

function standardWebhook(text: string): Webhook {
  const body = Buffer.from(text);
  const timestamp = String(NOW.getTime() / 1000);
  return {
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'm-1',
      'webhook-timestamp': timestamp,
      'webhook-signature': sign([SECRET], 'm-1', timestamp, body),
    },
    body,
    url: '',
    receivedAt: NOW,
    verified: false,
  };
}

const STANDARD: SignedSamples = {
  settings: { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET },
  webhooks: [
    standardWebhook(statusText({ thirdPartyReference: `${MARKER}-2`, occurredAt: '2026-01-31T18:30:00Z' })),
    standardWebhook(statusText({ id: 'é🍕', status: 'CANCELLED', reason: null })),
    standardWebhook(`{"eventType":"menu.changed","menu":"${MARKER}"}`),
  ],
  signedHeaders: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
};

/** The reports about one order, from the first to the last, as the vendor's simulator sends them. */
async function simulated(name: PosName, provider: Provider): Promise<SignedSamples> {
  const pos = await SIMULATORS[name]();
  try {
    const settings = provider.settings.parse(pos.settings);
    const credentials = inMemoryCredentials(() => NOW);
    const order = KitchenOrder.parse(sampleOrder({ type: 'delivery', callOutCode: 'K472' }));
    const signal = AbortSignal.timeout(10_000);
    await provider.createOrder(order, { settings, now: NOW, signal, credentials, fetch: boundedFetch() });
    const [ticket] = pos.tickets;
    if (ticket === undefined) throw new Error(`${name} took no order: ${pos.refusals.join('; ')}`);
    const { kind, header = '' } = provider.webhookAuth ?? {};
    return {
      settings,
      webhooks: pos.lifeOf('delivery').map((status) => {
        const { headers, body } = pos.sign(URL_CALLED, ticket, status);
        return { headers, body, url: URL_CALLED, receivedAt: NOW, verified: false };
      }),
      signedHeaders: kind === 'signature' ? [header] : [],
    };
  } finally {
    await pos.stop();
  }
}

/** One entry for every provider of the registry: a test says which is missing. */
const SAMPLES = new Map([['standard', STANDARD]]);
for (const [name, provider] of registry) {
  if (name !== 'standard' && name in SIMULATORS) SAMPLES.set(name, await simulated(name as PosName, provider));
}

/** Every text that a payload holds, its names included, is marked: a reason that quotes one shows it. */
const marked = anyText({ maxLength: 12 }).map((text) => MARKER + text);
const value = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, false, 0, -0, 1e308, -1, '', [], {}),
    marked,
    fc.double(),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(marked, fc.constantFrom('__proto__', 'constructor', 'toString', 'length')), tie('any'), {
      maxKeys: 4,
    }),
  ),
})).any;
const headers = fc.dictionary(
  fc.oneof(fc.constantFrom('content-type', 'host', '__proto__', 'webhook-signature'), fc.string({ maxLength: 20 })),
  fc.oneof(marked, fc.string()),
);

/** Bytes changed in one place. */
const cut = fc.record({ at: fc.nat(), drop: fc.nat({ max: 4 }), put: fc.uint8Array({ maxLength: 4 }) });
function withCut(bytes: Buffer, { at, drop, put }: { at: number; drop: number; put: Uint8Array }): Buffer {
  const place = at % (bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + drop)]);
}

it('these tests cover every provider of the registry', () => {
  expect([...SAMPLES.keys()]).toEqual([...registry.keys()]);
});

describe.each([...SAMPLES])(
  `the translator of %s (SEED=${SEED})`,
  (integration, { settings, webhooks, signedHeaders }) => {
    const provider = registry.get(integration);
    if (provider === undefined) throw new Error(`the registry has no ${integration}`);
    const sample = fc.constantFrom(...webhooks);
    const asJson = sample
      .filter(({ body }) => body.toString().startsWith('{'))
      .map(({ body }) => JSON.parse(body.toString()) as unknown);

    /** @returns the reason, if there is one */
    function holds(webhook: Webhook): string | undefined {
      const bytes = Buffer.from(webhook.body);
      const { events, dropped } = verifyAndTranslate(provider!, settings, webhook);
      expect(webhook.body.equals(bytes), 'the bytes are kept for replay').toBe(true);
      for (const event of events) expect(StatusEvent.parse(event)).toEqual(event);
      if (dropped === undefined) return undefined;
      expect(events).toEqual([]);
      const { reason, cause } = dropped;
      expect(DropCause.parse(cause)).toEqual(cause);
      expect(GENERAL, reason).not.toContain(cause.code);
      expect(reason + JSON.stringify(cause)).not.toContain(MARKER);
      expect(reason.isWellFormed() && !reason.includes('\0')).toBe(true);
      expect(reason.length).toBeLessThanOrEqual(LONGEST_REASON);
      expect(reason).not.toBe('');
      return reason;
    }

    function always<Value>(arbitrary: fc.Arbitrary<Value>, check: (value: Value) => void): void {
      fc.assert(fc.property(arbitrary, check), { seed: SEED, numRuns: RUNS });
    }
    const webhookOf = (body: Uint8Array, verified: boolean, headers: Record<string, string> = {}): Webhook => ({
      headers,
      body: Buffer.from(body),
      url: '',
      receivedAt: NOW,
      verified,
    });

    it('turns any bytes and headers into valid events, or into a reason that does not quote them', () => {
      always(
        fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.boolean(), headers),
        (given) => void holds(webhookOf(...given)),
      );
    });

    it('turns any JSON into valid events, or into a reason that does not quote it', () => {
      always(value, (json) => void holds(webhookOf(Buffer.from(JSON.stringify(json)), true)));
    });

    it('turns a payload with a replaced field into valid events, or into a reason that does not quote it', () => {
      always(fc.tuple(asJson, fc.nat(), value), ([original, at, part]) => {
        holds(webhookOf(Buffer.from(JSON.stringify(replacePart(original, at, part))), true));
      });
    });

    it('turns a payload with changed bytes into valid events, or into a reason that does not quote it', () => {
      always(fc.tuple(sample, fc.array(cut, { minLength: 1, maxLength: 4 })), ([webhook, cuts]) => {
        holds(webhookOf(cuts.reduce(withCut, webhook.body), true));
      });
    });

    it('accepts real payloads with their signatures', () => {
      for (const webhook of webhooks) expect(holds(webhook)).toBeUndefined();
    });

    if (signedHeaders.length === 0) return;

    it('never accepts a body that was changed after it was signed', () => {
      always(fc.tuple(sample, cut), ([webhook, change]) => {
        const body = withCut(webhook.body, change);
        fc.pre(!body.equals(webhook.body));
        expect(holds({ ...webhook, body })).toMatch(/^not authentic: /);
      });
    });

    it('never accepts a webhook with a changed letter in its signature or in a signed header', () => {
      const letter = fc.constantFrom(...'!0129ABCXYZabcxyz+/=-_.,'.split(''));
      always(fc.tuple(sample, fc.constantFrom(...signedHeaders), fc.nat(), letter), ([webhook, name, at, put]) => {
        const before = webhook.headers[name] ?? '';
        const place = at % before.length;
        const after = before.slice(0, place) + put + before.slice(place + 1);
        // Hex is hex in either case.
        fc.pre(/^[0-9a-f]+$/.test(before) ? after.toLowerCase() !== before : after !== before);
        expect(holds({ ...webhook, headers: { ...webhook.headers, [name]: after } })).toMatch(/^not authentic: /);
      });
    });

    it('never accepts the signature of another webhook', () => {
      for (const one of webhooks) {
        for (const { body } of webhooks.filter((other) => other !== one)) {
          expect(holds({ ...one, body })).toMatch(/^not authentic: /);
        }
      }
    });
  },
);
