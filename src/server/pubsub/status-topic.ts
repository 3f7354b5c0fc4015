import { cloudEvent } from './cloud-event.ts';
import type { LiveMessage } from '../../core/domain/live-message.ts';
import { traceparent } from '../../core/domain/trace-id.ts';
import type { Publish } from '../../core/live/publish-live.ts';
import type { PubsubConnection } from '../plugins/pubsub.ts';

/** Options of a call. The outbox retries: the library's own retries would hold a message back silently for minutes. */
const CALL = { timeout: 3_000, retry: null };

/**
 * The topic that members' clients read.
 *
 * Messages are sent by the client generated from Pub/Sub's interface. The library's `Topic` batches messages by a
 * timer, queues them by ordering key and stops a key at its first failure. The relay does all of that, and a request
 * has one ordering key, so `Topic` would only cost half as much processor time again, and a millisecond.
 * @param about.tracedShare the share of orders that is traced; undefined if there are no traces
 */
export function statusTopic(
  { client }: PubsubConnection,
  { name, tracedShare }: { name: string; tracedShare: number | undefined },
): { publish: Publish } {
  let topic: string | undefined;
  let source = '';
  return {
    async publish(message, spanId) {
      const data = Buffer.from(JSON.stringify(message));
      const { serviceOrderId: orderingKey } = message;
      const { pubsub, publisher } = await client();
      if (topic === undefined) {
        topic = pubsub.topic(name).name;
        // Its full name at Google: an installation's own, and no move of its doors changes it.
        source = `//pubsub.googleapis.com/${encodeURI(topic)}`;
      }
      const attributes = {
        ...attributesOf(message),
        ...cloudEvent(message, {
          source,
          traceparent: tracedShare === undefined ? undefined : traceparent(orderingKey, spanId, tracedShare),
        }),
      };
      const request = { topic, messages: [{ data, orderingKey, attributes }] };
      const [{ messageIds }] = await publisher.publish(request, { ...CALL }); // It writes into the options.
      return messageIds?.[0];
    },
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
