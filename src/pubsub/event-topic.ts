import { contextOf, type SendEvent } from '../core/domain/cloud-event.ts';
import type { PubsubConnection } from './pubsub-connection.ts';

/** The library's retries are off, because they would silently delay a message. Our callers retry. */
const TIMEOUT_MS = 3_000;

/** The topic's full name at Google is unique to an installation, and does not depend on the service's addresses. */
export function sourceOfTopic(project: string, name: string): string {
  const topic = name.includes('/') ? name : `projects/${project}/topics/${name}`;
  return `//pubsub.googleapis.com/${encodeURI(topic)}`;
}

/**
 * Makes a function that publishes to a topic, each message in a request of its own with its ordering key. The low-level
 * client sends the messages, not the library's `Topic`. A `Topic` batches messages by a timer, queues them by ordering key
 * and stops a key at its first failure. Our callers do all of this themselves, so a `Topic` would only add half of the CPU
 * time and a millisecond.
 *
 * A CloudEvent is in the binary mode of its binding for Pub/Sub, a working draft
 * (https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md). The media type is in two attributes:
 * the text of the binding says `content-type`, but its examples and CloudEvents' Go library use `ce-datacontenttype`.
 * @returns a function that resolves to the message's id when the topic has acknowledged the message
 */
export function eventTopic(connection: PubsubConnection, name: string): SendEvent {
  const source = sourceOfTopic(connection.project, name);
  let topic: string | undefined;
  return async (event) => {
    const data = Buffer.from(JSON.stringify(event.data));
    const { pubsub, publisher } = await connection.client();
    topic ??= pubsub.topic(name).name;
    const context = Object.entries(contextOf(event, source)).map(([key, value]) => [`ce-${key}`, value]);
    const attributes = {
      ...event.attributes,
      sequence: String(event.sequence),
      'content-type': 'application/json',
      ...(Object.fromEntries(context) as Record<string, string>),
    };
    const request = { topic, messages: [{ data, orderingKey: event.subject, attributes }] };
    const [{ messageIds }] = await publisher.publish(request, { timeout: TIMEOUT_MS, retry: null });
    return messageIds?.[0];
  };
}
