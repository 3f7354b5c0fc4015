import type { ClientConfig } from '@google-cloud/pubsub';
import type { LiveMessage } from './core/live-message.ts';
import type { Publish } from './core/publish-live.ts';

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
  // It knows where Pub/Sub is, an emulator as well, and a topic's whole name.
  const pubsub = new PubSub(options);
  const publisher = new v1.PublisherClient({ ...(await pubsub.getClientConfig()) });
  const topic = pubsub.topic(about.topic).name;
  return {
    async publish(message) {
      const data = Buffer.from(JSON.stringify(message));
      const { serviceOrderId: orderingKey } = message;
      await publisher.publish({ topic, messages: [{ data, orderingKey, attributes: attributesOf(message) }] }, CALL);
    },
    close: () => publisher.close(),
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
