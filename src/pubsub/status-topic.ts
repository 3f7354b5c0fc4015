import { traceparent } from '../core/domain/trace-id.ts';
import type { LiveMessage } from '../core/domain/live-message.ts';
import type { Publish } from '../core/live/publish-live.ts';
import type { PubsubConnection } from './pubsub-connection.ts';
import { eventTopic } from './event-topic.ts';

export const EVENT_TYPE = 'expediter.order.status-changed.v1';
/** The `$id` of docs/live-message.schema.json. */
export const DATA_SCHEMA = 'urn:expediter:live-message:v1';
/** A sequence is a 4-byte integer of Postgres. */
const DIGITS = 10;

/**
 * The topic for live messages.
 * @param about.tracedShare the share of orders that is traced; undefined if there are no traces
 */
export function statusTopic(
  connection: PubsubConnection,
  { name, tracedShare }: { name: string; tracedShare: number | undefined },
): { publish: Publish } {
  const publish = eventTopic(connection, name);
  return {
    publish: async (message, spanId) =>
      publish({
        type: EVENT_TYPE,
        schema: DATA_SCHEMA,
        subject: message.serviceOrderId,
        sequence: message.sequence,
        digits: DIGITS,
        time: message.appliedAt,
        data: message,
        attributes: attributesOf(message),
        traceparent: tracedShare === undefined ? undefined : traceparent(message.serviceOrderId, spanId, tracedShare),
      }),
  };
}

function attributesOf(message: LiveMessage): Record<string, string> {
  return {
    type: 'orderStatusChanged',
    serviceOrderId: message.serviceOrderId,
    ...(message.locationId !== undefined && { locationId: message.locationId }),
    ...(message.status !== null && { status: message.status }),
    memberState: message.memberState,
  };
}
