import type { ClientConfig } from '@google-cloud/pubsub';
import type { LiveMessage } from './core/domain/live-message.ts';
import type { Publish } from './core/live/publish-live.ts';

/** The outbox repeats: the library's own retries would hold a message back for minutes without a word. */
const CALL = { timeout: 3_000, retry: null };

/**
 * Opens the topic that members' clients hear of. The client library is loaded only here: it takes 300 ms, which would
 * otherwise stand between a start and its first answer.
 *
 * Published is by the client that is generated from Pub/Sub's interface. The library's `Topic` gathers messages before it
 * by a timer and queues them by their ordering key, and stops a key at its first failure; the relay sees to all of that,
 * and as a request has one ordering key there is nothing to gather: half as much processor time again, and a millisecond.
 */
export async function openStatusTopic(about: {
  project: string;
  topic: string;
}): Promise<{ publish: Publish; close: () => Promise<void> }> {
  const { PubSub, v1 } = await import('@google-cloud/pubsub');
  const options: ClientConfig & Record<string, unknown> = {
    projectId: about.project,
    // After an outage the default would wait up to two minutes before it tried to connect again.
    'grpc.initial_reconnect_backoff_ms': 200,
    'grpc.max_reconnect_backoff_ms': 1_000,
  };
  // It knows where Pub/Sub is, an emulator as well, and what a topic is called in whole.
  const pubsub = new PubSub(options);
  const topic = pubsub.topic(about.topic).name;
  const open = async (): Promise<InstanceType<typeof v1.PublisherClient>> => {
    const publisher = new v1.PublisherClient({ ...(await pubsub.getClientConfig()) });
    // Here it looks for credentials. Left to its first call, a failure would be nobody's to catch and end the process.
    await publisher.initialize();
    return publisher;
  };
  let opened: ReturnType<typeof open> | undefined;
  /** One that found no credentials finds none for good. */
  const publisherClient = (): ReturnType<typeof open> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    }));
  // Before anybody relies on this process, since it takes 80 ms of it; whoever has a message is told why not.
  publisherClient().catch(() => {});
  return {
    async publish(message) {
      const data = Buffer.from(JSON.stringify(message));
      const { serviceOrderId: orderingKey } = message;
      const request = { topic, messages: [{ data, orderingKey, attributes: attributesOf(message) }] };
      const publisher = await publisherClient();
      await publisher.publish(request, { ...CALL }); // It writes into them.
    },
    close: async () => (await opened?.catch(() => undefined))?.close(),
  };
}

function attributesOf(message: LiveMessage): Record<string, string> {
  return {
    type: 'orderStatusChanged',
    serviceOrderId: message.serviceOrderId,
    locationId: message.locationId,
    ...(message.status !== null && { status: message.status }),
    memberState: message.memberState,
    sequence: String(message.sequence),
  };
}
