import { traceId } from '../core/domain/trace-id.ts';
import type { PubsubConnection } from './pubsub-connection.ts';

/** A CloudEvent about a subject, which is also its ordering key, and attributes besides those of CloudEvents. */
export type TopicEvent = {
  /** With the version of the payload. docs/decisions/19-cloudevents.md has the rules for changes. */
  type: string;
  /** The `$id` of the payload's JSON Schema. It is a name, and nothing can be fetched there. */
  schema: string;
  subject: string;
  sequence: number;
  /** The digits of the largest sequence. By default those of the milliseconds since 1970, until the year 2286. */
  digits?: number;
  time: string;
  data: object;
  attributes: Record<string, string>;
  /** The span of the publish call; undefined if tracing is off. */
  traceparent?: string | undefined;
};

/** Characters that the text of a CloudEvent must not contain, but an id may contain. */
const NO_TEXT = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * Makes the attributes of a CloudEvent in the binary mode of its binding for Pub/Sub, a working draft
 * (https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md). An id has at most 255 characters of
 * three bytes, so `ce-id` is below Pub/Sub's limit of 1,024 bytes for a value.
 *
 * The media type is in two attributes: the text of the binding says `content-type`, but its examples and CloudEvents'
 * Go library use `ce-datacontenttype`. There is no `ce-sequencetype`, because numbers are skipped after a restore.
 * @param source the publisher, a URI reference
 */
function cloudEvent(event: TopicEvent, source: string): Record<string, string> {
  const { subject, sequence, digits = 13, traceparent } = event;
  const isText = !NO_TEXT.test(subject);
  return {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': `${isText ? subject : traceId(subject)}/${sequence}`,
    'ce-source': source,
    'ce-type': event.type,
    ...(isText && { 'ce-subject': subject }),
    'ce-time': event.time,
    'ce-datacontenttype': 'application/json',
    'ce-dataschema': event.schema,
    'ce-sequence': String(sequence).padStart(digits, '0'),
    ...(traceparent !== undefined && { 'ce-traceparent': traceparent }),
  };
}

/** The library's retries are off, because they would silently delay a message. Our callers retry. */
const TIMEOUT_MS = 3_000;

/**
 * Makes a function that publishes to a topic, each message in a request of its own with its ordering key. The low-level client sends the messages, not the library's `Topic`. A
 * `Topic` batches messages by a timer, queues them by ordering key and stops a key at its first failure. Our callers do
 * all of this themselves, so a `Topic` would only add half of the CPU time and a millisecond.
 * @returns a function that resolves to the message's id when the topic has acknowledged the message
 */
export function eventTopic(
  connection: PubsubConnection,
  name: string,
): (event: TopicEvent) => Promise<string | undefined> {
  let topic: string | undefined;
  let source = '';
  return async (event) => {
    const data = Buffer.from(JSON.stringify(event.data));
    const { pubsub, publisher } = await connection.client();
    if (topic === undefined) {
      topic = pubsub.topic(name).name;
      // The topic's full name at Google is unique to an installation, and does not depend on the service's addresses.
      source = `//pubsub.googleapis.com/${encodeURI(topic)}`;
    }
    const attributes = { ...event.attributes, sequence: String(event.sequence), ...cloudEvent(event, source) };
    const request = { topic, messages: [{ data, orderingKey: event.subject, attributes }] };
    const [{ messageIds }] = await publisher.publish(request, { timeout: TIMEOUT_MS, retry: null });
    return messageIds?.[0];
  };
}
