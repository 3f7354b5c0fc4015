import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { NotAuthentic, Poison } from '../../src/core/errors.ts';
import { StatusEvent } from '../../src/core/order.ts';
import type { Provider, Webhook } from '../../src/core/provider.ts';

export type ProviderFixtures<Settings> = {
  /** Valid ones, with the secret that signs where the vendor has such a thing. */
  settings: Settings;
  /** What this provider's settings must refuse, beside what none may take. */
  junkSettings: Readonly<Record<string, unknown>>;
  /** Webhooks as the vendor would send them under `settings`, signed, and how many events are in each. */
  webhooks: readonly { name: string; webhook: Webhook; events: number }[];
  /** The same webhook with a signature that is not the vendor's; left out where the vendor signs nothing. */
  forge?: (webhook: Webhook) => Webhook;
};

/** What the core relies on, whatever the POS. */
export function providerContract<Settings>(provider: Provider<Settings>, fixtures: ProviderFixtures<Settings>): void {
  const { settings, webhooks, forge } = fixtures;

  describe(`the provider contract: ${provider.integration}`, () => {
    it('has a name that fits a URL', () => {
      expect(provider.integration).toMatch(/^[a-z0-9][a-z0-9-]*$/);
    });

    it('takes its own settings, and again what it made of them', () => {
      const once = provider.settings.parse(settings);
      expect(provider.settings.parse(once)).toEqual(once);
    });

    it.each([
      ...Object.entries({ nothing: undefined, null: null, 'a number': 1, text: 'junk', 'a list': [], 'no field': {} }),
      // A mistyped "secret" that is passed over would leave webhooks unverified.
      ['an unknown field', { ...settings, unheardOf: true }],
      ...Object.entries(fixtures.junkSettings),
    ])('refuses settings: %s', (_name, junk) => {
      expect(provider.settings.safeParse(junk).success).toBe(false);
    });

    it('can describe its settings', () => {
      expect(z.toJSONSchema(provider.settings, { io: 'input' })).toMatchObject({ type: 'object' });
    });

    it.each(webhooks)('translates $name', ({ webhook, events }) => {
      const bytes = Buffer.from(webhook.body);
      const translated = provider.translateWebhook(webhook, settings);
      expect(translated).toHaveLength(events);
      for (const event of translated) expect(StatusEvent.parse(event)).toEqual(event);
      expect(webhook.body.equals(bytes), 'the bytes are kept for replay').toBe(true);
    });

    if (forge !== undefined) {
      it.each(webhooks)('drops a forged signature: $name', ({ webhook }) => {
        expect(() => provider.translateWebhook(forge(webhook), settings)).toThrow(NotAuthentic);
      });

      it.each(webhooks)('asks no signature of what was verified before: $name', ({ webhook, events }) => {
        const replayed = { ...forge(webhook), verified: true };
        expect(provider.translateWebhook(replayed, settings)).toHaveLength(events);
      });

      it('verifies before it reads', () => {
        const body = Buffer.from('{ no JSON at all');
        for (const { webhook } of webhooks) {
          expect(() => provider.translateWebhook({ ...webhook, body }, settings)).toThrow(NotAuthentic);
        }
      });
    }

    it('answers any bytes with events, Poison or NotAuthentic', () => {
      fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), holds), { numRuns: 300 });
    });

    it('answers any JSON with events, Poison or NotAuthentic', () => {
      fc.assert(
        fc.property(
          fc.json().map((text) => Buffer.from(text)),
          holds,
        ),
        { numRuns: 300 },
      );
    });

    it('answers its own payloads with a part replaced by anything with events, Poison or NotAuthentic', () => {
      const originals = webhooks.flatMap(({ webhook }) => jsonOf(webhook.body));
      if (originals.length === 0) return;
      const replaced = fc
        .tuple(fc.constantFrom(...originals), fc.nat(), fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' })))
        .map(([original, at, part]) => Buffer.from(JSON.stringify(replacePart(original, at, part))));
      fc.assert(fc.property(replaced, holds), { numRuns: 1000 });
    });

    it('survives JSON of any depth and a key named __proto__', () => {
      const deep = '['.repeat(100_000) + ']'.repeat(100_000);
      for (const text of [deep, `{"order":${deep}}`, '{"__proto__":{"order":{}}}', '{"constructor":{"prototype":1}}']) {
        holds(Buffer.from(text));
      }
      expect(({} as Record<string, unknown>)['order']).toBeUndefined();
    });

    function holds(bytes: Uint8Array): void {
      for (const { webhook } of webhooks) {
        for (const verified of [true, false]) {
          try {
            const events = provider.translateWebhook({ ...webhook, body: Buffer.from(bytes), verified }, settings);
            for (const event of events) StatusEvent.parse(event);
          } catch (error) {
            if (!(error instanceof Poison || error instanceof NotAuthentic)) throw error;
          }
        }
      }
    }
  });
}

/** A vendor that sends forms has nothing to replace a part of. */
function jsonOf(body: Buffer): unknown[] {
  try {
    return [JSON.parse(body.toString())];
  } catch {
    return [];
  }
}

/** Replaces one value, picked by number among all in the tree. */
function replacePart(original: unknown, at: number, part: unknown): unknown {
  let size = 0;
  JSON.stringify(original, (_key, value: unknown) => (size++, value));
  let index = 0;
  return JSON.parse(JSON.stringify(original), (_key, value: unknown) => (index++ === at % size ? part : value));
}
