/** Toast, as https://doc.toasttab.com describes its authentication, its orders API and its webhooks. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { readBody, sendJson, serveHttp } from '../../network/serve-http.ts';
import { deliverWebhook } from '../deliver-webhook.ts';
import { sendFault } from '../send-fault.ts';
import type { Counting, SignedWebhook, Simulator, SimulatorOptions } from '../simulator.ts';
import type { Ticket, TicketLine, TicketModifier } from '../simulator.ts';
import { openToastRestaurant, type ToastRestaurant } from './open-toast-restaurant.ts';
import { priceToastOrder } from './price-toast-order.ts';
import { isRequest, readToastOrder, toMinor, type ToastOrder, type ToastSelection } from './read-toast-order.ts';
import { ToastError } from './toast-error.ts';
import { changeToastOrder, writeToastAvailability, writeToastEvent } from './write-toast-event.ts';

const HOUR_MS = 3_600_000;
const LOGINS_PER_HOUR = 2;
const TOKEN_S = 86_400;
/** Limits in fixed windows: https://doc.toasttab.com/doc/devguide/apiRateLimiting.html */
const RATE = [
  { requests: 20, ms: 1000 },
  { requests: 10_000, ms: 900_000 },
];

/** The requests with a query, by operation/ordersBulkGet/ and operation/diningOptionsGet/, read on 2026-11-23. */
const QUERIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['/orders/v2/ordersBulk', ['startDate', 'endDate', 'page', 'pageSize']],
  ['/config/v2/diningOptions', ['lastModified', 'pageToken']],
]);

const LIVES = {
  pickup: ['IN_PREPARATION', 'READY_FOR_PICKUP', 'CLOSED'],
  delivery: ['IN_PREPARATION', 'READY_FOR_PICKUP', 'PICKED_UP', 'IN_PROGRESS', 'DELIVERED'],
};

type Kept = { ticket: Ticket; order: Record<string, unknown>; externalId: string | undefined };

export type ToastSimulator = Simulator & {
  /** The client's scopes: https://doc.toasttab.com/doc/devguide/apiScopes.html */
  scopes: string[];
  /** The other id of what the menu has, by GUID. */
  readonly multiLocationIds: ReadonlyMap<string, string>;
};

const DELIVERY = {
  // https://doc.toasttab.com/doc/devguide/apiRetrySupport.html, https://doc.toasttab.com/doc/devguide/apiTimeouts.html
  waits: [300_000, 600_000],
  timeoutMs: 2000,
  acknowledges: (status: number) => status >= 200 && status < 300,
  repeats: (status: number) => status === 0 || status === 404 || status === 429 || status >= 500,
};

/** What Toast knows of its one client, which has one restaurant. */
type Toast = {
  readonly hurry: number;
  readonly restaurant: ToastRestaurant;
  readonly settings: { clientId: string; clientSecret: string };
  readonly kept: Kept[];
  readonly refusals: string[];
  /** The tokens that are valid. */
  readonly tokens: Set<string>;
  /** When each token was granted. */
  readonly logins: number[];
  /** The present window of each limit in `RATE`. */
  readonly slices: { nth: number; requests: number }[];
  /** What tests see and change. */
  readonly simulator: Counting<ToastSimulator, 'requests' | 'reads' | 'cancels'>;
};

export async function startToast(options: SimulatorOptions = {}): Promise<ToastSimulator> {
  const { currency = 'EUR', hurry = 1, port } = options;
  const server = await serveHttp((request, response) => answer(toast, request, response), port);
  const { restaurant, settings, menu } = openToastRestaurant(currency, server.url);
  const kept: Kept[] = [];
  const refusals: string[] = [];
  const tokens = new Set<string>();
  const logins: number[] = [];

  const simulator: Toast['simulator'] = {
    integration: 'toast',
    url: server.url,
    settings,
    menu,
    get tickets() {
      return kept.map(({ ticket }) => ticket);
    },
    requests: 0,
    refusals,
    multiLocationIds: restaurant.multiLocationIds,
    scopes: [
      'orders.orders:write',
      'orders:read',
      'orders.channel:read',
      'orders.channel:void',
      'delivery_info.address:read',
      'config:read',
    ],
    behave: undefined,
    onTicket: undefined,
    become: (ticket, nativeStatus) => become(toast, ticket, nativeStatus),
    reads: 0,
    misread: undefined,
    cancels: 0,
    miscancel: undefined,
    estimate: undefined,
    lifeOf: (fulfillment) => LIVES[fulfillment],
    sign: (_webhookUrl, ticket, nativeStatus) => writeToastEvent(orderOf(toast, ticket), nativeStatus, restaurant),
    report(webhookUrl, ticket, nativeStatus) {
      become(toast, ticket, nativeStatus);
      return deliver(toast, webhookUrl, writeToastEvent(orderOf(toast, ticket), nativeStatus, restaurant));
    },
    signKitchen: (kitchen) => writeToastAvailability(kitchen, restaurant),
    setKitchen: (webhookUrl, kitchen) => deliver(toast, webhookUrl, writeToastAvailability(kitchen, restaurant)),
    expireTokens: () => tokens.clear(),
    get grants() {
      return logins.length;
    },
    tokenSeconds: TOKEN_S,
    stop: () => server.stop(),
  };
  const toast: Toast = {
    hurry,
    restaurant,
    settings,
    kept,
    refusals,
    tokens,
    logins,
    slices: RATE.map(() => ({ nth: 0, requests: 0 })),
    simulator,
  };
  return simulator;
}

function deliver(toast: Toast, url: string, { headers, body }: SignedWebhook) {
  const sign = (attempt: number): SignedWebhook => {
    return { headers: { ...headers, 'toast-attempt-number': String(attempt) }, body };
  };
  return deliverWebhook(url, sign, DELIVERY, toast.hurry);
}

function orderOf(toast: Toast, ticket: Ticket): Record<string, unknown> {
  const found = toast.kept.find((each) => each.ticket === ticket);
  if (found === undefined) throw new Error('Toast has no such ticket');
  return withEstimate(toast, found.order);
}

function withEstimate(toast: Toast, order: Record<string, unknown>): Record<string, unknown> {
  return { ...order, estimatedFulfillmentDate: toast.simulator.estimate?.replace('Z', '+0000') ?? null };
}

function become(toast: Toast, ticket: Ticket, nativeStatus: string): void {
  ticket.status = nativeStatus;
  const found = toast.kept.find((each) => each.ticket === ticket);
  if (found !== undefined) found.order = changeToastOrder(found.order, nativeStatus, new Date().toISOString());
}

async function answer(toast: Toast, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const requestId = randomUUID();
  try {
    await route(toast, request, response);
  } catch (error) {
    if (!(error instanceof ToastError)) throw error;
    const { status, message, retryAfter } = error;
    // Old tokens, rate limits and searches for what does not exist are no errors of form.
    const isForm = ![401, 429].includes(status) && (request.method === 'POST' || status === 400);
    if (isForm) toast.refusals.push(`${request.method} ${request.url}: ${status} ${message}`);
    // https://doc.toasttab.com/doc/devguide/apiRateLimiting.html
    const headers: Record<string, string> =
      retryAfter === undefined
        ? {}
        : {
            'retry-after': String(retryAfter),
            'x-toast-ratelimit-by': 'API',
            'x-toast-ratelimit-remaining': '0',
            'x-toast-ratelimit-reset': String(Math.ceil(Date.now() / 1000) + retryAfter),
          };
    sendJson(response, status, error.body(requestId), headers);
  }
}

async function route(toast: Toast, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '' } = request;
  const body = await readBody(request);
  switch (`${method} ${url}`) {
    case 'POST /authentication/v1/authentication/login':
      return sendJson(response, 200, logIn(toast, parse(request, body)));
    case 'POST /orders/v2/prices':
      admit(toast, request);
      return sendJson(
        response,
        200,
        priceToastOrder(readToastOrder(parse(request, body), toast.restaurant), toast.restaurant, null),
      );
    case 'POST /orders/v2/orders':
      return takeOrder(toast, request, response, body);
    default:
  }
  const [, toVoid] = (method === 'POST' && /^\/orders\/v2\/orders\/([^/]+)\/void$/.exec(url)) || [];
  if (toVoid !== undefined) return voidOrder(toast, request, response, { guid: decodeURIComponent(toVoid), body });
  if (method !== 'GET') throw new ToastError(404, 'no such endpoint');
  const { pathname, searchParams } = new URL(url, 'http://toast');
  const unknown = [...searchParams.keys()].filter((name) => QUERIES.get(pathname)?.includes(name) !== true);
  if (unknown.length > 0) throw new ToastError(400, `${unknown.join(', ')} is not documented`);
  const [, id] = /^\/orders\/v2\/orders\/([^/]+)$/.exec(pathname) ?? [];
  if (id !== undefined) return showOrder(toast, request, response, decodeURIComponent(id));
  if (pathname === '/config/v2/diningOptions') {
    admit(toast, request, 'config:read');
    return sendJson(response, 200, listDiningOptions(toast));
  }
  admit(toast, request, 'orders:read', 'orders.channel:read');
  if (pathname === '/orders/v2/ordersBulk') return sendJson(response, 200, listOrders(toast, searchParams));
  throw new ToastError(404, 'no such endpoint');
}

function logIn(toast: Toast, body: unknown): object {
  const { clientId: id, clientSecret: secret, userAccessType, ...others } = body as Record<string, unknown>;
  if (userAccessType !== 'TOAST_MACHINE_CLIENT' || Object.keys(others).length > 0) {
    const wants = 'the login wants clientId, clientSecret and userAccessType TOAST_MACHINE_CLIENT';
    throw new ToastError(400, [wants, ...Object.keys(others)].join(', and no '));
  }
  const now = Date.now();
  if (toast.logins.filter((at) => at > now - HOUR_MS / toast.hurry).length >= LOGINS_PER_HOUR) {
    toast.refusals.push('a third login within the hour');
    throw new ToastError(429, 'Too many logins');
  }
  if (id !== toast.settings.clientId || secret !== toast.settings.clientSecret)
    throw new ToastError(401, 'Invalid client credentials');
  toast.logins.push(now);
  const accessToken = randomBytes(32).toString('base64url');
  toast.tokens.add(accessToken);
  const internal = { scope: null, idToken: null, refreshToken: null };
  return { token: { tokenType: 'Bearer', expiresIn: TOKEN_S, accessToken, ...internal }, status: 'SUCCESS' };
}

/** Checks token, restaurant, scopes and rate, in this order. */
function admit(toast: Toast, { headers }: IncomingMessage, ...scopes: string[]): void {
  const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
  if (!toast.tokens.has(token)) throw new ToastError(401, 'Unknown or expired authentication token');
  if (headers['toast-restaurant-external-id'] !== toast.restaurant.guid) {
    throw new ToastError(403, 'No access to the restaurant of Toast-Restaurant-External-ID');
  }
  const lacking = scopes.filter((scope) => !toast.simulator.scopes.includes(scope));
  if (lacking.length > 0) throw new ToastError(403, `The client lacks ${lacking.join(', ')}`);
  const now = Date.now();
  for (const [which, { requests: most, ms }] of RATE.entries()) {
    const slice = toast.slices[which] ?? { nth: 0, requests: 0 };
    const nth = Math.floor(now / ms);
    if (slice.nth !== nth) Object.assign(slice, { nth, requests: 0 });
    slice.requests += 1;
    if (slice.requests > most) {
      const retryAfter = Math.ceil(((nth + 1) * ms - now) / 1000);
      throw new ToastError(429, 'Too many requests', { retryAfter });
    }
  }
}

async function takeOrder(
  toast: Toast,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
): Promise<void> {
  toast.simulator.requests += 1;
  const fault = toast.simulator.behave?.({ serviceOrderId: serviceOrderIdIn(body) });
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendJson(response, fault.status, fault.body, fault.headers);

  admit(toast, request);
  const order = readToastOrder(parse(request, body), toast.restaurant);
  const known = toast.kept.find(({ externalId }) => externalId !== undefined && externalId === order.externalId);
  if (known !== undefined) {
    known.ticket.requests += 1;
    // The status is not documented; the labor API's is 400.
    const error = new ToastError(400, 'An order with this externalId already exists');
    return sendJson(response, error.status, error.body(randomUUID()));
  }
  const guid = randomUUID();
  const taken = priceToastOrder(order, toast.restaurant, guid);
  const ticket = ticketOf(order, taken, toast.restaurant);
  toast.kept.push({ ticket, order: taken, externalId: order.externalId });
  toast.simulator.onTicket?.(ticket);
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, 200, taken);
}

/** Voids an order: https://doc.toasttab.com/doc/devguide/apiVoidOrder.html, read on 2026-11-23. */
function voidOrder(
  toast: Toast,
  request: IncomingMessage,
  response: ServerResponse,
  { guid, body }: { guid: string; body: Buffer },
): void {
  toast.simulator.cancels += 1;
  const fault = toast.simulator.miscancel?.();
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);
  admit(toast, request, 'orders.channel:void');
  const wanted = { selections: { voidAll: true }, payments: { voidAll: true } };
  if (!isDeepStrictEqual(parse(request, body), wanted)) {
    throw new ToastError(400, 'selections and payments must each have voidAll true, and nothing else');
  }
  const found = toast.kept.find(({ ticket }) => ticket.providerOrderId === guid);
  if (found === undefined) throw new ToastError(404, 'Order not found');
  if (found.order['voided'] === true) throw new ToastError(400, 'The order is already voided');
  // https://doc.toasttab.com/doc/devguide/apiVoidOrder.html
  const { paid } = found.ticket;
  if (paid === undefined) throw new ToastError(400, 'only orders with the Other payment type can be voided');
  found.ticket.cancelled = true;
  become(toast, found.ticket, 'VOIDED');
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, 200, withEstimate(toast, found.order));
}

/** Lists orders modified in up to one hour: https://doc.toasttab.com/openapi/orders/operation/ordersGet/ */
function listOrders(toast: Toast, query: URLSearchParams): object[] {
  const [start, end] = ['startDate', 'endDate'].map((name) => {
    const text = query.get(name) ?? '';
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}$/.test(text)) {
      throw new ToastError(400, `${name} is not a time such as 2016-01-01T14:13:12.000+0400`);
    }
    return Date.parse(text);
  }) as [number, number];
  if (end <= start || end - start > HOUR_MS) throw new ToastError(400, 'the span is not within one hour');
  // No test depends on the times, so all orders are listed.
  return toast.kept.map(({ order }) => order);
}

/** Lists dining options: https://doc.toasttab.com/openapi/configuration/operation/diningOptionsGet/ */
function listDiningOptions(toast: Toast): object[] {
  return [...toast.restaurant.diningOptions].map(([guid, behavior]) => ({
    guid,
    entityType: 'DiningOption',
    externalId: null,
    name: behavior,
    behavior,
    curbside: false,
  }));
}

/**
 * Shows an order, of its delivery and its guest only what the scopes allow:
 * https://doc.toasttab.com/openapi/orders/operation/ordersGuidGet/
 */
function showOrder(toast: Toast, request: IncomingMessage, response: ServerResponse, id: string): void {
  toast.simulator.reads += 1;
  const fault = toast.simulator.misread?.();
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);
  admit(toast, request, 'orders:read', 'orders.channel:read');
  const found = toast.kept.find(({ ticket, externalId }) => ticket.providerOrderId === id || externalId === id);
  if (found === undefined) throw new ToastError(404, 'Order not found');
  const { checks, deliveryInfo } = found.order;
  const shown = {
    ...withEstimate(toast, found.order),
    checks: (checks as object[]).map((check) => ({ ...check, customer: null })),
    deliveryInfo: toast.simulator.scopes.includes('delivery_info.address:read') ? (deliveryInfo ?? null) : null,
  };
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, 200, shown);
}

function parse({ headers }: IncomingMessage, body: Buffer): unknown {
  if (headers['content-type'] !== 'application/json') throw new ToastError(415, 'Content-Type is not application/json');
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new ToastError(400, 'the body is not JSON');
  }
}

function serviceOrderIdIn(body: Buffer): string {
  try {
    return ourIdIn((JSON.parse(body.toString()) as ToastOrder).externalId);
  } catch {
    return '';
  }
}

/** Returns the part after the naming authority. */
function ourIdIn(externalId = ''): string {
  return externalId.slice(externalId.indexOf(':') + 1);
}

function ticketOf(order: ToastOrder, taken: Record<string, unknown>, restaurant: ToastRestaurant): Ticket {
  const [check] = order.checks;
  const { selections = [], payments, customer, appliedServiceCharges = [], appliedDiscounts = [] } = check ?? {};
  const [{ totalAmount }] = taken['checks'] as [{ totalAmount: number }];
  const tip = (payments ?? []).map(({ tipAmount }) => tipAmount);
  const { deliveryInfo: to } = order;
  const sum = (amounts: readonly (number | undefined)[]): number =>
    amounts.reduce<number>((total, amount = 0) => total + toMinor(amount, restaurant), 0);
  return {
    providerOrderId: String(taken['guid']),
    serviceOrderId: ourIdIn(order.externalId),
    key: order.externalId ?? '',
    fulfillment: restaurant.diningOptions.get(order.diningOption.guid) === 'DELIVERY' ? 'delivery' : 'pickup',
    callOut: check?.tabName,
    lines: selections.filter((selection) => !isRequest(selection)).map((selection) => lineOf(selection, restaurant)),
    paid: payments && sum(payments.flatMap(({ amount, tipAmount }) => [amount, tipAmount])),
    tip: sum(tip),
    discount: sum(appliedDiscounts.map(({ discountAmount }) => discountAmount)),
    total: sum([totalAmount, ...tip]),
    fee: sum(appliedServiceCharges.map(({ chargeAmount }) => chargeAmount)),
    guest: {
      name: customer && `${customer.firstName} ${customer.lastName}`,
      phone: customer && `+${customer.phoneCountryCode ?? '1'}${customer.phone.replaceAll('-', '')}`,
      email: customer?.email,
    },
    address: to && [to.address1, to.address2, to.city, to.state, to.zipCode, to.country].filter(Boolean).join(' '),
    wantedAt: order.promisedDate?.replace(/(\d\d)$/, ':$1') ?? undefined,
    note: [...requestsIn(selections), to?.notes].filter(Boolean).join('\n'),
    requests: 1,
    status: undefined,
  };
}

function requestsIn(selections: readonly ToastSelection[]): string[] {
  return selections.filter(isRequest).map(({ displayName = '' }) => displayName);
}

function lineOf({ item, quantity, modifiers }: ToastSelection, restaurant: ToastRestaurant): TicketLine {
  const requests = requestsIn(modifiers);
  return {
    reference: item.guid,
    name: restaurant.dishes.get(item.guid)?.name,
    quantity,
    price: undefined,
    note: requests.length === 0 ? undefined : requests.join('\n'),
    modifiers: modifiersIn(modifiers, restaurant),
  };
}

/** Reads modifiers. One that occurs twice, with the same of its own, is wanted twice. */
function modifiersIn(selections: readonly ToastSelection[], restaurant: ToastRestaurant): TicketModifier[] {
  const found = new Map<string, TicketModifier>();
  for (const selection of selections.filter((each) => !isRequest(each))) {
    const key = JSON.stringify([selection.item, selection.modifiers]);
    const { guid: reference } = selection.item;
    const { name } = restaurant.modifiers.get(reference) ?? {};
    const modifiers = modifiersIn(selection.modifiers, restaurant);
    const quantity = (found.get(key)?.quantity ?? 0) + 1;
    found.set(key, { reference, name, quantity, price: undefined, modifiers });
  }
  return [...found.values()];
}
