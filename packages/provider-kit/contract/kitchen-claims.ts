import fc from 'fast-check';
import { expect } from 'vitest';
import { Poison } from '../../../src/core/domain/errors.ts';
import { DropCause } from '../../../src/core/domain/webhook-cause.ts';
import { KitchenReport } from '../../../src/core/domain/webhook.ts';
import type { Kitchen, SignedWebhook } from '../../../world/pos/simulator.ts';
import { partAt, partsOf, withPart } from '../../../world/inputs/each-part.ts';
import { replacePart } from '../../../world/inputs/replace-part.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import type { Stage } from './open-stage.ts';
import { WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';
import { unreadable } from './webhook-claims.ts';

const EXTRA = 173;
/** The minutes as a whole value: by chance, an id or a time has the same digits. */
const SAYS_EXTRA = /":173[,}]/;

/** Claims about `readKitchen`. */
export function kitchenClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, statuses, webhookAuth, stage, ticketOf, received, settingsWith } = theatre;
  const { kitchen: states = [] } = fixtures;

  function signed({ pos }: Stage<Settings>, kitchen: Kitchen): SignedWebhook {
    return pos.signKitchen?.(kitchen) ?? expect.unreachable('the simulator lacks signKitchen');
  }

  /** As the core does: what `translateWebhook` verified, and found no event in. */
  function read(webhook: SignedWebhook, settings: Settings): KitchenReport | undefined {
    expect(provider.translateWebhook(received(webhook), settings)).toEqual([]);
    return provider.readKitchen?.({ ...received(webhook), verified: true }, settings);
  }

  claim('has at least the states open and closed in the fixtures', () => {
    expect(states, 'fixtures.kitchen').toEqual(expect.arrayContaining(['open', 'closed']));
  });

  for (const state of states) {
    claim(`reads that the kitchen is ${state}`, async () => {
      const at = await stage();
      const webhook = signed(at, { state, ...(state === 'busy' && { extraMinutes: EXTRA }) });
      const report = read(webhook, at.settings) ?? expect.unreachable('reads nothing');
      expect(KitchenReport.parse(report)).toEqual(report);
      expect(report.state).toBe(state);
      if (report.state !== 'open') expect(report.until.getTime()).toBeGreaterThan(Date.now());
      if (SAYS_EXTRA.test(webhook.body.toString())) expect(report).toMatchObject({ extraMinutes: EXTRA });
    });
  }

  claim('reads the end of a closure from the POS, and reads open if that end has passed', async () => {
    const at = await stage();
    const endsIn = (minutes: number): Date => new Date(Math.round(Date.now() / 60_000 + minutes) * 60_000);
    for (const until of [endsIn(25), endsIn(-25)]) {
      const webhook = signed(at, { state: 'closed', until: until.toISOString() });
      if (!webhook.body.includes(until.toISOString().slice(0, 16))) return; // It says no end.
      const isOver = until.getTime() < Date.now();
      expect(read(webhook, at.settings)).toEqual(isOver ? { state: 'open' } : { state: 'closed', until });
    }
  });

  claim("returns undefined for another store's report with the same secret", async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    const theirs = elsewhere.pos.settings;
    const secrets = Object.fromEntries(webhookAuth.settings.map((name) => [name, theirs[name]]));
    const webhook = signed(elsewhere, { state: 'closed' });
    const isNamed = Object.entries(theirs).some(
      ([name, value]) => typeof value === 'string' && !(name in secrets) && webhook.body.includes(value),
    );
    // If the webhook names no store of the settings, only the secret shows whose it is.
    if (isNamed) expect(read(webhook, settingsWith(at, secrets))).toBeUndefined();
  });

  claim('reads the same state if an optional field has an unreadable value', async () => {
    const at = await stage();
    for (const state of states) {
      const until = new Date(Date.now() + 25 * 60_000).toISOString();
      const webhook = signed(at, {
        state,
        ...(state !== 'open' && { until }),
        ...(state === 'busy' && { extraMinutes: EXTRA }),
      });
      const read = (json: unknown): unknown => {
        try {
          const body = Buffer.from(JSON.stringify(json));
          return provider.readKitchen?.({ ...received(webhook), body, verified: true }, at.settings)?.state;
        } catch (error) {
          return error;
        }
      };
      const json = JSON.parse(webhook.body.toString()) as unknown;
      for (const place of partsOf(json)) {
        if (read(withPart(json, place, undefined)) !== state) continue;
        for (const part of unreadable(partAt(json, place))) {
          expect(read(withPart(json, place, part)), `${place.join('.')} as ${JSON.stringify(part)}`).toBe(state);
        }
      }
    }
  });

  claim("returns undefined for an order's webhook", async () => {
    const at = await stage();
    const tickets = {
      pickup: await ticketOf(at, { type: 'pickup' }),
      delivery: await ticketOf(at, { type: 'delivery' }),
    };
    for (const { native, fulfillment } of statuses) {
      const webhook = at.pos.sign(WEBHOOK_URL, tickets[fulfillment], native);
      expect(provider.readKitchen?.({ ...received(webhook), verified: true }, at.settings), native).toBeUndefined();
    }
  });

  claim(
    'returns a report or throws Poison for any JSON, and for its own webhooks with a random part replaced',
    async () => {
      const at = await stage();
      const originals = states.map((state) => JSON.parse(signed(at, { state }).body.toString()) as unknown);
      const replaced = fc
        .tuple(fc.constantFrom(...originals), fc.nat(), fc.jsonValue())
        .map(([original, nth, part]) => replacePart(original, nth, part));
      const webhook = received(signed(at, { state: 'open' }));
      const holds = (json: unknown): void => {
        try {
          const body = Buffer.from(JSON.stringify(json));
          KitchenReport.optional().parse(provider.readKitchen?.({ ...webhook, body, verified: true }, at.settings));
        } catch (error) {
          if (!(error instanceof Poison)) throw error;
          if (error.cause !== undefined) DropCause.parse(error.cause);
        }
      };
      fc.assert(fc.property(fc.oneof(fc.jsonValue(), replaced), holds), { seed: SEED, numRuns: 300 });
    },
  );
}
