import type { ClientConfig, PubSub, v1 } from '@google-cloud/pubsub';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import type { Config } from '../config.ts';
import { loadPubsub } from '../pubsub/load-pubsub.ts';

export type PubsubClient = {
  /** The library's client. It resolves the address of Pub/Sub or of an emulator, and full names. */
  pubsub: PubSub;
  /** The client generated from Pub/Sub's interface. */
  publisher: v1.PublisherClient;
};

export type PubsubConnection = {
  /** Loads the library (300 ms, which would delay the start), and begins to search for credentials. */
  load(): Promise<void>;
  /** @throws if there are no credentials; a later call searches again */
  client(): Promise<PubsubClient>;
  close(): Promise<void>;
};

declare module 'fastify' {
  interface FastifyInstance {
    pubsub: PubsubConnection;
  }
}

/** The process's one connection to Pub/Sub, opened when it is first needed. */
export const pubsub = fp(
  async (app: FastifyInstance, { GOOGLE_CLOUD_PROJECT }: Pick<Config, 'GOOGLE_CLOUD_PROJECT'>) => {
    app.decorate('pubsub', pubsubConnection(GOOGLE_CLOUD_PROJECT));
  },
  { name: 'pubsub' },
);

function pubsubConnection(project: string): PubsubConnection {
  const open = async (): Promise<PubsubClient> => {
    const { PubSub, v1 } = await loadPubsub();
    const options: ClientConfig & Record<string, unknown> = {
      projectId: project,
      // After an outage the default would wait up to two minutes before it reconnects.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 1_000,
    };
    const pubsub = new PubSub(options);
    const publisher = new v1.PublisherClient({ ...(await pubsub.getClientConfig()) });
    // Searches for credentials here: a failure in the client's first call could not be caught, and would end the process.
    await publisher.initialize();
    return { pubsub, publisher };
  };
  let opened: Promise<PubsubClient> | undefined;
  /** A client without credentials never finds any later, so the next call makes a new client. */
  const client = (): Promise<PubsubClient> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    }));
  return {
    client,
    async load() {
      // Called early, because it blocks the process for 80 ms. The first message reports a failure.
      client().catch(() => {});
      await loadPubsub();
    },
    async close() {
      const { pubsub, publisher } = (await opened?.catch(() => undefined)) ?? {};
      await Promise.all([publisher?.close(), pubsub?.close()]);
    },
  };
}
