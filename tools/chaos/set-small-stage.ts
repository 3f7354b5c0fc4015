import pg from 'pg';
import { migrate } from '../../src/database/migrate.ts';
import { prepareClock } from '../../world/processes/move-clock.ts';
import { runMain } from '../../world/processes/run-main.ts';
import type { OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import type { Postgres } from '../../world/postgres/start-postgres.ts';
import { askProcess } from './ask-process.ts';
import { ask } from './neighbour.ts';
import type { Hostility } from './offer-hostility.ts';
import type { Load, Offered } from './offer-load.ts';
import type { Flood } from './offer-anonymous.ts';
import { signalOrder } from './signal-order.ts';
import { startQuietWorld } from './start-quiet-world.ts';

/** One process of the service, with a platform, POS systems and Pub/Sub without faults, for one measured round. */
export type SmallStage = {
  databaseUrl: string;
  pool: pg.Pool;
  platform: OrderingPlatform;
  /** The POS of all locations except the first, and the POS of the first. */
  pos: Pos;
  firstPos: Pos;
  /** Webhook URLs in the order of the locations. */
  webhookUrls: string[];
  locationIds: string[];
  url: string;
  signal(serviceOrderId: string): Promise<void>;
  /** Stops or resumes reading the log of the process. */
  readLog(isRead: boolean): void;
  /** Sends from another process. */
  offer(load: Load): Promise<Offered>;
  offerFlood(flood: Omit<Flood, 'port'>): Promise<Record<string, number>>;
  offerHostility(about: { perSecond: number; seconds: number }): Promise<Record<string, number>>;
  stop(): Promise<void>;
};

const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
const OFFER_LOAD = new URL('./offer-load.ts', import.meta.url);
const OFFER_ANONYMOUS = new URL('./offer-anonymous.ts', import.meta.url);
const OFFER_HOSTILITY = new URL('./offer-hostility.ts', import.meta.url);

/**
 * @param about.firstSigns true if the first location's POS signs its webhooks
 * @param about.prepare gets the database, migrated and empty, before the service starts
 */
export async function setSmallStage(
  postgres: Postgres,
  about: { locations: number; firstSigns?: boolean; prepare?: (pool: pg.Pool, databaseUrl: string) => Promise<void> },
): Promise<SmallStage> {
  const databaseUrl = await makeDatabase(postgres.url);
  await prepareClock(databaseUrl);
  await migrate(databaseUrl);
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  const [world, pos, firstPos] = await Promise.all([startQuietWorld(databaseUrl), startPos(), startPos()]);

  const locationIds = Array.from({ length: about.locations }, (_, nth) => (nth === 0 ? 'club' : `club-${nth + 1}`));
  const paths = await Promise.all(
    locationIds.map((locationId, nth) => {
      const { ordersUrl } = nth === 0 ? firstPos : pos;
      const settings = { ordersUrl, ...(nth === 0 && about.firstSigns ? { secret: SECRET } : { unsigned: true }) };
      return world.open(pool, { locationId, integration: 'standard', settings });
    }),
  );
  await about.prepare?.(pool, databaseUrl);
  const main = await runMain(world.env);
  const port = Number(new URL(main.url).port);
  return {
    databaseUrl,
    pool,
    platform: world.platform,
    pos,
    firstPos,
    locationIds,
    webhookUrls: paths.map((path) => `${main.url}${path}`),
    url: main.url,
    signal: (serviceOrderId) => signalOrder(main.url, serviceOrderId),
    readLog: (isRead) => void (isRead ? main.child.stdout?.resume() : main.child.stdout?.pause()),
    offer: (load) => askProcess(OFFER_LOAD, load),
    offerFlood: (flood) => askProcess(OFFER_ANONYMOUS, { ...flood, port } satisfies Flood),
    offerHostility(about) {
      const token = new URLSearchParams(paths[0]?.split('?')[1]).get('token') ?? '';
      return askProcess(OFFER_HOSTILITY, { ...about, port, token } satisfies Hostility);
    },
    async stop() {
      main.child.kill('SIGTERM');
      await main.exited;
      await pool.end();
      await Promise.all([world.stop(), pos.stop(), firstPos.stop()]);
      await ask(postgres.url, `DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`);
    },
  };
}

let made = 0;

async function makeDatabase(serverUrl: string): Promise<string> {
  made += 1;
  const name = `round_${made}`;
  await ask(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
