import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub, type Topic } from '@google-cloud/pubsub';
import pg from 'pg';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { issueSignalToken } from '../../src/core/signals/signal-tokens.ts';
import { migrate } from '../../src/database/migrate.ts';
import { loadProviders } from '../../src/providers/index.ts';
import { ALLOW_PRIVATE_HOSTS, allowedHosts } from '../../world/network/allowed-loopback.ts';
import { freePort } from '../../world/network/free-port.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPos } from '../../world/pos/start-pos.ts';
import type { Message } from '../../world/pubsub/queue-messages.ts';
import { startPubsub, type Pubsub } from '../../world/pubsub/start-pubsub.ts';
import { startReceiver, type Receiver } from '../../world/receiver/start-receiver.ts';
import type { Doors } from '../../world/system/fixtures.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { FOLLOW_ENV, memberToken } from '../../world/members/member-token.ts';
import { until } from '../../world/processes/until.ts';
import type { FaultyPostgres, StageDatabase } from './faulty-postgres.ts';
import type { History } from './history.ts';
import { fileIn, runPrevious, type Version } from './previous-version.ts';
import { runInstances, type Instances } from './run-instances.ts';
import type { Kitchen, Vendor } from './send-status.ts';
import { VENDORS } from './send-webhook.ts';

/** The whole system around the service. By default, its database supports every fault. */
export type Stage<Database extends StageDatabase = FaultyPostgres> = Database & {
  pubsub: Pubsub;
  platform: OrderingPlatform;
  kitchens: readonly Kitchen[];
  instances: Instances;
  /** The environment of the processes. */
  env: Readonly<Record<string, string>>;
  /** The URL of the load balancer. */
  url: string;
  /** The topic for signals. */
  orders: Topic;
  /** Signals an order by the doors of the stage. @throws Error if the signal was not taken */
  signal(serviceOrderId: string): Promise<void>;
  /** The live messages in the order in which the topic or the receiver has taken them. */
  published(): readonly Message[];
  /** The receiver of statuses, with the doors `http`. */
  receiver: Receiver | undefined;
  /** Texts that must never appear in a log. */
  secrets: readonly string[];
  stop(): Promise<void>;
};

const PROJECT = 'chaos';
const AUDIENCE = 'https://expediter.chaos/pubsub/push';
const SERVICE_ACCOUNT = 'push@chaos.iam.gserviceaccount.com';
const PLATFORM_TOKEN = 'platform-token-planted';
const OPERATOR_TOKEN = 'tCEJWAjXClWsshxfeVBWdOJYs2HueivmVR02ITrreIk';
const POS_SECRET = `whsec_${Buffer.from('planted, never to be logged').toString('base64')}`;
const KEY = Buffer.alloc(32, 7).toString('base64');
const SETTINGS_KEY = `chaos:${KEY}`;
/** The bytes of bodies that a process may hold. They are few, so that slow senders can use up all of them. */
export const BODY_BUDGET = 4 * 2 ** 20;
export const SPILL_SUBSCRIPTION = 'spill-drain';
/** The most that Google allows, because an outage of minutes must not lose an order. */
const DELIVERY_ATTEMPTS = 100;
/** The waits before Pub/Sub sends a refused message again. */
const AGAIN = { minimumBackoff: { nanos: 1e8 }, maximumBackoff: { seconds: 3 } };
/** Options of a call by the publisher, the same as the service's. */
const PATIENCE = { timeout: 5_000, retry: null };

const OURS = fileURLToPath(new URL('../..', import.meta.url));
/** Of this version, also for the processes of the previous one, which can load it. */
const ORDER_MODULE = join(OURS, 'examples/order-with-cancels.ts');
const modulesIn = (folder: string): string[] =>
  ['pos-without-deduplication.ts', 'findable-pos.ts'].map((file) =>
    fileIn(folder, `world/pos/${file}`, `test/support/${file}`),
  );

/** Sets up the whole system around the processes of the service, on free ports of 127.0.0.1. */
export async function setStage<Database extends StageDatabase>(about: {
  database: Database;
  seed: number;
  history: History;
  deadlineS: number;
  /** One location's POS is dead. */
  deadPos?: boolean;
  /** The clock of every other process is ten minutes ahead or behind. */
  clocks?: boolean;
  /** True to add locations whose POS must be queried before a repeat. */
  findable?: boolean;
  /** How signals come in and statuses go out; by default by Pub/Sub. */
  doors?: Doors;
  /** How many processes; two by default. */
  places?: number;
  /** The version with which all begins; by default ours. It makes the schema and the locations too. */
  previous?: Version | undefined;
  /** How webhooks are repeated: the locations get these vendors in turn; by default all of VENDORS. */
  vendors?: readonly Vendor[];
}): Promise<Stage<Database>> {
  const { database, places = 2, vendors = VENDORS, previous } = about;
  const [pubsub, platform] = await Promise.all([
    startPubsub({ pushBackoff: { minMs: 100, maxMs: 3_000 }, pushSlowdown: { minMs: 50, maxMs: 2_000 } }),
    startOrderingPlatform({ token: PLATFORM_TOKEN }),
  ]);
  if (previous === undefined) await migrate(database.databaseUrl);
  else await runPrevious(previous, { DATABASE_URL: database.databaseUrl }, ['migrate']);

  const client = new PubSub({ projectId: PROJECT, apiEndpoint: pubsub.host, emulatorMode: true });
  const [[orders], [dead], [spill], [spillDead]] = await Promise.all([
    client.createTopic('orders', PATIENCE),
    client.createTopic('orders-dead', PATIENCE),
    client.createTopic('spill', PATIENCE),
    client.createTopic('spill-dead', PATIENCE),
    client.createTopic('order-status', PATIENCE),
  ]);
  await spill.createSubscription(SPILL_SUBSCRIPTION, {
    ackDeadlineSeconds: 30,
    retryPolicy: AGAIN,
    deadLetterPolicy: { deadLetterTopic: spillDead.name, maxDeliveryAttempts: DELIVERY_ATTEMPTS },
    gaxOpts: PATIENCE,
  });

  let instances: Instances | undefined;
  const balancer = await balanceLoad(() => instances?.urls() ?? []);
  const kitchens = await openKitchens({ ...about, vendors }, database.databaseUrl, balancer);
  const http = about.doors === 'http' ? await openHttpDoors(database.databaseUrl, balancer) : undefined;
  const folders = previous === undefined ? [OURS] : [previous.folder, OURS];

  const envIn = (folder: string): Record<string, string> => ({
    DATABASE_URL: database.serviceUrl,
    HOST: '127.0.0.1',
    ORDER_API_URL: platform.url,
    ORDER_API_TOKEN: PLATFORM_TOKEN,
    ORDER_MODULE,
    ...(http?.env ?? pubsubEnv(pubsub)),
    SETTINGS_KEY,
    ALLOW_PRIVATE_HOSTS,
    OPERATOR_TOKEN,
    ...FOLLOW_ENV,
    PROVIDER_MODULES: modulesIn(folder).join(','),
    PLACEMENT_DEADLINE_S: String(about.deadlineS),
    DRAIN_DELAY_MS: '2000',
    BODY_BUDGET: String(BODY_BUDGET),
  });
  instances = await runInstances({
    seed: about.seed,
    clocks: about.clocks === true,
    history: about.history,
    places,
    programs: folders.map((folder) => ({ main: join(folder, 'src/main.ts'), env: envIn(folder) })),
  });
  await pushOrders(orders, dead.name, balancer.url);

  // Waits for the load balancer, which checks the readiness of the processes only at intervals.
  await until(async () => (await fetch(`${balancer.url}/readyz`)).ok);

  const { stop } = instances;
  const topic = client.topic('orders', { gaxOpts: PATIENCE, batching: { maxMilliseconds: 1 } });
  return Object.assign(database, {
    env: envIn(OURS),
    pubsub,
    platform,
    kitchens,
    instances,
    url: balancer.url,
    orders: topic,
    signal: http?.signal ?? (async (orderId) => void (await topic.publishMessage({ json: { orderId } }))),
    published: http?.published ?? (() => pubsub.published('order-status')),
    receiver: http?.receiver,
    secrets: [
      PLATFORM_TOKEN,
      OPERATOR_TOKEN,
      POS_SECRET,
      KEY,
      // The header of a follow token, with which every follow token begins.
      (await memberToken('any')).split('.')[0] ?? '',
      ...(http?.secrets ?? []),
      ...kitchens.map(({ webhookUrl }) => new URL(webhookUrl).searchParams.get('token') ?? ''),
    ],
    async stop() {
      await stop();
      await client.close();
      await Promise.all([balancer.stop(), pubsub.stop(), platform.stop(), ...kitchens.map(({ pos }) => pos.stop())]);
      await http?.receiver.stop();
      await database.stopDatabase();
    },
  });
}

/** Has Pub/Sub push the signals to the processes. */
async function pushOrders(orders: Topic, deadLetterTopic: string, url: string): Promise<void> {
  await orders.createSubscription('orders-push', {
    ackDeadlineSeconds: 10,
    retryPolicy: AGAIN,
    deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: DELIVERY_ATTEMPTS },
    pushConfig: {
      pushEndpoint: `${url}/pubsub/push`,
      oidcToken: { serviceAccountEmail: SERVICE_ACCOUNT, audience: AUDIENCE },
    },
    gaxOpts: PATIENCE,
  });
}

const pubsubEnv = ({ host, jwksUrl }: Pubsub) => ({
  GOOGLE_CLOUD_PROJECT: PROJECT,
  PUBSUB_EMULATOR_HOST: host,
  SPILL_TOPIC: 'spill',
  PUSH_AUDIENCE: AUDIENCE,
  PUSH_SERVICE_ACCOUNT: SERVICE_ACCOUNT,
  PUSH_JWKS_URL: jwksUrl,
});

/** Signals by POST /signal, and a receiver of statuses. The service has no Google project. */
async function openHttpDoors(databaseUrl: string, balancer: HttpServer) {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const receiver = await startReceiver();
  try {
    const { token } = await issueSignalToken(pool, parseSettingsKeys(SETTINGS_KEY), { kind: 'plain', secrets: [] });
    return {
      env: { STATUS_WEBHOOK_URL: receiver.url, STATUS_WEBHOOK_SECRET: receiver.secret, PUBLIC_URL: balancer.url },
      receiver,
      secrets: [token, receiver.secret],
      async signal(orderId: string): Promise<void> {
        const body = JSON.stringify({ orderId });
        const signal = AbortSignal.timeout(PATIENCE.timeout);
        const answer = await fetch(`${balancer.url}/signal?token=${token}`, { method: 'POST', body, signal });
        await answer.arrayBuffer();
        if (answer.status !== 204) throw new Error(`a signal was answered ${answer.status}`);
      },
      published: (): readonly Message[] =>
        receiver.taken.map(({ id, subject, sequence, event }) => ({
          messageId: id,
          publishTime: new Date(String(event['time'])),
          data: Buffer.from(JSON.stringify(event['data'])),
          attributes: { sequence: String(sequence) },
          orderingKey: subject,
        })),
    };
  } finally {
    await pool.end();
  }
}

async function openKitchens(
  about: { deadPos?: boolean; findable?: boolean; vendors: readonly Vendor[]; previous?: Version | undefined },
  databaseUrl: string,
  balancer: HttpServer,
): Promise<Kitchen[]> {
  const integrations = ['standard', 'standard', 'standard', 'standard', 'standard', 'blind'];
  if (about.findable) integrations.push('findable', 'findable');
  const registry = await loadProviders(modulesIn(OURS));
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const pool = new pg.Pool({ connectionString: databaseUrl });
  try {
    return await Promise.all(
      integrations.map(async (integration, nth): Promise<Kitchen> => {
        const locationId = `club-${nth + 1}`;
        const dead = about.deadPos === true && nth === 1;
        const signs = integration === 'standard';
        const pos = await startPos(signs ? { secret: POS_SECRET } : { deduplicates: false });
        const ordersUrl = dead ? `http://127.0.0.1:${await freePort()}/orders` : pos.ordersUrl;
        // One POS has no cancel call, so its orders must be cancelled by phone.
        const cancelUrl = nth === 4 ? undefined : pos.cancelUrl;
        const settings = { ordersUrl, cancelUrl, ...(signs && { secret: POS_SECRET }) };
        const rules = { registry, keys, publicUrl: undefined, allowedHosts };
        const location = { locationId, integration, settings };
        if (about.previous === undefined) await putLocation(pool, rules, location);
        const { token } =
          about.previous === undefined
            ? await issueToken(pool, { locationId })
            : await putByCommand(about.previous, { DATABASE_URL: databaseUrl, PUBLIC_URL: balancer.url }, location);
        const webhookUrl = `${balancer.url}/webhook/${integration}/${locationId}?token=${token}`;
        const vendor = about.vendors[nth % about.vendors.length];
        if (vendor === undefined) throw new Error('no vendor');
        return { locationId, integration, pos, vendor, webhookUrl, dead };
      }),
    );
  } finally {
    await pool.end();
  }
}

/** The functions of this version may use columns that the schema of the previous one lacks. */
async function putByCommand(
  previous: Version,
  env: Record<string, string>,
  { locationId, integration, settings }: { locationId: string; integration: string; settings: object },
): Promise<{ token: string }> {
  const all = { ...env, SETTINGS_KEY, ALLOW_PRIVATE_HOSTS, PROVIDER_MODULES: modulesIn(previous.folder).join(',') };
  const put = ['location', 'put', '--location', locationId, '--integration', integration, '--settings', '-'];
  await runPrevious(previous, all, put, JSON.stringify(settings));
  return JSON.parse(await runPrevious(previous, all, ['token', 'issue', '--location', locationId, '--json'])) as {
    token: string;
  };
}
