import type { AttentionEvent } from '../core/domain/attention-event.ts';
import type { PubsubConnection } from './pubsub-connection.ts';
import { eventTopic } from './event-topic.ts';

/** The `$id` of docs/attention-event.schema.json. */
export const ATTENTION_SCHEMA = 'urn:expediter:attention-event:v1';
export const attentionType = (event: AttentionEvent['event']): string => `expediter.attention.${event}.v1`;
export function attentionTopic(
  connection: PubsubConnection,
  name: string,
): (event: AttentionEvent) => Promise<unknown> {
  const publish = eventTopic(connection, name);
  return async (event) =>
    publish({
      type: attentionType(event.event),
      schema: ATTENTION_SCHEMA,
      subject: event.id,
      sequence: event.sequence,
      time: event.at,
      data: event,
      attributes: {
        type: 'attention',
        event: event.event,
        kind: event.kind,
        ...(event.locationId !== null && { locationId: event.locationId }),
      },
    });
}
