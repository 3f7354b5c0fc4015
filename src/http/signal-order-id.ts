import type { IncomingHttpHeaders } from 'node:http';
import { Id } from '../core/domain/order.ts';

/** The order id of a push. `poison` says why there is none, without any part of the payload. */
export type Signal =
  | { orderId: string; messageId: string | undefined; subscription: string | undefined }
  | { poison: string; messageId: string | undefined };

type Fields = Record<string, unknown>;

/**
 * Finds the order id of an `orderPlaced` push: the first valid id of `attributes.orderId`, `data.orderId`,
 * `data.order.id` and `data.id`. Nothing else in the payload is trusted, so nothing else is read.
 *
 * Pub/Sub pushes in two forms (https://cloud.google.com/pubsub/docs/payload-unwrapping): wrapped, as `{"message":
 * {"data": base64, "messageId", "attributes"}, "subscription"}`, and unwrapped, where the body is the data and, if
 * metadata is written, attributes are headers beside `x-goog-pubsub-message-id`.
 */
export function signalOrderId(body: Buffer, headers: IncomingHttpHeaders): Signal {
  const metadataId = headers['x-goog-pubsub-message-id'];
  const parsed = parseJson(body);
  const message = metadataId === undefined && isFields(parsed) ? parsed['message'] : undefined;
  if (isFields(message)) return readMessage(message, nameOf((parsed as Fields)['subscription']));

  const orderId = firstId(headers['orderid'], parsed);
  const messageId = shortened(metadataId);
  const subscription = nameOf(headers['x-goog-pubsub-subscription-name']);
  if (orderId !== undefined) return { orderId, messageId, subscription };
  return { poison: `no order id in the headers; ${lacking('the body', body, parsed)}`, messageId };
}

function readMessage(message: Fields, subscription: string | undefined): Signal {
  const messageId = shortened(message['messageId']);
  const attributes = isFields(message['attributes']) ? message['attributes'] : {};
  const data = typeof message['data'] === 'string' ? Buffer.from(message['data'], 'base64') : Buffer.alloc(0);
  const parsed = parseJson(data);
  const orderId = firstId(attributes['orderId'], parsed);
  if (orderId !== undefined) return { orderId, messageId, subscription };
  return { poison: `no order id in message.attributes; ${lacking('message.data', data, parsed)}`, messageId };
}

function firstId(attribute: unknown, data: unknown): string | undefined {
  const fields = isFields(data) ? data : {};
  const order = isFields(fields['order']) ? fields['order'] : {};
  const candidates = [attribute, fields['orderId'], order['id'], fields['id']];
  return candidates.map((candidate) => Id.safeParse(candidate).data).find((id) => id !== undefined);
}

function lacking(name: string, bytes: Buffer, parsed: unknown): string {
  if (bytes.length === 0) return `${name} is absent or empty`;
  if (parsed === undefined) return `${name} is not JSON in UTF-8`;
  if (!isFields(parsed)) return `${name} is not a JSON object`;
  return `none of orderId, order.id and id in ${name} is a string of 1 to 255 characters that can be stored`;
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the last part of `projects/…/subscriptions/…`. Pub/Sub's names have 255 characters at most. */
function nameOf(subscription: unknown): string | undefined {
  return typeof subscription === 'string' ? subscription.split('/').at(-1)?.slice(0, 255) : undefined;
}

/** Shortens a message id for the log. Pub/Sub's have some 16 digits. */
function shortened(messageId: unknown): string | undefined {
  return typeof messageId === 'string' ? messageId.slice(0, 64) : undefined;
}
