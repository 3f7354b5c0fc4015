import type { ClientConfig, PubSub, v1 } from '@google-cloud/pubsub';
import { loadPubsub } from './load-pubsub.ts';

export type PubsubClient = {
  /** The library's client. It knows the address of Pub/Sub or of an emulator, and the full names of topics. */
  pubsub: PubSub;
  /** The low-level client, which the library generates from Pub/Sub's interface. */
  publisher: v1.PublisherClient;
};

export type PubsubConnection = {
  /** The id of the Google Cloud project. */
  project: string;
  /** Loads the library, which takes 300 ms, and begins to search for credentials. */
  load(): Promise<void>;
  /** Returns the clients. @throws Error if there are no credentials. A later call searches again */
  client(): Promise<PubsubClient>;
  close(): Promise<void>;
};

/** The only connection of the process to Pub/Sub. It is opened when it is first needed. */
export function pubsubConnection(project: string): PubsubConnection {
  const open = async (): Promise<PubsubClient> => {
    const { PubSub, v1 } = await loadPubsub();
    const options: ClientConfig & Record<string, unknown> = {
      projectId: project,
      // With the defaults, the library would wait up to two minutes before it reconnects after an outage.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 1_000,
    };
    const pubsub = new PubSub(options);
    const publisher = new v1.PublisherClient({ ...(await pubsub.getClientConfig()) });
    // Searches for credentials now. A failure in the client's first call could not be caught and would end the process.
    await publisher.initialize();
    return { pubsub, publisher };
  };
  let opened: Promise<PubsubClient> | undefined;
  /** Makes the clients once. After a failure it makes new ones, because old ones never search for credentials again. */
  const client = (): Promise<PubsubClient> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    }));
  return {
    project,
    client,
    async load() {
      // Making the client blocks the process for 80 ms, so it is made early. The first message reports a failure.
      client().catch(() => {});
      await loadPubsub();
    },
    async close() {
      const { pubsub, publisher } = (await opened?.catch(() => undefined)) ?? {};
      await Promise.all([publisher?.close(), pubsub?.close()]);
    },
  };
}
