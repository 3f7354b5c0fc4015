/**
 * HubRise with one connection to one location, as https://www.hubrise.com/developers documents it; the text is in
 * github.com/HubRise/website. The comments say what it leaves open.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { readBody, sendJson, serveHttp } from '../../network/serve-http.ts';
import { ORDER_STATUSES, checkHubriseOrder, readMoney, totalOf } from './check-hubrise-order.ts';
import type { HubriseOrder } from './check-hubrise-order.ts';
import { hubriseCustomers, type HubriseCustomers } from './hubrise-customers.ts';
import { hubriseOauth, type HubriseOauth } from './hubrise-oauth.ts';
import { deliverWebhook } from '../deliver-webhook.ts';
import { isJson, jsonIn } from '../json-in.ts';
import { sendFault } from '../send-fault.ts';
import type { Counting, Kitchen, SignedWebhook, Simulator, SimulatorOptions } from '../simulator.ts';
import type { Ticket, TicketModifier } from '../simulator.ts';

const MINUTE_MS = 60_000;

/**
 * Repeats, by https://www.hubrise.com/developers/api/callbacks: "tried 6 times", the wait "starts at 1 minute and
 * doubles after each attempt, up to a maximum of 32 minutes", which takes six repeats.
 */
const DELIVERY = {
  waits: [1, 2, 4, 8, 16, 32].map((minutes) => minutes * MINUTE_MS),
  timeoutMs: 20_000,
  acknowledges: (status: number) => status >= 200 && status < 500,
};

/** Requests in a window. Windows begin at a round minute, hour and day. */
const LIMITS = [
  { requests: 500, ms: MINUTE_MS },
  { requests: 2500, ms: 60 * MINUTE_MS },
  { requests: 10_000, ms: 24 * 60 * MINUTE_MS },
];
const HEAVY_LIMITS = [{ requests: 10, ms: MINUTE_MS }];

/** The only request with a query: https://www.hubrise.com/developers/api/orders (read on 2026-11-23). */
const QUERIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['GET /v1/location/orders', ['private_ref']],
  ['GET /v1/customer_lists/{id}/customers', ['private_ref']],
]);

const DELIVERY_STATUSES = [
  'pending',
  'pickup_enroute',
  'pickup_approaching',
  'pickup_waiting',
  'dropoff_enroute',
  'dropoff_approaching',
  'dropoff_waiting',
  'delivered',
];

/** https://www.hubrise.com/developers/api/accounts#order-acceptance */
const MODES = { open: 'online', busy: 'busy', closed: 'paused' };

/** Resources and their events: https://www.hubrise.com/developers/api/callbacks#callbacks */
const RESOURCE_EVENTS: Record<string, readonly string[]> = {
  catalog: ['create', 'delete', 'update'],
  customer: ['create', 'update'],
  delivery: ['create', 'update'],
  inventory: ['patch', 'update'],
  location: ['update'],
  order: ['create', 'update'],
};

export type HubriseSimulator = Simulator & {
  /** The connection's present callback. */
  readonly callback: { url: string | null; events: Record<string, readonly string[]> };
  readonly oauth: HubriseOauth;
  /** The customer list that was chosen when the connection was made. */
  readonly list: HubriseCustomers;
  /** Returns a status for a request about customers, in its place: such as `POST /v1/customer_lists/…/customers`. */
  failCustomers: ((call: string) => number | undefined) | undefined;
  /** A status answered to an order or a callback that is taken all the same. */
  takesButAnswers: number | undefined;
};

/** An order with HubRise's own status, and the one before it. */
type StoredOrder = { order: Record<string, unknown>; status: string; before: string; delivery: object | null };

/** What HubRise knows of its one connection. */
type Connection = {
  readonly currency: string;
  readonly hurry: number;
  readonly accessToken: string;
  readonly clientSecret: string;
  readonly accountId: string;
  readonly locationId: string;
  readonly list: HubriseCustomers;
  readonly oauth: HubriseOauth;
  readonly tickets: Ticket[];
  /** Orders by id. */
  readonly kept: Map<string, StoredOrder>;
  readonly refusals: string[];
  /** The number of requests in each window of a limit. */
  readonly windows: Map<string, number>;
  callback: HubriseSimulator['callback'];
  /** What tests see and change. */
  readonly simulator: Counting<HubriseSimulator, 'requests' | 'reads' | 'cancels'>;
};

/** Resolves when it serves. */
export async function startHubrise(options: SimulatorOptions = {}): Promise<HubriseSimulator> {
  const { currency = 'EUR', hurry = 1, port } = options;
  const accessToken = randomBytes(13).toString('hex');
  const clientSecret = randomBytes(32).toString('hex');
  const accountId = randomId();
  const locationId = `${accountId}-1`;
  const list = hubriseCustomers(randomId());
  const resources = {
    account_id: accountId,
    location_id: locationId,
    customer_list_id: list.listId,
    account_name: 'Bella Pizza',
    location_name: 'Paris',
    customer_list_name: 'Online customers',
  };
  const oauth = hubriseOauth({ accessToken, clientSecret }, resources, (response, status, body, why) =>
    refuse(connection, response, status, body, why),
  );
  const tickets: Ticket[] = [];
  const refusals: string[] = [];

  const server = await serveHttp((request, response) => route(connection, request, response), port);
  const simulator: Connection['simulator'] = {
    integration: 'hubrise',
    url: server.url,
    settings: { accessToken, clientSecret, baseUrl: `${server.url}/v1`, oauthUrl: `${server.url}/oauth2/v1` },
    oauth,
    list,
    failCustomers: undefined,
    tickets,
    refusals,
    requests: 0,
    get callback() {
      return connection.callback;
    },
    takesButAnswers: undefined,
    behave: undefined,
    onTicket: undefined,
    become: (ticket, nativeStatus) => become(connection, ticket, nativeStatus),
    reads: 0,
    misread: undefined,
    cancels: 0,
    miscancel: undefined,
    estimate: undefined,
    lifeOf: (fulfillment) =>
      fulfillment === 'delivery'
        ? ['received', 'accepted', 'in_preparation', 'awaiting_shipment', 'in_delivery', 'completed']
        : ['received', 'accepted', 'in_preparation', 'awaiting_collection', 'completed'],
    sign: (_webhookUrl, ticket, nativeStatus) => sign(connection, ticket, nativeStatus),
    report: (webhookUrl, ticket, nativeStatus) => report(connection, webhookUrl, ticket, nativeStatus),
    signKitchen: (kitchen) => signKitchen(connection, kitchen),
    setKitchen(webhookUrl, kitchen) {
      const webhook = signKitchen(connection, kitchen);
      return deliverWebhook(webhookUrl, () => webhook, DELIVERY, hurry);
    },
    stop: () => server.stop(),
  };
  const connection: Connection = {
    currency,
    hurry,
    accessToken,
    clientSecret,
    accountId,
    locationId,
    list,
    oauth,
    tickets,
    kept: new Map(),
    refusals,
    windows: new Map(),
    callback: { url: null, events: {} },
    simulator,
  };
  return simulator;
}

function refuse(connection: Connection, response: ServerResponse, status: number, body: object, why: string): void {
  connection.refusals.push(why);
  sendJson(response, status, body);
}

async function route(connection: Connection, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const { pathname, searchParams } = url;
  const call = `${request.method} ${pathname}`;
  const body = await readBody(request);
  if (call === 'GET /oauth2/v1/authorize') return connection.oauth.showPage(response, url);
  const queries = QUERIES.get(call.replace(connection.list.listId, '{id}')) ?? [];
  const unknown = [...searchParams.keys()].filter((name) => !queries.includes(name));
  if (unknown.length > 0)
    return refuse(connection, response, 400, {}, `${unknown.join(', ')} of ${call} is not documented`);
  if (call === 'POST /v1/location/orders') {
    connection.simulator.requests += 1;
    const { private_ref: reference } = (jsonIn(body) ?? {}) as { private_ref?: unknown };
    const fault = connection.simulator.behave?.({ serviceOrderId: String(reference) });
    if (fault === 'hang') return;
    if (typeof fault === 'object') return sendFault(response, fault);
    if (admit(connection, request, response, LIMITS))
      takeOrder(connection, request, response, body, fault === 'drop-answer');
    return;
  }
  const [, cancelled] = /^PATCH \/v1\/location\/orders\/(\w+)$/.exec(call) ?? [];
  if (cancelled !== undefined) return updateOrder(connection, request, response, cancelled, body);
  const [, asked] = /^GET \/v1\/location\/orders\/(\w+)$/.exec(call) ?? [];
  if (asked !== undefined) return showOrder(connection, request, response, asked);
  if (call === 'POST /oauth2/v1/token') return connection.oauth.grant(request, response, body);
  if (call === 'POST /oauth2/v1/revoke') return connection.oauth.revoke(request, response, body);
  const isList = call === 'GET /v1/location/orders';
  const isHeavy = isList || call === `GET /v1/customer_lists/${connection.list.listId}/customers`;
  if (!admit(connection, request, response, LIMITS) || (isHeavy && !admit(connection, request, response, HEAVY_LIMITS)))
    return;
  if (isList) return listOrders(connection, response, searchParams);
  if (pathname.startsWith('/v1/customer_lists')) return answerCustomers(connection, call, response, searchParams, body);
  if (call === 'GET /v1/location') return sendJson(response, 200, describeLocation(connection));
  if (call === 'GET /v1/callback') return sendJson(response, 200, connection.callback);
  if (call === 'POST /v1/callback') return setCallback(connection, request, response, body);
  return refuse(connection, response, 404, { error_type: 'routing_error' }, `${call}: there is no such endpoint`);
}

function answerCustomers(
  connection: Connection,
  call: string,
  response: ServerResponse,
  filters: URLSearchParams,
  body: Buffer,
): void {
  const fault = connection.simulator.failCustomers?.(call);
  if (fault !== undefined) return sendJson(response, fault, {});
  // Which error_type goes with 403 is not documented.
  if (!connection.oauth.opensCustomers())
    return refuse(connection, response, 403, {}, 'the scope has no customer_list.write');
  const [method = '', path = ''] = call.split(' ');
  const answered = connection.list.answer(method, path.replace('/v1/customer_lists', ''), filters, jsonIn(body));
  if (answered.status >= 300)
    return refuse(connection, response, answered.status, answered.body as object, `${call}: refused`);
  return sendJson(response, answered.status, answered.body);
}

/** Checks token and limits. A token is a connection; windows follow the clock. */
function admit(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  limits: typeof LIMITS,
): boolean {
  if (request.headers['x-access-token'] !== connection.accessToken || connection.oauth.isRevoked()) {
    const message = 'The access token is invalid or the connection has been revoked';
    refuse(connection, response, 401, { message, error_type: 'unauthorized' }, 'the access token is unknown');
    return false;
  }
  const spent = limits.map(({ requests, ms }) => {
    const window = `${requests} ${Math.floor(Date.now() / ms)}`;
    connection.windows.set(window, (connection.windows.get(window) ?? 0) + 1);
    return (connection.windows.get(window) ?? 0) > requests;
  });
  if (!spent.includes(true)) return true;
  refuse(connection, response, 429, { error_type: 'too_many_requests' }, 'there are more requests than HubRise allows');
  return false;
}

function takeOrder(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  dropsAnswer: boolean,
): void {
  if (!isJson(request)) {
    return refuse(
      connection,
      response,
      415,
      { error_type: 'unsupported_media_type' },
      'the content type is not application/json',
    );
  }
  const json = jsonIn(body);
  // Which error_type goes with 400 is not documented.
  if (json === undefined) return refuse(connection, response, 400, { message: 'Invalid JSON' }, 'the body is not JSON');
  const checked = checkHubriseOrder(json, connection.currency);
  if ('errors' in checked) {
    const { errors } = checked;
    const refusal = { message: 'Validation failed', errors, error_type: 'unprocessable_entity' };
    return refuse(connection, response, 422, refusal, JSON.stringify(errors));
  }
  const { customer_id } = checked.order;
  const customer = connection.list.customers.find(({ id }) => id === customer_id);
  if (typeof customer_id === 'string' && customer === undefined) {
    const errors = [{ field: 'customer_id', message: 'is invalid' }];
    return refuse(connection, response, 422, { errors, error_type: 'unprocessable_entity' }, 'no customer has this id');
  }
  // "The customer values at the time of the order creation."
  const placed =
    customer === undefined
      ? checked.order
      : { ...checked.order, customer: { ...customer } as HubriseOrder['customer'] };
  // Every request makes an order: a private ref is for look-ups, and a ref's "unicity is not enforced".
  const order = store(connection, placed);
  if (dropsAnswer) request.socket.destroy();
  else answerTaken(connection, response, order);
}

/** 500: "The server encountered an unexpected error", https://www.hubrise.com/developers/api/general-concepts */
function answerTaken(connection: Connection, response: ServerResponse, json: object): void {
  const { takesButAnswers: status } = connection.simulator;
  if (status === undefined) sendJson(response, 200, json);
  else sendJson(response, status, { error_type: 'internal_error' });
}

function store(connection: Connection, order: HubriseOrder): object {
  const ticket = readTicket(order, connection.currency);
  const whole = {
    id: ticket.providerOrderId,
    location_id: connection.locationId,
    service_type_ref: null,
    created_at: localTime(),
    created_by: 'Clubs',
    expected_time: null,
    confirmed_time: null,
    seller_notes: null,
    collection_code: null,
    coupon_codes: [],
    total: totalOf(order, connection.currency),
    ...order,
    deals: {},
    loyalty_operations: [],
    custom_fields: {},
  };
  connection.tickets.push(ticket);
  connection.kept.set(ticket.providerOrderId, {
    order: whole,
    status: order.status,
    before: order.status,
    delivery: null,
  });
  connection.simulator.onTicket?.(ticket);
  return whole;
}

/** With `orders.write` as with `orders.read`: https://www.hubrise.com/developers/api/authentication#oauth-scopes */
function showOrder(connection: Connection, request: IncomingMessage, response: ServerResponse, id: string): void {
  connection.simulator.reads += 1;
  const fault = connection.simulator.misread?.();
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);
  if (!admit(connection, request, response, LIMITS)) return;
  const known = connection.kept.get(id);
  if (fault === 'drop-answer') request.socket.destroy();
  else if (known === undefined) sendJson(response, 404, { error_type: 'not_found' });
  else sendJson(response, 200, whole(known));
}

/**
 * Updates the status, the only documented field that we send. No status excludes another. The client that updates an
 * order gets no callback.
 */
function updateOrder(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  id: string,
  body: Buffer,
): void {
  connection.simulator.cancels += 1;
  const fault = connection.simulator.miscancel?.();
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);
  if (!admit(connection, request, response, LIMITS)) return;
  const update = z.strictObject({ status: z.enum(ORDER_STATUSES) }).safeParse(jsonIn(body));
  if (!isJson(request) || !update.success) {
    const errors = [{ field: 'status', message: 'is invalid' }];
    return refuse(
      connection,
      response,
      422,
      { errors, error_type: 'unprocessable_entity' },
      'the update is not as documented',
    );
  }
  const known = connection.kept.get(id);
  const ticket = connection.tickets.find(({ providerOrderId }) => providerOrderId === id);
  if (known === undefined || ticket === undefined) return sendJson(response, 404, { error_type: 'not_found' });
  become(connection, ticket, update.data.status);
  if (update.data.status === 'cancelled') ticket.cancelled = true;
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, 200, whole(known));
}

function whole({ order, status, delivery }: StoredOrder): Record<string, unknown> {
  return { ...order, status, delivery };
}

function listOrders(connection: Connection, response: ServerResponse, filters: URLSearchParams): void {
  const reference = filters.get('private_ref');
  const orders = [...connection.kept.values()].map(whole);
  const found = reference === null ? orders : orders.filter((order) => order['private_ref'] === reference);
  const more: Record<string, string> = found.length > 100 ? { 'x-cursor-next': randomId() } : {};
  return sendJson(response, 200, found.slice(0, 100), more);
}

function setCallback(connection: Connection, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const { url = null, events = {}, ...others } = (jsonIn(body) ?? {}) as Partial<HubriseSimulator['callback']>;
  const isUnknown = ([resource, types]: [string, readonly string[]]) =>
    !Array.isArray(types) || types.some((type) => RESOURCE_EVENTS[resource]?.includes(type) !== true);
  const wrong = [
    ...Object.keys(others),
    ...(url === null || URL.canParse(url) ? [] : ['url']),
    ...Object.entries(events).flatMap((entry) => (isUnknown(entry) ? [entry[0]] : [])),
  ];
  if (!isJson(request) || wrong.length > 0) {
    const errors = wrong.map((field) => ({ field, message: 'is invalid' }));
    const refusal = { message: 'Validation failed', errors, error_type: 'unprocessable_entity' };
    return refuse(connection, response, 422, refusal, `the callback is not JSON, or has a wrong ${wrong.join(', ')}`);
  }
  connection.callback = { url, events };
  return answerTaken(connection, response, connection.callback);
}

function describeLocation(connection: Connection): object {
  const account = { id: connection.accountId, name: 'Bella Pizza', currency: connection.currency };
  return {
    id: connection.locationId,
    name: 'Paris',
    account,
    timezone: { name: 'Europe/Paris' },
    cutoff_time: '06:00',
  };
}

/** A reason may follow `rejected`; an EPOS puts it into a custom field. */
function sign(connection: Connection, ticket: Ticket, native: string): SignedWebhook {
  const [, nativeStatus = native, cause] = /^(rejected) (.*)$/.exec(native) ?? [];
  const custom_fields = cause === undefined ? {} : { epos: { rejection: { cause } } };
  const { order, status, before } = keptOf(connection, ticket);
  const confirmed =
    connection.simulator.estimate === undefined ? {} : { confirmed_time: connection.simulator.estimate };
  // HubRise reports only changes: the same status again is the same event again.
  const previous = { ...order, status: status === nativeStatus ? before : status };
  return seal(connection, {
    id: randomId(),
    resource_type: 'order',
    event_type: 'update',
    created_at: localTime(),
    // "The ids of the affected resource and its parent resources"; no example shows an order's.
    order_id: ticket.providerOrderId,
    location_id: connection.locationId,
    account_id: connection.accountId,
    previous_state: previous,
    // A delivery's status comes with the order's update: https://www.hubrise.com/developers/api/orders#delivery
    new_state: DELIVERY_STATUSES.includes(nativeStatus)
      ? { ...previous, delivery: deliveryIn(nativeStatus) }
      : { ...previous, ...confirmed, custom_fields, status: nativeStatus },
  });
}

/** No example shows a location's event: the envelope is that of other events. */
function signKitchen(connection: Connection, { state, until, extraMinutes }: Kitchen): SignedWebhook {
  const order_acceptance = {
    mode: MODES[state],
    ...(state !== 'open' && { resume_at: until ?? null }),
    ...(state === 'busy' && { extra_preparation_time: extraMinutes }),
  };
  return seal(connection, {
    id: randomId(),
    resource_type: 'location',
    event_type: 'update',
    created_at: localTime(),
    location_id: connection.locationId,
    account_id: connection.accountId,
    previous_state: { ...describeLocation(connection), order_acceptance: { mode: 'online' } },
    new_state: { ...describeLocation(connection), order_acceptance },
  });
}

function seal(connection: Connection, event: object): SignedWebhook {
  const body = Buffer.from(JSON.stringify(event));
  const signature = createHmac('sha256', connection.clientSecret).update(body).digest('hex');
  return { headers: { 'content-type': 'application/json', 'x-hubrise-hmac-sha256': signature }, body };
}

function keptOf(connection: Connection, { providerOrderId }: Ticket): StoredOrder {
  const known = connection.kept.get(providerOrderId);
  if (known === undefined) throw new Error('the ticket belongs to another simulator');
  return known;
}

function become(connection: Connection, ticket: Ticket, nativeStatus: string): void {
  const known = keptOf(connection, ticket);
  ticket.status = nativeStatus;
  if (DELIVERY_STATUSES.includes(nativeStatus)) known.delivery = deliveryIn(nativeStatus);
  else if (ORDER_STATUSES.includes(nativeStatus) && known.status !== nativeStatus) {
    Object.assign(known, { before: known.status, status: nativeStatus });
  }
}

function report(connection: Connection, webhookUrl: string, ticket: Ticket, nativeStatus: string) {
  const webhook = sign(connection, ticket, nativeStatus);
  become(connection, ticket, nativeStatus);
  return deliverWebhook(webhookUrl, () => webhook, DELIVERY, connection.hurry);
}

function readTicket(order: HubriseOrder, currency: string): Ticket {
  const { customer: guest, charges } = order;
  const sumOf = (isMeant: (charge: HubriseOrder['charges'][number]) => boolean): number =>
    charges.filter(isMeant).reduce((sum, { price }) => sum + readMoney(price), 0);
  return {
    providerOrderId: randomId(),
    serviceOrderId: order.private_ref ?? order.ref ?? '',
    // HubRise recognises no repeat. This is what an order is found by.
    key: order.private_ref ?? '',
    fulfillment: order.service_type === 'delivery' ? 'delivery' : 'pickup',
    callOut: order.collection_code ?? undefined,
    lines: order.items.map((item) => ({
      reference: item.sku_ref ?? '',
      name: item.product_name,
      quantity: Number(item.quantity),
      price: readMoney(item.price),
      note: item.customer_notes ?? undefined,
      modifiers: optionsOf(item),
    })),
    paid: order.payments.reduce((sum, { amount }) => sum + readMoney(amount), 0),
    tip: sumOf(({ ref }) => ref === 'TIP'),
    fee: sumOf(({ ref }) => ref === 'DELIVERY_FEE' || ref === 'SERVICE_FEE'),
    discount: order.discounts.reduce((sum, { price_off }) => sum + readMoney(price_off), 0),
    total: readMoney(totalOf(order, currency)),
    guest: {
      name: [guest?.first_name, guest?.last_name].filter(Boolean).join(' '),
      phone: guest?.phone ?? undefined,
      email: guest?.email ?? undefined,
    },
    address: guest?.address_1
      ? [guest.address_1, guest.address_2, guest.postal_code, guest.city, guest.state].filter(Boolean).join(' ')
      : undefined,
    wantedAt: order.expected_time ?? undefined,
    note: [order.customer_notes, order.customer?.delivery_notes].filter(Boolean).join('\n'),
    requests: 1,
    status: undefined,
  };
}

/** A courier's delivery: https://www.hubrise.com/developers/api/deliveries */
function deliveryIn(status: string): object {
  return { carrier: 'Uber Direct', ref: randomId(), status, driver_name: 'Sam' };
}

/** Counts options, of which the same one may come several times. */
function optionsOf({ options }: HubriseOrder['items'][number]): TicketModifier[] {
  const counted = new Map<string, TicketModifier>();
  for (const { ref, name, price, quantity } of options) {
    const key = JSON.stringify([ref, name, price]);
    const before = counted.get(key)?.quantity ?? 0;
    const each = price === null || price === undefined ? undefined : readMoney(price);
    counted.set(key, { reference: ref ?? '', name, quantity: before + quantity, price: each });
  }
  return [...counted.values()];
}

/** Makes an id such as "5dpm9". */
function randomId(): string {
  return Number.parseInt(randomBytes(6).toString('hex'), 16).toString(36);
}

/** "HubRise converts times to the location default timezone": Paris in winter. */
function localTime(): string {
  return new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, '+01:00');
}
