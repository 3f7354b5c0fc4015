import { isRecord } from '../domain/json-text.ts';
import { Id } from '../domain/order.ts';

/**
 * Finds the order id in a payload: the first valid id of `orderId`, `order.id` and `id`. A CloudEvent, which has a
 * `specversion`, has its payload in `data` or `data_base64`, and its `id` is the event's.
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
 */
export function idIn(payload: unknown): string | undefined {
  if (!isRecord(payload)) return undefined;
  // guard: id-of-the-event
  const isEvent = payload['specversion'] !== undefined;
  const order = isRecord(payload['order']) ? payload['order'] : {};
  const found = idOf(payload['orderId'], order['id'], ...(isEvent ? [] : [payload['id']]));
  if (found !== undefined || !isEvent) return found;
  const data = dataOf(payload);
  // Eventarc puts a wrapped Pub/Sub message into the event.
  const message = isRecord(data) ? data['message'] : undefined;
  return idOfPlain(data) ?? (isRecord(message) ? idOfPlain(dataOf(message)) : undefined);
}

function idOfPlain(payload: unknown): string | undefined {
  return isRecord(payload) && payload['specversion'] === undefined ? idIn(payload) : undefined;
}

/** The payload in `data` or `data_base64`: JSON, or the text of JSON, also in base64. */
export function dataOf(holder: unknown): unknown {
  if (!isRecord(holder)) return undefined;
  const { data, data_base64: encoded } = holder;
  const text = typeof encoded === 'string' ? encoded : data;
  if (typeof text !== 'string') return text;
  return parseJson(Buffer.from(text)) ?? parseJson(Buffer.from(text, 'base64'));
}

export function idOf(...candidates: unknown[]): string | undefined {
  return candidates.map((candidate) => Id.safeParse(candidate).data).find((id) => id !== undefined);
}

export function lacking(name: string, bytes: Buffer, parsed: unknown): string {
  if (bytes.length === 0) return `${name} is absent or empty`;
  if (parsed === undefined) return `${name} is not JSON in UTF-8`;
  if (!isRecord(parsed)) return `${name} is not a JSON object`;
  const where = parsed['specversion'] === undefined ? name : `data of the CloudEvent in ${name}`;
  return `none of orderId, order.id and id in ${where} is a string of 1 to 255 characters that can be stored`;
}

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** The order id of a message that was pulled; undefined if it has none. */
export function orderIdOf(message: { attributes: Record<string, string>; data: Buffer }): string | undefined {
  return idOf(message.attributes['orderId']) ?? idIn(parseJson(message.data));
}

/** How a sender of signals by HTTP signs them. `plain`: it does not, and only its token proves who it is. */
export const SIGNAL_KINDS = ['plain', 'standard-webhooks', 'shopify', 'saleor'] as const;
export type SignalKind = (typeof SIGNAL_KINDS)[number];

/** https://shopify.dev/docs/api/usage/gids */
const SHOPIFY_ORDER = /^gid:\/\/shopify\/Order\/\d{1,20}$/;

/** Finds the id where a kind of sender puts it. `lacks` says what a body without an id lacks, if it is JSON. */
const IDS: Readonly<Record<SignalKind, { find(payload: unknown): string | undefined; lacks?: string }>> = {
  plain: { find: idIn },
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#payload-structure
  'standard-webhooks': { find: (payload) => idOfPlain(dataOf(payload)) ?? idIn(payload) },
  // `id` is a number of the REST API, too large for a number in JavaScript. The GraphQL Admin API finds the order by this
  // id: https://shopify.dev/docs/api/webhooks
  shopify: {
    find: (payload) => idOf(isRecord(payload) ? payload['admin_graphql_api_id'] : undefined),
    lacks: 'admin_graphql_api_id is not the id of an order, such as gid://shopify/Order/1. Send only topics orders/…',
  },
  // By default the payload is a list of one order, and with a subscription query an object of the query's fields:
  // https://docs.saleor.io/developer/extending/webhooks/subscription-webhook-payloads
  saleor: {
    find(payload) {
      if (Array.isArray(payload)) return payload.length === 1 ? idOfPlain(payload[0]) : undefined;
      return idIn(payload) ?? idOfPlain(isRecord(payload) ? payload['event'] : undefined);
    },
    lacks:
      'it is neither a list of one order, nor an object with order { id }. Add order { id } to the subscription query',
  },
};

/** @returns the id of the order that a signal's body names; or why there is none, without quoting the body */
export function findOrderId(kind: SignalKind, body: Buffer): { orderId: string } | { lacks: string } {
  const payload = parseJson(body);
  const { find, lacks } = IDS[kind];
  const orderId = find(payload);
  // guard: order-not-fulfillment
  const isOrder = kind !== 'shopify' || (orderId !== undefined && SHOPIFY_ORDER.test(orderId));
  if (orderId !== undefined && isOrder) return { orderId };
  return { lacks: payload === undefined || lacks === undefined ? lacking('the body', body, payload) : lacks };
}
