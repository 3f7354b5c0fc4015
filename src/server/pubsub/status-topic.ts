import { traceId, traceparent } from '../../core/domain/trace-id.ts';
import type { LiveMessage } from '../../core/domain/live-message.ts';
import type { Publish } from '../../core/live/publish-live.ts';
import type { PubsubConnection } from '../plugins/pubsub.ts';

/** The event's type, with the version of its payload. docs/decisions/19-cloudevents.md has the rules for changes. */
export const EVENT_TYPE = 'expediter.order.status-changed.v1';
/** The `$id` of docs/live-message.schema.json. It is a name, and nothing can be fetched there. */
export const DATA_SCHEMA = 'urn:expediter:live-message:v1';
/** The largest sequence, a 4-byte integer of Postgres, has this many digits. */
const DIGITS = 10;
/** Characters that the text of a CloudEvent must not contain, but an order's id may contain. */
const NO_TEXT = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * Makes the attributes of a CloudEvent in the binary mode of its binding for Pub/Sub, a working draft
 * (https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md). An order's id has at most 255
 * characters of three bytes, so `ce-id` is below Pub/Sub's limit of 1,024 bytes for a value.
 *
 * The media type is in two attributes: the text of the binding says `content-type`, but its examples and CloudEvents'
 * Go library use `ce-datacontenttype`. There is no `ce-sequencetype`, because numbers are skipped after a restore.
 * @param about.source the publisher, a URI reference
 * @param about.traceparent the span of the publish call; undefined if tracing is off
 */
function cloudEvent(
  { serviceOrderId, sequence, appliedAt }: LiveMessage,
  { source, traceparent }: { source: string; traceparent: string | undefined },
): Record<string, string> {
  const isText = !NO_TEXT.test(serviceOrderId);
  return {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': `${isText ? serviceOrderId : traceId(serviceOrderId)}/${sequence}`,
    'ce-source': source,
    'ce-type': EVENT_TYPE,
    ...(isText && { 'ce-subject': serviceOrderId }),
    'ce-time': appliedAt,
    'ce-datacontenttype': 'application/json',
    'ce-dataschema': DATA_SCHEMA,
    'ce-sequence': String(sequence).padStart(DIGITS, '0'),
    ...(traceparent !== undefined && { 'ce-traceparent': traceparent }),
  };
}

/** Options of a call. The library's retries are off, because they would silently delay a message. The relay retries. */
const CALL = { timeout: 3_000, retry: null };

/**
 * The topic for live messages.
 *
 * The low-level client sends the messages, not the library's `Topic`. A `Topic` batches messages by a timer, queues
 * them by ordering key and stops a key at its first failure. The relay does all of this itself, so a `Topic` would only
 * add half of the CPU time and a millisecond.
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
        // The topic's full name at Google is unique to an installation, and does not depend on the service's addresses.
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
      const [{ messageIds }] = await publisher.publish(request, { ...CALL }); // A copy, because it changes the options.
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
