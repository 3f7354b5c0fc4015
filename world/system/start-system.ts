import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { readConfig } from '../../src/config/config.ts';
import { findWeakVariables } from '../../src/config/find-weak-variables.ts';
import { createLog } from '../../src/observe/create-log.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { BACKGROUND_WORK, type BackgroundWorkName } from '../../src/core/domain/observed.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { issueSignalToken } from '../../src/core/signals/signal-tokens.ts';
import type { AnswerLimits } from '../../src/http/webhook-routes.ts';
import { buildServer, type Server } from '../../src/server/build-server.ts';
import { asService } from './as-service.ts';
import {
  AUDIENCE,
  PROJECT,
  SERVICE_ACCOUNT,
  SHARED_ENV,
  UNHURRIED,
  fixturesOf,
  httpDoorsEnv,
  registryWith,
  type Doors,
  type Fixtures,
} from './fixtures.ts';
import { sampleOrder, type SampleOptions } from '../platform/sample-order.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../platform/start-ordering-platform.ts';
import { startPubsub, type Pubsub } from '../pubsub/start-pubsub.ts';
import { liveOf, startReceiver, type Receiver } from '../receiver/start-receiver.ts';
import { until } from '../processes/until.ts';

export { AUDIENCE, PROJECT, SERVICE_ACCOUNT } from './fixtures.ts';
export { statusWebhook } from '../pos/status-webhook.ts';

export type Answer = { status: number; body: Record<string, unknown>; headers: Headers };

export type System = Fixtures & {
  /** Of the role that owns the tables. */
  databaseUrl: string;
  /** The environment of the processes, to start more of them. Its DATABASE_URL is of a role that owns nothing. */
  env: Record<string, string>;
  /** As the processes' role. */
  pool: pg.Pool;
  platform: OrderingPlatform;
  /** With the doors `pubsub`, which are the default. */
  readonly pubsub: Pubsub;
  /** The platform's receiver of statuses, with the doors `http`. */
  readonly receiver: Receiver;
  /** URLs of the processes, in the order of their start. */
  urls: string[];
  /** The same of their operators' listeners; those of `urls` while OPERATOR_PORT is unset. */
  operatorUrls: string[];
  /** All log lines. */
  logged: string[];
  /** The webhook URL with a new token, at the first process. */
  webhookUrl(locationId: string, about?: { expiresAt?: Date }): Promise<string>;
  /** Signals an order id by the system's door: as Pub/Sub's push, or with a token. @returns the HTTP status */
  signal(serviceOrderId: string, path?: string): Promise<number>;
  /** The first process's URL for signals, with a token. It needs the doors `http`. */
  signalUrl(path?: string): string;
  /** Puts an order on the platform and signals it. */
  placeOrder(about?: SampleOptions): Promise<CanonicalOrder>;
  /** One order's messages as the topic or the receiver got them, without repeats, as readers are told to read them. */
  live(serviceOrderId: string): LiveMessage[];
  /**
   * Does one turn of a loop or a job that does not run automatically. @throws if the loop does run
   * @returns how many pieces a loop has done
   */
  round(name: Stepped, process?: number): Promise<unknown>;
  /** Does turns of a loop until one finds nothing. It also does the retries that become due meanwhile. */
  finish(loop: LoopName, process?: number): Promise<void>;
  /** Drains one process as SIGTERM would. */
  drain(index: number): Promise<void>;
  stop(): Promise<void>;
};

export type LoopName = 'placements' | 'refreshes' | 'cancellations' | 'relay' | 'kitchens' | 'attention' | 'notices';
type Stepped = LoopName | BackgroundWorkName;

/**
 * Starts the service in this process with real parts: Postgres, Pub/Sub over gRPC or HTTP, a platform over GraphQL. Its
 * loops run unless they are stepped. Its jobs run only if they are named. A test that counts exactly what a loop does, or
 * writes a column that the loop writes, steps the loop.
 */
export async function startSystem(
  about: {
    /** The loops that do a turn only when the test says so, with `round`. */
    stepped?: readonly LoopName[] | 'all';
    /** The jobs that repeat automatically. The others can be stepped. */
    jobs?: readonly BackgroundWorkName[] | 'all';
    providers?: Provider[];
    env?: Record<string, string>;
    processes?: number;
    /** The database, for the processes as well; by default a new one in the Postgres of all tests, with two roles. */
    databaseUrl?: string;
    /** Gets the database before the first connection. */
    prepare?: (databaseUrl: string) => Promise<void>;
    /** When webhooks are answered; by default a slow machine has time to commit them. */
    limits?: AnswerLimits;
    /** Whether secrets of the environment may be weak. */
    isWeak?: boolean;
    /** A Pub/Sub with the topics of an earlier system; it is not stopped. */
    pubsub?: Pubsub;
    doors?: Doors;
  } = {},
): Promise<System> {
  const [databaseUrl, doors, platform] = await Promise.all([
    // Only a test has the Postgres of all tests.
    about.databaseUrl ?? import('../postgres/create-database.ts').then(({ createDatabase }) => createDatabase()),
    about.doors === 'http' ? httpDoors() : pubsubDoors(about.pubsub, about.env),
    startOrderingPlatform({ token: 'platform-token' }),
  ]);
  await about.prepare?.(databaseUrl);

  const serviceUrl = about.databaseUrl ?? asService(databaseUrl);
  const env = withoutReplaced({
    DATABASE_URL: serviceUrl,
    ...doors.env,
    HOST: '127.0.0.1',
    PORT: '0',
    ORDER_API_URL: platform.url,
    DRAIN_DELAY_MS: '0',
    ...about.env,
  });
  const config = readConfig(env);
  if (about.isWeak !== true && findWeakVariables(config).length > 0) throw new Error('the test has a weak secret');
  const registry = registryWith(about.providers);
  const logged: string[] = [];
  const log = createLog(config.LOG_LEVEL, { write: (line: string) => void logged.push(line) });
  const { stepped = [], jobs = [] } = about;
  const runs = (loop: string): boolean =>
    isOneOf(loop, BACKGROUND_WORK)
      ? jobs === 'all' || jobs.includes(loop)
      : stepped !== 'all' && !isOneOf(loop, stepped);
  const running: Server[] = [];
  for (let i = 0; i < (about.processes ?? 1); i++) {
    running.push(await buildServer(config, { registry, log, env, limits: about.limits ?? UNHURRIED, runs }));
  }
  await Promise.all(running.map((each) => each.listen()));
  await Promise.all(running.map((each) => each.start()));
  const left = new Set(running);
  const urls = running.map(({ app }) => urlOf(app));
  const [pool, ownerPool] = [poolOf(serviceUrl), poolOf(databaseUrl)];
  const fixtures = fixturesOf({ pool, ownerPool, registry, config });
  const token = about.doors === 'http' ? await issueSignalToken(pool, config.SETTINGS_KEY, PLAIN) : undefined;

  const system: System = {
    databaseUrl,
    env,
    pool,
    platform,
    get pubsub() {
      return has(doors.pubsub, 'Pub/Sub');
    },
    get receiver() {
      return has(doors.receiver, 'receiver');
    },
    urls,
    operatorUrls: running.map(({ operatorApp }) => urlOf(operatorApp)),
    logged,
    ...fixtures,
    async webhookUrl(locationId, { expiresAt } = {}) {
      const { token, integration } = await issueToken(pool, { locationId, expiresAt });
      return `${urls[0]}/webhook/${integration}/${locationId}?token=${token}`;
    },
    signalUrl: (path = '/signal') => `${urls[0]}${path}?token=${has(token, 'token').token}`,
    signal: (serviceOrderId, path) =>
      token === undefined
        ? push({ pubsub: system.pubsub, url: urls[0] }, serviceOrderId, path)
        : signal(system.signalUrl(path), serviceOrderId),
    async placeOrder(sample) {
      const order = sampleOrder(sample);
      platform.orders.set(order.serviceOrderId, order);
      // Pub/Sub sends it again as well.
      const status = await until(async () => {
        const answer = await system.signal(order.serviceOrderId);
        return answer !== 503 && answer;
      });
      if (status !== 204) throw new Error(`the signal was answered ${status}`);
      return order;
    },
    live: (serviceOrderId) => doors.live(serviceOrderId),
    async round(name, process = 0) {
      const loop = running[process]?.parts
        .flatMap(({ loops = {} }) => Object.entries(loops))
        .find(([of]) => of === name);
      if (loop === undefined || runs(name)) throw new Error(`${name} runs by itself, or not at all in this system`);
      return loop[1].round();
    },
    async finish(loop, process) {
      while ((await system.round(loop, process)) !== 0);
    },
    async drain(index) {
      const ending = running[index];
      if (ending !== undefined && left.delete(ending)) await ending.drain();
    },
    async stop() {
      await Promise.all([...left].map((each) => each.drain()));
      await Promise.all([pool.end(), ownerPool.end(), platform.stop(), doors.stop()]);
    },
  };
  return system;
}

/** How a system is connected with its platform. */
type Connected = {
  env: Record<string, string>;
  pubsub?: Pubsub;
  receiver?: Receiver;
  live: System['live'];
  stop(): Promise<unknown>;
};

const PLAIN = { kind: 'plain', secrets: [] } as const;

async function pubsubDoors(given: Pubsub | undefined, env: Record<string, string> = {}): Promise<Connected> {
  const pubsub = given ?? (await startPubsub());
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
  await createTopics(env, given === undefined);
  return {
    env: { ...SHARED_ENV, PUBSUB_EMULATOR_HOST: pubsub.host, PUSH_JWKS_URL: pubsub.jwksUrl },
    pubsub,
    live: (serviceOrderId) => publishedOf(pubsub, serviceOrderId),
    stop: async () => given ?? (await pubsub.stop()),
  };
}

async function httpDoors(): Promise<Connected> {
  const receiver = await startReceiver();
  return { env: httpDoorsEnv(receiver), receiver, live: (id) => liveOf(receiver, id), stop: () => receiver.stop() };
}

/** A file of a secret replaces the secret that all systems have. */
function withoutReplaced(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => env[`${name}_FILE`] === undefined));
}

function poolOf(connectionString: string): pg.Pool {
  return new pg.Pool({ connectionString, max: 4 }).on('error', () => {});
}

function has<Part>(part: Part | undefined, name: string): Part {
  if (part === undefined) throw new Error(`a system with these doors has no ${name}`);
  return part;
}

/** Creates the topics of the environment, and a subscription to the spill. @param isNew false if another system has made the status topic */
async function createTopics(
  { SPILL_TOPIC, KITCHEN_TOPIC, ATTENTION_TOPIC }: Record<string, string>,
  isNew: boolean,
): Promise<void> {
  const client = new PubSub({ projectId: PROJECT });
  if (isNew) await client.createTopic('order-status');
  for (const topic of [KITCHEN_TOPIC, ATTENTION_TOPIC]) if (topic !== undefined) await client.createTopic(topic);
  if (SPILL_TOPIC !== undefined) {
    const [topic] = await client.createTopic(SPILL_TOPIC);
    // Come again at once, where Google's would take 10 s at the least.
    const retryPolicy = { minimumBackoff: { nanos: 1e8 }, maximumBackoff: { seconds: 1 } };
    await topic.createSubscription(`${SPILL_TOPIC}-drain`, { retryPolicy });
  }
  await client.close();
}

/** Pushes a signal, as Pub/Sub does. @returns the status of the answer */
async function push(
  { pubsub, url }: { pubsub: Pubsub; url: string | undefined },
  serviceOrderId: string,
  path = '/pubsub/push',
): Promise<number> {
  const token = await pubsub.signPushToken({ aud: AUDIENCE, email: SERVICE_ACCOUNT, email_verified: true });
  const data = Buffer.from(JSON.stringify({ orderId: serviceOrderId })).toString('base64');
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: { data, messageId: '1' }, subscription: 'projects/test/subscriptions/orders' }),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Signals an order by HTTP. @returns the status of the answer */
async function signal(url: string, orderId: string): Promise<number> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ orderId }) });
  await response.arrayBuffer();
  return response.status;
}

/** The live messages of an order on the topic, each once. */
function publishedOf(pubsub: Pubsub, serviceOrderId: string): LiveMessage[] {
  const messages = pubsub
    .published('order-status')
    .filter(({ attributes }) => attributes['serviceOrderId'] === serviceOrderId)
    .map((message) => JSON.parse(message.data.toString()) as LiveMessage);
  const isFirst = ({ sequence }: LiveMessage, nth: number): boolean =>
    messages.findIndex((each) => each.sequence === sequence) === nth;
  return messages.filter(isFirst);
}

const isOneOf = <Name extends string>(name: string, names: readonly Name[]): name is Name =>
  (names as readonly string[]).includes(name);

function urlOf({ server }: Server['app']): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return `http://127.0.0.1:${address.port}`;
}

/** Posts a body as a POS would. */
export async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
  });
  const text = await response.text();
  let parsed: Record<string, unknown> = {};
  try {
    parsed = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Not every answer is JSON.
  }
  return { status: response.status, body: parsed, headers: response.headers };
}
