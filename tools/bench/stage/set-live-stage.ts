import pg from 'pg';
import { compileService } from './compile-service.ts';
import { forkChild, type Child } from './fork-child.ts';
import type { Offered, Steady } from '../load/offer-steadily.ts';
import { prepareBenchDatabase, type BenchDatabase, type Sender } from './prepare-bench-database.ts';
import { processorMs } from '../measure/processor-ms.ts';
import type { Received, Receiving } from '../load/receive-live.ts';
import type { Published } from './serve-pubsub.ts';
import { startService, type Service } from './start-service.ts';

/** One process each for the service, Pub/Sub, the sender, the subscriber, and each other program that is started. */
export type LiveStage = {
  databaseUrl: string;
  senders: readonly Sender[];
  /** The harness's own connection, so that none of the service's is used. */
  client: pg.Client;
  /**
   * Resolves when the service is ready. Webhooks that are signed later are sent to it.
   * @param name the name of this process, if there are two. A running process with that name is stopped first
   */
  startService(name?: string, env?: Record<string, string>): Promise<Service>;
  stopService(name?: string): Promise<void>;
  /** Starts a program of this directory. If it already runs, it is stopped first. */
  start(name: string): Promise<Child>;
  /** Resolves when everything is signed, with a function that sends it. */
  sign(load: Omit<Steady, 'url' | 'senders'>): Promise<() => Promise<Offered>>;
  /** Resolves when the receiver listens, with a function that resolves when all messages are received. */
  listen(receiving: Pick<Receiving, 'messages' | 'withinS'>): Promise<() => Promise<Received>>;
  /** Counts the messages of the topic so far, with repeats. */
  published(): Promise<number>;
  /** Starts a measurement. Its result describes each process's share of a core since then. */
  watchProcessors(): () => string;
  stop(): Promise<void>;
};

const PROJECT = 'bench';
const TOPIC = 'order-status';
/** So many that none sends more than its share, because refusals are not the subject. */
const LOCATIONS = 100;

/** @param serverUrl a Postgres, in which it creates a database if `ready` is none */
export async function setLiveStage(serverUrl: string, ready?: BenchDatabase): Promise<LiveStage> {
  const main = await compileService();
  const { databaseUrl, senders } =
    ready ?? (await prepareBenchDatabase(serverUrl, { name: 'bench_live', locations: LOCATIONS }));
  const running = new Map<string, { pid: number; stop(): Promise<void> }>();
  /** Stops a child of the same name first. */
  const start = async (name: string, args: readonly string[] = []): Promise<Child> => {
    await running.get(name)?.stop();
    const child = forkChild(`${name}.ts`, args);
    running.set(name, child);
    return child;
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...running.values()].map((each) => each.stop()));
  };
  const client = new pg.Client(databaseUrl);
  let pubsub: Child;
  let host: string;
  try {
    pubsub = await start('stage/serve-pubsub', [PROJECT, TOPIC]);
    ({ host } = await pubsub.ask<Published>({}));
    await client.connect();
  } catch (error) {
    await stop();
    throw error;
  }
  let url = '';

  return {
    databaseUrl,
    senders,
    client,
    async startService(name = 'service', env = {}) {
      await running.get(name)?.stop();
      const service = await startService(main, {
        DATABASE_URL: databaseUrl,
        GOOGLE_CLOUD_PROJECT: PROJECT,
        STATUS_TOPIC: TOPIC,
        PUBSUB_EMULATOR_HOST: host,
        ...env,
      });
      running.set(name, service);
      url = service.url;
      return service;
    },
    async stopService(name = 'service') {
      await running.get(name)?.stop();
    },
    start,
    async sign(load) {
      const sender = await start('load/offer-steadily');
      await sender.ask({ url, senders, ...load } satisfies Steady);
      return () => sender.ask<Offered>({});
    },
    async listen(receiving) {
      const subscriber = await start('load/receive-live');
      await subscriber.ask({ host, projectId: PROJECT, topic: TOPIC, ...receiving } satisfies Receiving);
      return () => subscriber.ask<Received>({});
    },
    async published() {
      return (await pubsub.ask<Published>({})).count;
    },
    watchProcessors() {
      const began = performance.now();
      const before = [...running].map(([name, { pid }]) => ({ name, pid, spentMs: processorMs(pid) }));
      return () => {
        const passed = performance.now() - began;
        const shares = before.flatMap(({ name, pid, spentMs }) => {
          const share = (processorMs(pid) - spentMs) / passed;
          return Number.isNaN(share) ? [] : [`${name} ${Math.round(100 * share)} %`];
        });
        return `of a core: ${shares.join(', ') || 'unknown'}`;
      };
    },
    async stop() {
      await stop();
      await client.end();
    },
  };
}
