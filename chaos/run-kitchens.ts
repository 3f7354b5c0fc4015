import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import type { Availability } from '../src/core/domain/availability.ts';
import { TryAgain } from '../src/core/domain/errors.ts';
import type { Provider } from '../src/core/domain/provider.ts';
import { KitchenReport } from '../src/core/domain/webhook.ts';
import { credentialStore } from '../src/core/locations/credential-store.ts';
import { settingsDecrypter } from '../src/core/locations/locations.ts';
import { probeKitchens } from '../src/core/locations/probe-kitchens.ts';
import { putLocation } from '../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../src/core/locations/settings-key.ts';
import { settleKitchens } from '../src/core/locations/settle-kitchens.ts';
import { migrate } from '../src/database/migrate.ts';
import { allowedHosts } from '../test/support/allowed-loopback.ts';
import { startPostgres } from '../test/support/start-postgres.ts';
import { post, startSystem, type System } from '../test/support/start-system.ts';
import { until } from '../test/support/until.ts';
import { chance, pick } from './chance.ts';

export type KitchensResult = {
  seed: number;
  ok: boolean;
  orders: number;
  /** Orders that the POS got more or less than once. */
  ticketsWrong: number;
  reports: number;
  /** Hours of simulated kitchens, and how often one was called unreachable. */
  hours: number;
  called: number;
  /** How often a kitchen was called unreachable that answered. */
  calledWrongly: number;
  /** Kitchens called later than a minute after the first call without an answer. */
  calledLate: number;
};

const KITCHENS = 4;
const FLAPPING_MS = 30_000;
const WAITING = 5;
const HOUR_MS = 3_600_000;
const TOPIC = 'kitchens';

/** Counts how often each order came. */
const tickets = new Map<string, number>();
const acme: Provider = {
  integration: 'acme',
  settings: z.object({}),
  deduplicates: false,
  async createOrder({ serviceOrderId }) {
    tickets.set(serviceOrderId, (tickets.get(serviceOrderId) ?? 0) + 1);
    return {};
  },
  translateWebhook: () => [],
  readKitchen: ({ body }) =>
    KitchenReport.parse({ until: new Date(Date.now() + HOUR_MS), ...(JSON.parse(body.toString()) as object) }),
};

/**
 * First, kitchens flap while orders come; then all are closed for an hour with orders waiting, and open early. Then a
 * thousand hours of POS systems that fail at random are simulated, with time moved in the rows.
 */
export async function runKitchens(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: KitchensResult; complaints: string[] }> {
  const postgres = await startPostgres();
  await migrate(postgres.url);
  try {
    print(`seed ${seed}: ${KITCHENS} kitchens flap for ${FLAPPING_MS / 1_000} s`);
    const flapped = await flap(postgres.url, seed);
    print(`${flapped.orders} orders, ${flapped.reports} reports; then ${SIMULATED} POS systems fail at random`);
    const { complaints, ...judged } = await judgeSilence(postgres.url, seed);
    complaints.push(...flapped.complaints);
    const { orders, reports, ticketsWrong } = flapped;
    return { result: { seed, ok: complaints.length === 0, orders, ticketsWrong, reports, ...judged }, complaints };
  } finally {
    await postgres.stop();
  }
}

async function flap(
  databaseUrl: string,
  seed: number,
): Promise<{ orders: number; reports: number; ticketsWrong: number; complaints: string[] }> {
  const system = await startSystem({ databaseUrl, providers: [acme], processes: 2, env: { KITCHEN_TOPIC: TOPIC } });
  try {
    const ids = Array.from({ length: KITCHENS }, (_, nth) => `kitchen-${nth}`);
    const urls = new Map<string, string>();
    for (const id of ids) {
      await system.addLocation(id, {}, 'acme');
      urls.set(id, await system.webhookUrl(id));
    }
    const orders: string[] = [];
    let reports = 0;
    const say = async (locationId: string, state: string): Promise<void> => {
      reports += 1;
      await post(urls.get(locationId) ?? '', { state, ...(state === 'busy' && { extraMinutes: 20 }) });
    };
    const order = async (locationId: string): Promise<void> => {
      const { serviceOrderId } = await system.placeOrder({ locationId });
      orders.push(serviceOrderId);
    };
    const ends = performance.now() + FLAPPING_MS;
    for (let nth = 0; performance.now() < ends; nth += 1) {
      await say(pick(ids, chance(seed, 'where', nth)), pick(['open', 'busy', 'closed'], chance(seed, 'state', nth)));
      await order(pick(ids, chance(seed, 'order', nth)));
      await sleep(200 * chance(seed, 'pause', nth));
    }
    for (const id of ids) await say(id, 'closed');
    for (let nth = 0; nth < WAITING * KITCHENS; nth += 1) await order(ids[nth % KITCHENS] ?? '');
    const isHeld = (id: string): Promise<boolean> =>
      system.placement(id).then((placement) => placement?.['state'] === 'held');
    const waiting = orders.slice(-WAITING * KITCHENS);
    for (const id of waiting) await until(() => isHeld(id));
    const early = waiting.filter((id) => tickets.has(id));
    for (const id of ids) await say(id, 'open');
    for (const id of orders) await until(async () => (await system.placement(id))?.['state'] === 'sent');
    await until(() => ids.every((id) => told(system, id).at(-1)?.state === 'open'));
    const wrong = orders.filter((id) => tickets.get(id) !== 1);
    return {
      orders: orders.length,
      reports,
      ticketsWrong: wrong.length,
      complaints: [
        ...wrong.map((id) => `order ${id} has ${tickets.get(id) ?? 0} tickets`),
        ...early.map((id) => `order ${id} was sent to a closed kitchen`),
        ...ids.filter((id) => !isAscending(told(system, id))).map((id) => `messages of ${id} are out of order`),
      ],
    };
  } finally {
    await system.stop();
  }
}

const told = (system: System, locationId: string): Availability[] =>
  system.pubsub
    .published(TOPIC)
    .filter(({ orderingKey }) => orderingKey === locationId)
    .map(({ data }) => JSON.parse(data.toString()) as Availability);

/** A repeat of the last message is allowed. */
const isAscending = (messages: readonly Availability[]): boolean =>
  messages.every(({ sequence }, nth) => sequence >= (messages[nth - 1]?.sequence ?? 0));

/** The simulated POS systems, and the time of one step. */
const SIMULATED = 100;
const STEP_S = 5;
const STEPS = 7_200;
/** Chances per step: that a POS goes down, that it comes back, and that an order is tried. */
const DOWN = 1 / 1_440;
const UP = 1 / 120;
const ORDERED = 1 / 24;
/** The share of calls that a POS which is up does not answer: a time-out, or an order that it cannot handle. */
const NOISE = 0.03;
const PROBE_NOISE = 0.01;
const CALLED_WITHIN_S = 60;
/** The share of calls as unreachable that must be right. */
const RIGHT = 0.99;

async function judgeSilence(
  url: string,
  seed: number,
): Promise<Pick<KitchensResult, 'hours' | 'called' | 'calledWrongly' | 'calledLate'> & { complaints: string[] }> {
  const down = new Map<string, { firstCall: number | undefined; isCalled: boolean }>();
  let step = 0;
  const simulated: Provider = {
    ...acme,
    integration: 'simulated',
    settings: z.object({ id: z.string() }),
    checkProvesOrders: true,
    async check({ settings }) {
      const { id } = settings as { id: string };
      if (down.has(id) || chance(seed, 'probe', id, step) < PROBE_NOISE)
        throw new TryAgain('no answer', { sent: false });
    },
  };
  const keys = parseSettingsKeys(`chaos:${Buffer.alloc(32, 7).toString('base64')}`);
  const registry = new Map([['simulated', simulated]]);
  const rules = { registry, keys, publicUrl: undefined, allowedHosts };
  const pool = new pg.Pool({ connectionString: url, max: 4, options: '-c search_path=expediter' });
  const deps = {
    pool,
    registry,
    decryptSettings: settingsDecrypter(rules),
    now: () => new Date(),
    credentialsFor: credentialStore(pool, keys),
    posFetch: fetch,
    silentLocations: () => [],
  };
  const ids = Array.from({ length: SIMULATED }, (_, nth) => `simulated-${nth}`);
  for (const id of ids) await putLocation(pool, rules, { locationId: id, integration: 'simulated', settings: { id } });
  await pool.query(`UPDATE locations SET created_at = now() - interval '1 d'`);
  await pool.query(
    `INSERT INTO placements (service_order_id, location_id, deadline_at, attempts)
     SELECT id, id, 'infinity', 1 FROM unnest($1::text[]) AS id`,
    [ids],
  );
  const found = { called: 0, calledWrongly: 0, calledLate: 0 };
  const stopping = new AbortController().signal;
  try {
    for (step = 0; step < STEPS; step += 1) {
      const calls: { id: string; outcome: string }[] = [];
      for (const id of ids) {
        const isDown = down.has(id);
        if (isDown ? chance(seed, 'up', id, step) < UP : chance(seed, 'down', id, step) < DOWN) {
          if (isDown) down.delete(id);
          else down.set(id, { firstCall: undefined, isCalled: false });
        }
        if (chance(seed, 'order', id, step) >= ORDERED) continue;
        const outage = down.get(id);
        const isSilent = outage !== undefined || chance(seed, 'noise', id, step) < NOISE;
        calls.push({ id, outcome: isSilent ? 'TryAgain' : 'placed' });
        if (outage !== undefined) outage.firstCall ??= step;
      }
      await call(pool, calls, step);
      await probeKitchens(deps, { stopping });
      for (const { locationId, state } of await settleKitchens(pool)) {
        if (state !== 'unreachable') continue;
        found.called += 1;
        const outage = down.get(locationId);
        if (outage === undefined) found.calledWrongly += 1;
        else outage.isCalled = true;
      }
      for (const outage of down.values()) {
        if (!outage.isCalled && outage.firstCall === step - CALLED_WITHIN_S / STEP_S) found.calledLate += 1;
      }
      await pool.query(PASS, [STEP_S]);
    }
  } finally {
    await pool.end();
  }
  const hours = (SIMULATED * STEPS * STEP_S) / 3_600;
  const complaints = [
    ...(found.calledWrongly > (1 - RIGHT) * found.called ? ['too many kitchens answered that were unreachable'] : []),
    ...(found.calledLate > 0 ? [`${found.calledLate} kitchens were called unreachable too late`] : []),
    ...(found.called === 0 ? ['no kitchen was called unreachable'] : []),
  ];
  return { hours, ...found, complaints };
}

/** Records calls that have just ended. */
async function call(pool: pg.Pool, calls: readonly { id: string; outcome: string }[], step: number): Promise<void> {
  await pool.query(
    `WITH p AS (UPDATE placements SET next_attempt_at = now(), requested_at = now(), signalled_at = now()
                WHERE service_order_id = ANY ($1)),
          old AS (DELETE FROM placement_attempts WHERE service_order_id = ANY ($1) AND attempt < $3 - 100)
     INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome)
     SELECT c.id, $3, 'createOrder', now(), c.outcome FROM unnest($1::text[], $2::text[]) AS c (id, outcome)`,
    [calls.map(({ id }) => id), calls.map(({ outcome }) => outcome), step + 1],
  );
}

/** Moves all that is known into the past. */
const PASS = `
  WITH a AS (UPDATE placement_attempts SET ended_at = ended_at - make_interval(secs => $1)),
       k AS (SELECT make_interval(secs => $1) AS step)
  UPDATE kitchens SET probe_at = probe_at - step, probed_at = probed_at - step, answered_at = answered_at - step,
    unanswered_at = unanswered_at - step, unreachable_since = unreachable_since - step
  FROM k`;
