import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { LIFECYCLE, RANK_SENT, rankOf, type FulfillmentType } from '../../src/core/domain/lifecycle.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { registry } from '../../src/providers/index.ts';
import { SIMULATORS } from '../../world/pos/index.ts';
import type { Simulator, Ticket } from '../../world/pos/simulator.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { runMain, type MainProcess } from '../../world/processes/run-main.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { until } from '../../world/processes/until.ts';
import { chance } from './chance.ts';
import { signalOrder } from './signal-order.ts';
import { startDatabase } from './start-pair.ts';
import { startQuietWorld, type QuietWorld } from './start-quiet-world.ts';

export type SilentResult = {
  orders: number;
  /** Orders whose status differs from the status at their POS, even after a wait. */
  ordersDiverged: number;
  /** Orders without exactly one ticket. */
  ticketsWrong: number;
  /** Seconds until a change with a lost webhook was applied, from when the service could first suspect a loss. */
  lagP50S: number;
  lagP99S: number;
  /** Changes that were learnt only from status polling. */
  told: number;
  /** The number of polls of all POS systems, and the most polls of one POS within a minute. */
  asks: number;
  asksInAMinute: number;
  ordersWhileFlowing: number;
  asksWhileFlowing: number;
};

/** The number of locations of each vendor that can be polled. */
const CLUBS = 4;
/** Orders of each location while webhooks flow. */
const FLOWING = 50;
const FLOWING_STEP_S = 0.3;
/** Seconds between two statuses of a kitchen while its webhooks are lost. Four of them fit into the first silence. */
const STEP_S = 25;
const SILENCE_S = 120;
/** If an order was not received within this time after it was sent, its POS is polled. */
const UNRECEIVED_S = 180;
/** Orders of each location, one after the other, when the webhooks are lost permanently. */
const FOR_GOOD = 2;
const ENDED_WITHIN_S = 400;
const LAG_P99_S = 90;
const LOOK_MS = 200;

/** POS systems that can be polled only after a webhook has reported the POS id: docs/providers/lightspeed-k.md. */
const NEEDS_A_WEBHOOK = { 'lightspeed-k': true };
/** Toast never reports the end of a pickup (docs/providers/toast.md). Polling it would delay the location's orders. */
const DELIVERIES_ALONE = { toast: true };

type Club = {
  locationId: string;
  integration: string;
  provider: Provider;
  settings: unknown;
  pos: Simulator;
  url: string;
};
/** A status that an order got at its POS, and when. */
type Change = { serviceOrderId: string; locationId: string; rank: number; at: number; isLost: boolean };

/**
 * First, all webhooks arrive, and no POS should be polled. Then the webhooks of every vendor that can be polled are
 * lost: for two minutes, and after a pause until the end.
 */
export async function runSilent(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: SilentResult; complaints: string[] }> {
  const stage = await setSilentStage();
  const { pool, clubs } = stage;
  const askable = clubs.filter(({ integration }) => !(integration in NEEDS_A_WEBHOOK));
  const changes: Change[] = [];
  const asked: { locationId: string; at: number }[] = [];
  let isSilent = false;
  const watching = watchReads(clubs, asked);
  let placed = 0;
  /** Places an order and cooks it. Resolves when it has ended at the POS, with the rank that polling can learn. */
  const serve = async (club: Club, stepS: number): Promise<[serviceOrderId: string, rank: number]> => {
    const drawn = chance(seed, 'type', (placed += 1)) < 0.5 ? 'pickup' : 'delivery';
    const type = isSilent && club.integration in DELIVERIES_ALONE ? 'delivery' : drawn;
    const serviceOrderId = await stage.place(club.locationId, type, `silent-${seed}-${placed}`);
    const ticket = await until(() => club.pos.tickets.find((each) => each.serviceOrderId === serviceOrderId), 30_000);
    let rank: number = RANK_SENT;
    for (const status of club.pos.lifeOf(type)) {
      await sleep(stepS * 1_000);
      const [at, told] = [Date.now(), rankAt(club, ticket, status)];
      const isLost = isSilent;
      if (isLost) club.pos.become?.(ticket, status);
      else await club.pos.report(club.url, ticket, status);
      rank = Math.max(rank, told);
      changes.push({ serviceOrderId, locationId: club.locationId, rank: told, at, isLost });
    }
    return [serviceOrderId, rank];
  };
  /** A time-out is no error here, because `compare` reports each order with a wrong status. */
  const untilThere = (order: [string, number]): Promise<void> => stage.untilAt(...order).catch(() => {});
  try {
    print(`seed ${seed}: ${clubs.length} locations; webhooks flow`);
    await Promise.all(
      clubs.map(async (club) => {
        for (let nth = 0; nth < FLOWING; nth += 1) await serve(club, FLOWING_STEP_S);
      }),
    );
    const ordersWhileFlowing = placed;
    const asksWhileFlowing = asked.length;
    print(`${placed} orders have ended, with ${asksWhileFlowing} polls; webhooks are lost for ${SILENCE_S} s`);
    isSilent = true;
    const during = Promise.all(askable.map((club) => serve(club, STEP_S)));
    await sleep(SILENCE_S * 1_000);
    isSilent = false;
    // Waits, because two quiet orders of a location would be polled in turn, which would double the lag.
    for (const each of await during) await untilThere(each);
    print('webhooks flow again, for one order of each location');
    await Promise.all(askable.map((club) => serve(club, FLOWING_STEP_S)));
    print('webhooks are lost for good');
    isSilent = true;
    await Promise.all(
      askable.map(async (club) => {
        for (let nth = 0; nth < FOR_GOOD; nth += 1) {
          await untilThere(await serve(club, STEP_S));
        }
      }),
    );
    await watching.stop();
    const { complaints, ...found } = await compare(pool, clubs, changes);
    const result = {
      orders: placed,
      ...found,
      asks: asked.length,
      asksInAMinute: mostInAMinute(asked),
      ordersWhileFlowing,
      asksWhileFlowing,
    };
    if (result.lagP99S > LAG_P99_S) complaints.push(`the lag's p99 is ${result.lagP99S} s`);
    if (result.asksInAMinute > 1) complaints.push(`a POS was polled ${result.asksInAMinute} times within a minute`);
    if (asksWhileFlowing * 1_000 > ordersWhileFlowing) complaints.push('a POS was polled while its webhooks arrived');
    if (found.told === 0) complaints.push('no poll found a missing status');
    return { result, complaints };
  } finally {
    await watching.stop();
    await stage.stop();
  }
}

/** The rank that the vendor's webhook for this status would have. */
function rankAt({ provider, settings, pos, url }: Club, ticket: Ticket, nativeStatus: string): number {
  const events = provider.translateWebhook(
    { ...pos.sign(url, ticket, nativeStatus), url, receivedAt: new Date(), verified: true },
    settings,
  );
  return Math.max(0, ...events.map(({ status }) => rankOf(status)));
}

/** Records the time of every poll, to a fifth of a second. */
function watchReads(clubs: readonly Club[], asked: { locationId: string; at: number }[]): { stop(): Promise<void> } {
  const known = new Map<Club, number>();
  const look = (): void => {
    for (const club of clubs) {
      const { reads = 0 } = club.pos;
      for (let nth = known.get(club) ?? 0; nth < reads; nth += 1) {
        asked.push({ locationId: club.locationId, at: Date.now() });
      }
      known.set(club, reads);
    }
  };
  const timer = setInterval(look, LOOK_MS);
  return {
    async stop() {
      clearInterval(timer);
      look();
    },
  };
}

/** A minute counts as 58 s: `watchReads` sees a poll a little late, and a call takes some time. */
function mostInAMinute(asked: readonly { locationId: string; at: number }[]): number {
  return Math.max(
    0,
    ...asked.map(
      ({ locationId, at }) =>
        asked.filter((each) => each.locationId === locationId && each.at >= at && each.at < at + 58_000).length,
    ),
  );
}

type Found = Pick<SilentResult, 'ordersDiverged' | 'ticketsWrong' | 'lagP50S' | 'lagP99S' | 'told'> & {
  complaints: string[];
};

/** Compares the statuses at the POS systems with the statuses that the service applied, and when it did. */
async function compare(pool: pg.Pool, clubs: readonly Club[], changes: readonly Change[]): Promise<Found> {
  const { rows } = await pool.query<{ id: string; rank: number; sentAt: Date; applied: [string, number][] | null }>(
    `SELECT o.service_order_id AS id, o.rank, p.finished_at AS "sentAt",
            (SELECT json_agg(json_build_array(e.status, extract(epoch FROM e.recorded_at) * 1000) ORDER BY e.event_id)
             FROM status_events e WHERE e.service_order_id = o.service_order_id AND e.outcome = 'applied') AS applied
     FROM orders o JOIN placements p USING (service_order_id)`,
  );
  const { rows: missed } = await pool.query<{ locationId: string; at: Date; told: number }>(
    `SELECT location_id AS "locationId", min(received_at) AS at, count(*)::int AS told FROM webhooks WHERE polled GROUP BY 1`,
  );
  const missedSince = new Map(missed.map(({ locationId, at }) => [locationId, at.getTime()]));
  const orders = new Map(rows.map((row) => [row.id, row]));
  const complaints: string[] = [];
  const lags: number[] = [];
  for (const [id, of] of Map.groupBy(changes, ({ serviceOrderId }) => serviceOrderId)) {
    const order = orders.get(id);
    const last = Math.max(...of.map(({ rank }) => rank));
    if (order === undefined || order.rank !== last) {
      complaints.push(`${id} is at rank ${order?.rank}, but at ${last} at its POS`);
      continue;
    }
    for (const { rank, at, locationId, isLost } of of) {
      if (!isLost) continue;
      const [, appliedAt = Infinity] =
        order.applied?.find(([status]) => Number(LIFECYCLE.find((step) => step.status === status)?.rank) >= rank) ?? [];
      const quietFrom = Math.min(
        order.sentAt.getTime() + UNRECEIVED_S * 1_000,
        missedSince.get(locationId) ?? Infinity,
      );
      lags.push(Math.max(0, appliedAt - Math.max(at, quietFrom)) / 1_000);
    }
  }
  const ordersDiverged = complaints.length;
  const tickets = Map.groupBy(
    clubs.flatMap(({ pos }) => pos.tickets),
    ({ serviceOrderId }) => serviceOrderId,
  );
  const ticketsWrong = rows.filter(({ id }) => tickets.get(id)?.length !== 1).length;
  if (ticketsWrong > 0) complaints.push(`${ticketsWrong} orders have no ticket, or more than one`);
  const sorted = lags.toSorted((one, other) => one - other);
  const share = (of: number): number => Number((sorted[Math.ceil(of * sorted.length) - 1] ?? Number.NaN).toFixed(1));
  return {
    ordersDiverged,
    ticketsWrong,
    lagP50S: share(0.5),
    lagP99S: share(0.99),
    told: missed.reduce((sum, { told }) => sum + told, 0),
    complaints,
  };
}

type SilentStage = {
  pool: pg.Pool;
  clubs: readonly Club[];
  place(locationId: string, type: FulfillmentType, serviceOrderId: string): Promise<string>;
  /** Resolves when the service has the order at this rank. */
  untilAt(serviceOrderId: string, rank: number): Promise<void>;
  stop(): Promise<void>;
};

/** Sets up two processes, and one location for every POS. */
async function setSilentStage(): Promise<SilentStage> {
  const postgres = await startDatabase();
  const mains: MainProcess[] = [];
  const balancer = await balanceLoad(() => mains.map(({ url }) => url));
  const pool = new pg.Pool({ connectionString: postgres.url, max: 4 });
  pool.on('error', () => {});
  const world = await startQuietWorld(postgres.url, balancer.url);
  const clubs = await openClubs(pool, world, balancer.url);
  mains.push(await runMain(world.env), await runMain(world.env));
  await until(async () => (await fetch(`${balancer.url}/readyz`)).ok);
  return {
    pool,
    clubs,
    async place(locationId, type, serviceOrderId) {
      world.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId, type }));
      await signalOrder(balancer.url, serviceOrderId);
      return serviceOrderId;
    },
    async untilAt(serviceOrderId, rank) {
      const sql = 'SELECT FROM orders WHERE service_order_id = $1 AND rank >= $2';
      const isThere = async (): Promise<boolean> => (await pool.query(sql, [serviceOrderId, rank])).rowCount === 1;
      await until(isThere, ENDED_WITHIN_S * 1_000);
    },
    async stop() {
      for (const { child } of mains) child.kill('SIGTERM');
      await Promise.all(mains.map(({ exited }) => exited));
      await pool.end();
      await Promise.all([balancer.stop(), world.stop(), ...clubs.map(({ pos }) => pos.stop())]);
      await postgres.stop();
    },
  };
}

async function openClubs(pool: pg.Pool, world: QuietWorld, publicUrl: string): Promise<Club[]> {
  const canBeAsked = Object.entries(SIMULATORS).filter(([name]) => registry.get(name)?.readStatus !== undefined);
  const opening = canBeAsked.flatMap(([integration, startSimulator]) =>
    Array.from({ length: CLUBS }, async (_, nth): Promise<Club> => {
      const provider = registry.get(integration);
      if (provider === undefined) throw new Error(`there is no ${integration}`);
      const pos = await startSimulator({ hurry: 600 });
      const locationId = `${integration}-${nth + 1}`;
      const settings = provider.settings.parse(pos.settings);
      const url = publicUrl + (await world.open(pool, { locationId, integration, settings: pos.settings }));
      return { locationId, integration, provider, settings, pos, url };
    }),
  );
  return Promise.all(opening);
}
