import { fork } from 'node:child_process';
import { once } from 'node:events';
import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { putLocation } from '../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../src/core/locations/settings-key.ts';
import { issueToken } from '../src/core/locations/webhook-tokens.ts';
import { migrate } from '../src/database/migrate.ts';
import { registry } from '../src/providers/index.ts';
import { ALLOW_PRIVATE_HOSTS, allowedHosts } from '../test/support/allowed-loopback.ts';
import { prepareClock } from '../test/support/move-clock.ts';
import { runMain } from '../test/support/run-main.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../test/support/start-ordering-platform.ts';
import { startPos, type Pos } from '../test/support/start-pos.ts';
import type { Postgres } from '../test/support/start-postgres.ts';
import { startPubsub } from '../test/support/start-pubsub.ts';
import type { Hostility } from './offer-hostility.ts';
import type { Load, Offered } from './offer-load.ts';
import type { Flood } from './offer-anonymous.ts';
import { signalOrder } from './signal-order.ts';

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

const PROJECT = 'neighbours';
const SETTINGS_KEY = `small:${Buffer.alloc(32, 7).toString('base64')}`;
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
  const [pubsub, platform, pos, firstPos] = await Promise.all([
    startPubsub(),
    startOrderingPlatform(),
    startPos(),
    startPos(),
  ]);
  const client = new PubSub({ projectId: PROJECT, apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic('order-status');
  await client.close();

  const locationIds = Array.from({ length: about.locations }, (_, nth) => (nth === 0 ? 'club' : `club-${nth + 1}`));
  const paths = await Promise.all(
    locationIds.map(async (locationId, nth) => {
      const { ordersUrl } = nth === 0 ? firstPos : pos;
      const settings = { ordersUrl, ...(nth === 0 && about.firstSigns ? { secret: SECRET } : { unsigned: true }) };
      const keys = parseSettingsKeys(SETTINGS_KEY);
      await putLocation(
        pool,
        { registry, keys, publicUrl: undefined, allowedHosts },
        { locationId, integration: 'standard', settings },
      );
      const { token } = await issueToken(pool, { locationId });
      return `/webhook/standard/${locationId}?token=${token}`;
    }),
  );
  await about.prepare?.(pool, databaseUrl);
  const main = await runMain({
    DATABASE_URL: databaseUrl,
    HOST: '127.0.0.1',
    ORDER_API_URL: platform.url,
    GOOGLE_CLOUD_PROJECT: PROJECT,
    PUBSUB_EMULATOR_HOST: pubsub.host,
    PUSH_AUTH: 'off',
    SETTINGS_KEY,
    ALLOW_PRIVATE_HOSTS,
    DRAIN_DELAY_MS: '0',
  });
  return {
    databaseUrl,
    pool,
    platform,
    pos,
    firstPos,
    locationIds,
    webhookUrls: paths.map((path) => `${main.url}${path}`),
    url: main.url,
    signal: (serviceOrderId) => signalOrder(main.url, serviceOrderId),
    readLog: (isRead) => void (isRead ? main.child.stdout?.resume() : main.child.stdout?.pause()),
    offer: (load) => ask<Offered>(OFFER_LOAD, load),
    offerFlood: (flood) => ask(OFFER_ANONYMOUS, { ...flood, port: Number(new URL(main.url).port) }),
    offerHostility(about) {
      const { port } = new URL(main.url);
      const token = new URLSearchParams(paths[0]?.split('?')[1]).get('token') ?? '';
      return ask(OFFER_HOSTILITY, { ...about, port: Number(port), token } satisfies Hostility);
    },
    async stop() {
      main.child.kill('SIGTERM');
      await main.exited;
      await pool.end();
      await Promise.all([pubsub.stop(), platform.stop(), pos.stop(), firstPos.stop()]);
      await dropDatabase(postgres.url, databaseUrl);
    },
  };
}

async function ask<Answer>(program: URL, question: Load | Hostility | Flood): Promise<Answer> {
  const sender = fork(program);
  sender.send(question);
  const [answer] = (await once(sender, 'message')) as [Answer];
  return answer;
}

let made = 0;

async function makeDatabase(serverUrl: string): Promise<string> {
  made += 1;
  const name = `round_${made}`;
  await onServer(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

function dropDatabase(serverUrl: string, databaseUrl: string): Promise<void> {
  return onServer(serverUrl, `DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`);
}

async function onServer(serverUrl: string, sql: string): Promise<void> {
  const client = new pg.Client(serverUrl);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
