import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { rankOf, type Status } from '../../src/core/domain/lifecycle.ts';
import { copyDataDirectory } from '../../world/postgres/copy-data-directory.ts';
import { runToEnd } from '../../world/processes/run-program.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import type { Ticket } from '../../world/pos/start-pos.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';
import { until } from '../../world/processes/until.ts';
import { startFaultProxy } from './fault-proxy.ts';
import { makeSynchronous, type StageDatabase } from './faulty-postgres.ts';
import { recordHistory } from './history.ts';
import { ask } from './neighbour.ts';
import { sendStatus, type Kitchen } from './send-status.ts';
import { setStage, type Stage } from './set-stage.ts';
import { resolveDoubts, settle } from './settle.ts';

export const CASES = ['synchronous standby', 'asynchronous standby', 'base backup and WAL'] as const;
export type Case = (typeof CASES)[number];

/** What one case cost. */
export type Drilled = {
  case: Case;
  /** Orders and webhooks (answered 200) that the new database lacked at first. */
  ordersLost: number;
  webhooksLost: number;
  /** Seconds from the primary's death until a webhook was committed again, and until everything was settled. */
  webhooksAfterS: number;
  settledAfterS: number;
  /** Orders that `expediter recover` named. */
  named: number;
  /** Orders that a person had to look up at a POS. */
  byPerson: number;
  /** At the end: orders that are not settled, and orders with a status below one that was answered 200. */
  unsettled: number;
  statusesLost: number;
  secondTickets: { deduplicating: number; others: number };
};

export type DrillAbout = {
  cases: readonly Case[];
  /** Open orders in the backup. */
  orders: number;
  perSecond: number;
  /** Seconds of load before the fault, and the seconds that are lost. */
  seconds: number;
  lostS: number;
  /** False to leave out `expediter recover`, to see what it is good for. */
  recovers?: boolean;
  print: (line: string) => void;
};

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const SETTINGS = { fsync: 'off', max_connections: '100' };
/** A file in the archive. From then on, WAL does not arrive there. */
const CLOSED = 'closed';
const STEPS: readonly Status[] = ['received', 'in_progress', 'ready', 'completed'];
const STEP_MS = 1_500;
const RETRY_MS = 500;
const SETTLE_S = 200;
/** Load after the recovery. */
const AFTER_MS = 3_000;
/** The goals of docs/recovery.md, in seconds. */
const WITHIN_S: Record<Case, number> = {
  'synchronous standby': 60,
  'asynchronous standby': 60,
  'base backup and WAL': 900,
};

/** @returns a sentence for each goal that a case misses */
export function judgeDrill(drilled: Drilled): string[] {
  const within = WITHIN_S[drilled.case];
  const faults = {
    'orders or webhooks were lost':
      drilled.case === 'synchronous standby' && drilled.ordersLost + drilled.webhooksLost > 0,
    [`webhooks were committed later than after ${within} s`]: !(drilled.webhooksAfterS <= within),
    'a POS that deduplicates has a second ticket': drilled.secondTickets.deduplicating > 0,
    'orders are not settled': drilled.unsettled > 0,
    'statuses that were answered 200 are lost': drilled.statusesLost > 0,
  };
  return Object.entries(faults).flatMap(([words, isSo]) => (isSo ? `${drilled.case}: ${words}` : []));
}

/** Plays the cases one after another, each on its own stage with two processes. */
export async function runDrill(about: DrillAbout): Promise<Drilled[]> {
  const drilled: Drilled[] = [];
  for (const each of about.cases) {
    about.print(`${each}: starting Postgres, two processes and eight locations`);
    drilled.push(await drill(each, about));
  }
  return drilled;
}

/** The primary of one case, and what replaces it. */
type Databases = {
  primary: Postgres;
  /** Makes the copy that is promoted or restored. */
  copy(): Promise<void>;
  /** From now on, commits of the primary are lost with it. */
  lose(): Promise<void>;
  /** Makes the new database out of the copy, after the primary's death. */
  replace(): Promise<Postgres>;
  /** Stops all servers and removes all folders. */
  stop(): Promise<void>;
};

async function drill(name: Case, about: DrillAbout): Promise<Drilled> {
  const databases = await (name === 'base backup and WAL' ? archived() : replicated(name === 'synchronous standby'));
  const proxy = await startFaultProxy({ targetPort: databases.primary.port });
  const database: StageDatabase = {
    databaseUrl: databases.primary.url,
    serviceUrl: proxy.through(databases.primary.url),
    async stopDatabase() {
      await proxy.stop();
      await databases.stop();
    },
  };
  const history = recordHistory();
  const fixed = { seed: 1, deadlineS: 1_800, findable: true };
  const stage = await setStage({ database, history, ...fixed }).catch(async (error: unknown) => {
    await database.stopDatabase();
    throw error;
  });
  let evening: Evening | undefined;
  try {
    await storeMessages(stage);
    if (name === 'base backup and WAL') await seedOpenOrders(stage, about.orders);
    await databases.copy();
    evening = playEvening(stage, about.perSecond);
    await sleep(about.seconds * 1_000);
    const lostFrom = new Date();
    await databases.lose();
    await sleep(about.lostS * 1_000);

    const diedAt = performance.now();
    const after = (): number => Math.round((performance.now() - diedAt) / 100) / 10;
    const before = evening.snapshot();
    await databases.primary.kill();
    const died = new Date();
    const isRestored = name === 'base backup and WAL';
    if (isRestored) await stage.instances.stop();
    const promoted = await databases.replace();
    stage.databaseUrl = promoted.url;
    const lost = await missingIn(promoted.url, before);
    let recovered: Recovered = { ok: true, named: 0 };
    const recover = (...args: string[]): Promise<Recovered> => recoverOnce(stage, args);
    if (isRestored && about.recovers !== false)
      recovered = await recover('--lost-from', lostFrom.toISOString(), '--lost-until', died.toISOString());
    proxy.lead(promoted.port);
    if (isRestored) await stage.instances.start();
    await until(() => hasCommitted(promoted.url, died));
    const webhooksAfterS = after();
    about.print(`${name}: webhooks are committed again after ${webhooksAfterS} s`);
    if (name === 'asynchronous standby' && about.recovers !== false) {
      await stage.instances.stop();
      recovered = await recover('--lost-from', lostFrom.toISOString());
      await stage.instances.start();
    }
    await sleep(AFTER_MS);
    await evening.stop();

    const pool = new pg.Pool({ connectionString: promoted.url, max: 2 });
    try {
      let byPerson = 0;
      const ids = new Set(about.recovers === false ? [] : evening.orders.keys());
      for (let isOver = false; !isOver;) {
        await settle(pool, stage.pubsub, ids, SETTLE_S);
        const resolved = await resolveDoubts(pool, stage.kitchens, history);
        byPerson += resolved;
        if (resolved > 0) continue;
        const isNeeded = name !== 'synchronous standby' && about.recovers !== false;
        if (isNeeded) recovered = await recover();
        isOver = !isNeeded || recovered.ok;
      }
      return {
        case: name,
        ...lost,
        webhooksAfterS,
        settledAfterS: after(),
        named: recovered.named,
        byPerson,
        ...(await leftIn(pool, evening)),
        secondTickets: secondTickets(stage.kitchens),
      };
    } finally {
      await pool.end();
    }
  } finally {
    await evening?.stop();
    await stage.stop();
  }
}

/** A primary with a standby, which is promoted. */
async function replicated(isSynchronous: boolean): Promise<Databases> {
  const primary = await startPostgres({ settings: SETTINGS });
  const line = await startFaultProxy({ targetPort: primary.port });
  let standby: Postgres | undefined;
  return {
    primary,
    async copy() {
      standby = await startPostgres({ settings: SETTINGS, standbyOf: line.through(primary.url) });
      if (isSynchronous) await makeSynchronous(primary);
    },
    async lose() {
      if (isSynchronous) return;
      line.refuse();
      line.resetAll();
    },
    async replace() {
      if (standby === undefined) throw new Error('there is no standby');
      await ask(standby.url, 'SELECT pg_promote()');
      return standby;
    },
    async stop() {
      await line.stop();
      await Promise.all([primary.stop(), standby?.stop()]);
    },
  };
}

/** A primary with archived WAL. Its base backup is restored. */
async function archived(): Promise<Databases> {
  const user = unprivilegedUser();
  const folder = mkdtempSync(join(sharedTmpdir(user), 'drill-'));
  const [base, archive] = [join(folder, 'base'), join(folder, 'archive')];
  mkdirSync(archive);
  if (user !== undefined) for (const each of [folder, archive]) chownSync(each, user.uid, user.gid);
  const settings = {
    ...SETTINGS,
    archive_mode: 'on',
    archive_command: `test ! -e ${archive}/${CLOSED} && cp %p ${archive}/%f`,
  };
  const primary = await startPostgres({ settings });
  let restored: Postgres | undefined;
  return {
    primary,
    copy: () => copyDataDirectory(primary.url, base),
    async lose() {
      const client = new pg.Client({ connectionString: primary.url });
      await client.connect();
      // An empty segment is not switched.
      await client.query(`SELECT pg_logical_emit_message(true, 'drill', 'switch')`);
      const { rows } = await client.query<{ wal: string }>('SELECT pg_walfile_name(pg_switch_wal()) AS wal');
      await until(async () => {
        const archiver = await client.query<{ last: string | null }>(
          'SELECT last_archived_wal AS last FROM pg_stat_archiver',
        );
        return (archiver.rows[0]?.last ?? '') >= (rows[0]?.wal ?? '');
      });
      await client.end();
      writeFileSync(join(archive, CLOSED), '');
    },
    async replace() {
      restored = await startPostgres({ settings: SETTINGS, backup: { base, archive } });
      await until(async () => !(await isInRecovery(restored?.url ?? '')));
      return restored;
    },
    async stop() {
      await Promise.all([primary.stop(), restored?.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isInRecovery(url: string): Promise<boolean> {
  const rows = await ask<{ recovers: boolean }>(url, 'SELECT pg_is_in_recovery() AS recovers');
  return rows[0]?.recovers !== false;
}

async function hasCommitted(url: string, since: Date): Promise<boolean> {
  const sql = 'SELECT EXISTS (SELECT FROM webhooks WHERE received_at > $1) AS has';
  return (await ask<{ has: boolean }>(url, sql, [since]))[0]?.has === true;
}

/** Makes the subscriptions that `expediter recover` reads. */
async function storeMessages({ pubsub, env }: Stage<StageDatabase>): Promise<void> {
  const client = new PubSub({
    projectId: env['GOOGLE_CLOUD_PROJECT'] ?? '',
    apiEndpoint: pubsub.host,
    emulatorMode: true,
  });
  for (const topic of ['orders', 'order-status']) await client.topic(topic).createSubscription(`${topic}-replay`);
  await client.close();
}

/** Inserts open orders as if they had been placed and sent. */
async function seedOpenOrders({ databaseUrl, kitchens }: Stage<StageDatabase>, count: number): Promise<void> {
  const locations = kitchens.flatMap(({ locationId, integration }) => (integration === 'standard' ? locationId : []));
  const contents = sampleOrder({ serviceOrderId: '', locationId: '' });
  await ask(
    databaseUrl,
    `WITH new AS MATERIALIZED (
       SELECT 'open-' || nth AS id, ($2::text[])[nth % cardinality($2::text[]) + 1] AS at, 'ticket-' || nth AS pos_id
       FROM generate_series(1, $1::int) AS nth
     ), p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, provider_order_id, finished_at)
       SELECT id, at, 'sent', now(), pos_id, now() FROM new
     ), i AS (
       INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
       SELECT at, 'standard', pos_id, id FROM new
     ), c AS (
       INSERT INTO order_contents (service_order_id, contents)
       SELECT id, $3::jsonb || jsonb_build_object('serviceOrderId', id, 'locationId', at) FROM new
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, provider_order_id)
     SELECT id, 'K472', at, 'standard', 'pickup', 20, 3, pos_id FROM new`,
    [count, locations, JSON.stringify(contents)],
  );
}

/** What happened outside: orders by id, with the highest rank of a status that was answered 200. */
type Evening = {
  orders: ReadonlyMap<string, number>;
  /** Orders with a ticket, and stored webhooks, so far. */
  snapshot(): { orders: string[]; webhooks: string[] };
  /** Places no more orders, and waits until the kitchens have reported all of their tickets. Safe to repeat. */
  stop(): Promise<void>;
};

/** Members order, and kitchens cook. A webhook that is not answered 200 is sent again. */
function playEvening(stage: Stage<StageDatabase>, perSecond: number): Evening {
  const orders = new Map<string, number>();
  const webhooks: string[] = [];
  const cooking = new Set<Promise<void>>();
  let nth = 0;
  const timer = setInterval(() => {
    nth += 1;
    const kitchen = stage.kitchens[nth % stage.kitchens.length];
    const serviceOrderId = `order-${nth}`;
    orders.set(serviceOrderId, 0);
    stage.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId: kitchen?.locationId ?? '' }));
    void stage.orders.publishMessage({ json: { orderId: serviceOrderId } });
  }, 1_000 / perSecond);

  const cook = async (kitchen: Kitchen, { serviceOrderId, providerOrderId }: Ticket): Promise<void> => {
    for (const status of STEPS) {
      await sleep(STEP_MS);
      for (let isKnown = false; !isKnown;) {
        const answer = await sendStatus(kitchen, { serviceOrderId, providerOrderId, status }, 5_000);
        isKnown = answer.status === 200;
        if (!isKnown) await sleep(RETRY_MS);
        else if (answer.outcome === 'applied') webhooks.push(answer.webhookId);
      }
      orders.set(serviceOrderId, Math.max(orders.get(serviceOrderId) ?? 0, rankOf(status)));
    }
  };
  for (const kitchen of stage.kitchens) {
    kitchen.pos.onTicket = (ticket) => {
      const done = cook(kitchen, ticket).finally(() => cooking.delete(done));
      cooking.add(done);
    };
  }
  return {
    orders,
    snapshot: () => ({
      orders: stage.kitchens.flatMap(({ pos }) => pos.tickets.map(({ serviceOrderId }) => serviceOrderId)),
      webhooks: [...webhooks],
    }),
    async stop() {
      clearInterval(timer);
      await Promise.all(cooking);
    },
  };
}

async function missingIn(
  url: string,
  { orders, webhooks }: ReturnType<Evening['snapshot']>,
): Promise<Pick<Drilled, 'ordersLost' | 'webhooksLost'>> {
  const [counts] = await ask<Pick<Drilled, 'ordersLost' | 'webhooksLost'>>(
    url,
    `SELECT (SELECT count(*)::int FROM unnest($1::text[]) AS id
             WHERE NOT EXISTS (SELECT FROM placements WHERE service_order_id = id)) AS "ordersLost",
            (SELECT count(*)::int FROM unnest($2::uuid[]) AS sent
             WHERE NOT EXISTS (SELECT FROM webhooks WHERE id = sent)) AS "webhooksLost"`,
    [[...new Set(orders)], webhooks],
  );
  if (counts === undefined) throw new Error('no answer');
  return counts;
}

async function leftIn(pool: pg.Pool, { orders }: Evening): Promise<Pick<Drilled, 'unsettled' | 'statusesLost'>> {
  const { rows } = await pool.query<Pick<Drilled, 'unsettled' | 'statusesLost'>>(
    `SELECT count(*) FILTER (WHERE p.finished_at IS NULL)::int AS unsettled,
            count(*) FILTER (WHERE o.rank IS NULL OR o.rank < known.rank)::int AS "statusesLost"
     FROM unnest($1::text[], $2::int[]) AS known(id, rank)
     LEFT JOIN placements p ON p.service_order_id = id LEFT JOIN orders o ON o.service_order_id = id`,
    [[...orders.keys()], [...orders.values()]],
  );
  if (rows[0] === undefined) throw new Error('no answer');
  return rows[0];
}

function secondTickets(kitchens: readonly Kitchen[]): Drilled['secondTickets'] {
  const counts = { deduplicating: 0, others: 0 };
  for (const { integration, pos } of kitchens) {
    const again = pos.tickets.length - new Set(pos.tickets.map(({ serviceOrderId }) => serviceOrderId)).size;
    counts[integration === 'standard' ? 'deduplicating' : 'others'] += again;
  }
  return counts;
}

type Recovered = { ok: boolean; named: number };

async function recoverOnce({ env, databaseUrl }: Stage<StageDatabase>, args: readonly string[]): Promise<Recovered> {
  const sources = ['--signals', 'orders-replay', '--live', 'order-status-replay', '--quiet', '2'];
  const { out, error } = await runToEnd(CLI, { ...env, DATABASE_URL: databaseUrl }, [
    'recover',
    ...sources,
    ...args,
    '--json',
  ]);
  if (out === '') throw new Error(`recover failed: ${error}`);
  return JSON.parse(out) as Recovered;
}
