import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { makeBusy } from '../../src/core/kitchens/settle-kitchens.ts';
import { pauseLocation } from '../../src/core/kitchens/pause-location.ts';
import { startStandard } from '../../world/pos/standard/start-standard.ts';
import { startToast } from '../../world/pos/toast/start-toast.ts';
import type { Simulator, Ticket } from '../../world/pos/simulator.ts';
import type { OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import type { Doors } from './doors.ts';
import { writeDown } from './place-orders.ts';
import { setUpLocation } from './set-up-location.ts';

/** Has another vendor than the others. */
const LOUNGE = 'demo-lounge';
/** Locations where everything works. */
export const BUSY = ['demo-bistro', LOUNGE] as const;
/** A location whose settings lack the secret of its POS. Its webhooks are dropped until the settings are corrected. */
export const BEHIND = 'demo-terrace';

const LOCATIONS = [...BUSY, BEHIND, ...BUSY];
const AT_ONCE = 4;
const EVERY_MS = 10_000;
/** Time between two steps of an order. */
const STEP_MS = { atLeast: 6_000, atMost: 18_000 };
/** A little more than the slowest kitchen needs to have an order ready. */
const WANTED_IN_MS = 75_000;
const HURRY = 600;
const CLOSED_MINUTES = 2;

/**
 * Places a few orders a minute until the signal, so that the console has something to show. They have their own
 * locations and their own POS, and are not on the timeline.
 * @returns the file with the correct settings of the location BEHIND, the newest order's id, and how to end the POS systems
 */
export async function keepBusy(about: {
  dir: string;
  databaseUrl: string;
  settingsKey: string;
  publicUrl: string;
  platform: OrderingPlatform;
  signalOrder: Doors['signalOrder'];
  signal: AbortSignal;
}): Promise<{ rightSettings: string; newestOrder: () => string; stop(): Promise<void> }> {
  const { platform, signalOrder, signal } = about;
  const pos = await startStandard({ hurry: HURRY });
  const old = await startStandard({ hurry: HURRY });
  const toast = await startToast({ hurry: HURRY });
  const webhookUrls = new Map<string, string>();
  for (const locationId of new Set(LOCATIONS)) {
    const { integration, settings } = locationId === LOUNGE ? toast : pos;
    webhookUrls.set(locationId, await setUpLocation({ ...about, locationId, integration, settings }));
  }
  const rightSettings = join(about.dir, `${BEHIND}.json`);
  const both = { ...pos.settings, previousSecret: old.settings['secret'] };
  writeFileSync(rightSettings, `${JSON.stringify(both)}\n`, { mode: 0o600 });

  const locationOf = new Map<string, string>();
  const come = async (nth: number): Promise<string> => {
    const locationId = LOCATIONS[nth % LOCATIONS.length] ?? BEHIND;
    const requestedAt = new Date(Date.now() + WANTED_IN_MS).toISOString();
    const serviceOrderId = writeDown(platform, { locationId, fulfillment: { type: 'pickup', requestedAt } });
    locationOf.set(serviceOrderId, locationId);
    await signalOrder(serviceOrderId);
    return serviceOrderId;
  };
  const { sign } = pos;
  // One simulated POS cooks for all locations but LOUNGE. For BEHIND, it uses the secret of a second POS as the old secret.
  pos.sign = (webhookUrl, ticket, status) =>
    (locationOf.get(ticket.serviceOrderId) === BEHIND ? old.sign : sign)(webhookUrl, ticket, status);
  const cook = async (at: Simulator, ticket: Ticket): Promise<void> => {
    // The service may still send an order of an earlier run. Its location is not known here, so it is not cooked.
    const locationId = locationOf.get(ticket.serviceOrderId) ?? '';
    const webhookUrl = webhookUrls.get(locationId);
    if (webhookUrl === undefined) return;
    for (const status of at.lifeOf(ticket.fulfillment)) {
      await sleep(STEP_MS.atLeast + Math.random() * (STEP_MS.atMost - STEP_MS.atLeast), undefined, { signal });
      await at.report(webhookUrl, ticket, status);
    }
  };
  for (const each of [pos, toast]) each.onTicket = (ticket) => void cook(each, ticket).catch(unless(signal));
  let newest = await come(0);
  const evening = async (): Promise<void> => {
    for (let nth = 1; ; nth += 1) {
      if (nth >= AT_ONCE) await sleep(EVERY_MS, undefined, { signal });
      // Of BEHIND, a guest would see nothing move.
      const came = await come(nth);
      if (locationOf.get(came) !== BEHIND) newest = came;
    }
  };
  void evening().catch(unless(signal));
  await changeKitchens(about.databaseUrl);
  return {
    rightSettings,
    newestOrder: () => newest,
    async stop() {
      await Promise.all([pos.stop(), old.stop(), toast.stop()]);
    },
  };
}

/** Makes one kitchen busy and closes another one for a while, as an operator does. */
async function changeKitchens(databaseUrl: string): Promise<void> {
  const [busy, closed] = BUSY;
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    await makeBusy({ pool, observe() {} }, busy, {
      extraMinutes: 20,
      minutes: 30,
      by: 'the demo',
      reason: 'A party of thirty',
    });
    await pauseLocation(pool, closed, { minutes: CLOSED_MINUTES, by: 'the demo', reason: 'The oven is cold' });
  } finally {
    await pool.end();
  }
}

/** Ignores errors after the signal, because all parts are ending then. */
export function unless(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}
