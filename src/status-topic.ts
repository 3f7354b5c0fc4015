import type { ClientConfig } from '@google-cloud/pubsub';
import type { LiveMessage } from './core/domain/live-message.ts';
import type { Publish } from './core/live/publish-live.ts';
import { loadPubsub } from './load-pubsub.ts';

/** Options of a call. The outbox retries: the library's own retries would hold a message back silently for minutes. */
const CALL = { timeout: 3_000, retry: null };

/**
 * The topic that members' clients read. The client library is loaded by `load` or the first message, since its 300 ms
 * would delay the start.
 *
 * Messages are sent by the client generated from Pub/Sub's interface. The library's `Topic` batches messages by a
 * timer, queues them by ordering key and stops a key at its first failure. The relay does all of that, and a request
 * has one ordering key, so `Topic` would only cost half as much processor time again, and a millisecond.
 */
export function statusTopic(about: { project: string; topic: string }): {
  /** Loads the library and starts to search for credentials. */
  load(): Promise<void>;
  publish: Publish;
  close(): Promise<void>;
} {
  const open = async () => {
    const { PubSub, v1 } = await loadPubsub();
    const options: ClientConfig & Record<string, unknown> = {
      projectId: about.project,
      // After an outage the default would wait up to two minutes before it reconnects.
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 1_000,
    };
    // It knows the address of Pub/Sub or of an emulator, and the topic's full name.
    const pubsub = new PubSub(options);
    const publisher = new v1.PublisherClient({ ...(await pubsub.getClientConfig()) });
    // Searches for credentials: in the client's first call, a failure could not be caught and would end the process.
    await publisher.initialize();
    return { publisher, topic: pubsub.topic(about.topic).name };
  };
  let opened: ReturnType<typeof open> | undefined;
  /** A client that found no credentials never finds any, so the next message makes a new one. */
  const client = (): ReturnType<typeof open> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    }));
  return {
    async load() {
      // Called early, since it blocks the process for 80 ms. The first message reports why it failed.
      client().catch(() => {});
      await loadPubsub();
    },
    async publish(message) {
      const data = Buffer.from(JSON.stringify(message));
      const { serviceOrderId: orderingKey } = message;
      const { publisher, topic } = await client();
      const request = { topic, messages: [{ data, orderingKey, attributes: attributesOf(message) }] };
      await publisher.publish(request, { ...CALL }); // It writes into the options.
    },
    close: async () => (await opened?.catch(() => undefined))?.publisher.close(),
  };
}

function attributesOf(message: LiveMessage): Record<string, string> {
  return {
    type: 'orderStatusChanged',
    serviceOrderId: message.serviceOrderId,
    ...(message.locationId !== undefined && { locationId: message.locationId }),
    ...(message.status !== null && { status: message.status }),
    memberState: message.memberState,
    sequence: String(message.sequence),
  };
}
