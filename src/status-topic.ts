import type { ClientConfig } from '@google-cloud/pubsub';
import type { LiveMessage } from './core/live-message.ts';
import type { Publish } from './core/publish-live.ts';

/**
 * Opens the topic that members' clients hear of. The client library is loaded only here: it takes 300 ms, which would
 * otherwise stand between a start and its first answer.
 */
export async function openStatusTopic(about: {
  project: string;
  topic: string;
}): Promise<{ publish: Publish; close: () => Promise<void> }> {
  const { PubSub } = await import('@google-cloud/pubsub');
  const options: ClientConfig & Record<string, unknown> = {
    projectId: about.project,
    // After an outage the default would wait up to two minutes before it tried to connect again.
    'grpc.initial_reconnect_backoff_ms': 200,
    'grpc.max_reconnect_backoff_ms': 1_000,
  };
  const pubsub = new PubSub(options);
  const topic = pubsub.topic(about.topic, {
    messageOrdering: true,
    batching: { maxMilliseconds: 1 },
    // The outbox repeats: the library's own retries would hold a message back for minutes without a word.
    gaxOpts: { timeout: 3_000, retry: null },
  });
  return {
    async publish(message) {
      try {
        await topic.publishMessage({
          json: message,
          orderingKey: message.serviceOrderId,
          attributes: attributesOf(message),
        });
      } catch (error) {
        // The library refuses every later message of the key until it is told to go on.
        topic.resumePublishing(message.serviceOrderId);
        throw error;
      }
    },
    close: () => pubsub.close(),
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
