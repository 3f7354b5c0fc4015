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
  const oauth = hubriseOauth({ accessToken, clientSecret }, resources, refuse);
  const tickets: Ticket[] = [];
  const kept = new Map<string, StoredOrder>();
  const refusals: string[] = [];
  const windows = new Map<string, number>();
  let callback: HubriseSimulator['callback'] = { url: null, events: {} };

  function refuse(response: ServerResponse, status: number, body: object, why: string): void {
    refusals.push(why);
    sendJson(response, status, body);
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const { pathname, searchParams } = url;
    const call = `${request.method} ${pathname}`;
    const body = await readBody(request);
    if (call === 'GET /oauth2/v1/authorize') return oauth.showPage(response, url);
    const queries = QUERIES.get(call.replace(list.listId, '{id}')) ?? [];
    const unknown = [...searchParams.keys()].filter((name) => !queries.includes(name));
    if (unknown.length > 0) return refuse(response, 400, {}, `${unknown.join(', ')} of ${call} is not documented`);
    if (call === 'POST /v1/location/orders') {
      simulator.requests += 1;
      const { private_ref: reference } = (jsonIn(body) ?? {}) as { private_ref?: unknown };
      const fault = simulator.behave?.({ serviceOrderId: String(reference) });
      if (fault === 'hang') return;
      if (typeof fault === 'object') return sendFault(response, fault);
      if (admit(request, response, LIMITS)) takeOrder(request, response, body, fault === 'drop-answer');
      return;
    }
    const [, cancelled] = /^PATCH \/v1\/location\/orders\/(\w+)$/.exec(call) ?? [];
    if (cancelled !== undefined) return updateOrder(request, response, cancelled, body);
    const [, asked] = /^GET \/v1\/location\/orders\/(\w+)$/.exec(call) ?? [];
    if (asked !== undefined) return showOrder(request, response, asked);
    if (call === 'POST /oauth2/v1/token') return oauth.grant(request, response, body);
    if (call === 'POST /oauth2/v1/revoke') return oauth.revoke(request, response, body);
    const isList = call === 'GET /v1/location/orders';
    const isHeavy = isList || call === `GET /v1/customer_lists/${list.listId}/customers`;
    if (!admit(request, response, LIMITS) || (isHeavy && !admit(request, response, HEAVY_LIMITS))) return;
    if (isList) return listOrders(response, searchParams);
    if (pathname.startsWith('/v1/customer_lists')) return answerCustomers(call, response, searchParams, body);
    if (call === 'GET /v1/location') return sendJson(response, 200, describeLocation());
    if (call === 'GET /v1/callback') return sendJson(response, 200, callback);
    if (call === 'POST /v1/callback') return setCallback(request, response, body);
    return refuse(response, 404, { error_type: 'routing_error' }, `${call}: there is no such endpoint`);
  }

  function answerCustomers(call: string, response: ServerResponse, filters: URLSearchParams, body: Buffer): void {
    const fault = simulator.failCustomers?.(call);
    if (fault !== undefined) return sendJson(response, fault, {});
    // Which error_type goes with 403 is not documented.
    if (!oauth.opensCustomers()) return refuse(response, 403, {}, 'the scope has no customer_list.write');
    const [method = '', path = ''] = call.split(' ');
    const answered = list.answer(method, path.replace('/v1/customer_lists', ''), filters, jsonIn(body));
    if (answered.status >= 300) return refuse(response, answered.status, answered.body as object, `${call}: refused`);
    return sendJson(response, answered.status, answered.body);
  }

  /** Checks token and limits. A token is a connection; windows follow the clock. */
  function admit(request: IncomingMessage, response: ServerResponse, limits: typeof LIMITS): boolean {
    if (request.headers['x-access-token'] !== accessToken || oauth.isRevoked()) {
      const message = 'The access token is invalid or the connection has been revoked';
      refuse(response, 401, { message, error_type: 'unauthorized' }, 'the access token is unknown');
      return false;
    }
    const spent = limits.map(({ requests, ms }) => {
      const window = `${requests} ${Math.floor(Date.now() / ms)}`;
      windows.set(window, (windows.get(window) ?? 0) + 1);
      return (windows.get(window) ?? 0) > requests;
    });
    if (!spent.includes(true)) return true;
    refuse(response, 429, { error_type: 'too_many_requests' }, 'there are more requests than HubRise allows');
    return false;
  }

  function takeOrder(request: IncomingMessage, response: ServerResponse, body: Buffer, dropsAnswer: boolean): void {
    if (!isJson(request)) {
      return refuse(
        response,
        415,
        { error_type: 'unsupported_media_type' },
        'the content type is not application/json',
      );
    }
    const json = jsonIn(body);
    // Which error_type goes with 400 is not documented.
    if (json === undefined) return refuse(response, 400, { message: 'Invalid JSON' }, 'the body is not JSON');
    const checked = checkHubriseOrder(json, currency);
    if ('errors' in checked) {
      const { errors } = checked;
      const refusal = { message: 'Validation failed', errors, error_type: 'unprocessable_entity' };
      return refuse(response, 422, refusal, JSON.stringify(errors));
    }
    const { customer_id } = checked.order;
    const customer = list.customers.find(({ id }) => id === customer_id);
    if (typeof customer_id === 'string' && customer === undefined) {
      const errors = [{ field: 'customer_id', message: 'is invalid' }];
      return refuse(response, 422, { errors, error_type: 'unprocessable_entity' }, 'no customer has this id');
    }
    // "The customer values at the time of the order creation."
    const placed =
      customer === undefined
        ? checked.order
        : { ...checked.order, customer: { ...customer } as HubriseOrder['customer'] };
    // Every request makes an order: a private ref is for look-ups, and a ref's "unicity is not enforced".
    const order = store(placed);
    if (dropsAnswer) request.socket.destroy();
    else answerTaken(response, order);
  }

  /** 500: "The server encountered an unexpected error", https://www.hubrise.com/developers/api/general-concepts */
  function answerTaken(response: ServerResponse, json: object): void {
    const { takesButAnswers: status } = simulator;
    if (status === undefined) sendJson(response, 200, json);
    else sendJson(response, status, { error_type: 'internal_error' });
  }

  function store(order: HubriseOrder): object {
    const ticket = readTicket(order, currency);
    const whole = {
      id: ticket.providerOrderId,
      location_id: locationId,
      service_type_ref: null,
      created_at: localTime(),
      created_by: 'Clubs',
      expected_time: null,
      confirmed_time: null,
      seller_notes: null,
      collection_code: null,
      coupon_codes: [],
      total: totalOf(order, currency),
      ...order,
      deals: {},
      loyalty_operations: [],
      custom_fields: {},
    };
    tickets.push(ticket);
    kept.set(ticket.providerOrderId, { order: whole, status: order.status, before: order.status, delivery: null });
    simulator.onTicket?.(ticket);
    return whole;
  }

  /** With `orders.write` as with `orders.read`: https://www.hubrise.com/developers/api/authentication#oauth-scopes */
  function showOrder(request: IncomingMessage, response: ServerResponse, id: string): void {
    simulator.reads += 1;
    const fault = simulator.misread?.();
    if (fault === 'hang') return;
    if (typeof fault === 'object') return sendFault(response, fault);
    if (!admit(request, response, LIMITS)) return;
    const known = kept.get(id);
    if (fault === 'drop-answer') request.socket.destroy();
    else if (known === undefined) sendJson(response, 404, { error_type: 'not_found' });
    else sendJson(response, 200, whole(known));
  }

  /**
   * Updates the status, the only documented field that we send. No status excludes another. The client that updates an
   * order gets no callback.
   */
  function updateOrder(request: IncomingMessage, response: ServerResponse, id: string, body: Buffer): void {
    simulator.cancels += 1;
    const fault = simulator.miscancel?.();
    if (fault === 'hang') return;
    if (typeof fault === 'object') return sendFault(response, fault);
    if (!admit(request, response, LIMITS)) return;
    const update = z.strictObject({ status: z.enum(ORDER_STATUSES) }).safeParse(jsonIn(body));
    if (!isJson(request) || !update.success) {
      const errors = [{ field: 'status', message: 'is invalid' }];
      return refuse(response, 422, { errors, error_type: 'unprocessable_entity' }, 'the update is not as documented');
    }
    const known = kept.get(id);
    const ticket = tickets.find(({ providerOrderId }) => providerOrderId === id);
    if (known === undefined || ticket === undefined) return sendJson(response, 404, { error_type: 'not_found' });
    become(ticket, update.data.status);
    if (update.data.status === 'cancelled') ticket.cancelled = true;
    if (fault === 'drop-answer') request.socket.destroy();
    else sendJson(response, 200, whole(known));
  }

  function whole({ order, status, delivery }: StoredOrder): Record<string, unknown> {
    return { ...order, status, delivery };
  }

  function listOrders(response: ServerResponse, filters: URLSearchParams): void {
    const reference = filters.get('private_ref');
    const orders = [...kept.values()].map(whole);
    const found = reference === null ? orders : orders.filter((order) => order['private_ref'] === reference);
    const more: Record<string, string> = found.length > 100 ? { 'x-cursor-next': randomId() } : {};
    return sendJson(response, 200, found.slice(0, 100), more);
  }

  function setCallback(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
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
      return refuse(response, 422, refusal, `the callback is not JSON, or has a wrong ${wrong.join(', ')}`);
    }
    callback = { url, events };
    return answerTaken(response, callback);
  }

  function describeLocation(): object {
    const account = { id: accountId, name: 'Bella Pizza', currency };
    return { id: locationId, name: 'Paris', account, timezone: { name: 'Europe/Paris' }, cutoff_time: '06:00' };
  }

  /** A reason may follow `rejected`; an EPOS puts it into a custom field. */
  function sign(_webhookUrl: string, ticket: Ticket, native: string): SignedWebhook {
    const [, nativeStatus = native, cause] = /^(rejected) (.*)$/.exec(native) ?? [];
    const custom_fields = cause === undefined ? {} : { epos: { rejection: { cause } } };
    const { order, status, before } = keptOf(ticket);
    const confirmed = simulator.estimate === undefined ? {} : { confirmed_time: simulator.estimate };
    // HubRise reports only changes: the same status again is the same event again.
    const previous = { ...order, status: status === nativeStatus ? before : status };
    return seal({
      id: randomId(),
      resource_type: 'order',
      event_type: 'update',
      created_at: localTime(),
      // "The ids of the affected resource and its parent resources"; no example shows an order's.
      order_id: ticket.providerOrderId,
      location_id: locationId,
      account_id: accountId,
      previous_state: previous,
      // A delivery's status comes with the order's update: https://www.hubrise.com/developers/api/orders#delivery
      new_state: DELIVERY_STATUSES.includes(nativeStatus)
        ? { ...previous, delivery: deliveryIn(nativeStatus) }
        : { ...previous, ...confirmed, custom_fields, status: nativeStatus },
    });
  }

  /** No example shows a location's event: the envelope is that of other events. */
  function signKitchen({ state, until, extraMinutes }: Kitchen): SignedWebhook {
    const order_acceptance = {
      mode: MODES[state],
      ...(state !== 'open' && { resume_at: until ?? null }),
      ...(state === 'busy' && { extra_preparation_time: extraMinutes }),
    };
    return seal({
      id: randomId(),
      resource_type: 'location',
      event_type: 'update',
      created_at: localTime(),
      location_id: locationId,
      account_id: accountId,
      previous_state: { ...describeLocation(), order_acceptance: { mode: 'online' } },
      new_state: { ...describeLocation(), order_acceptance },
    });
  }

  function seal(event: object): SignedWebhook {
    const body = Buffer.from(JSON.stringify(event));
    const signature = createHmac('sha256', clientSecret).update(body).digest('hex');
    return { headers: { 'content-type': 'application/json', 'x-hubrise-hmac-sha256': signature }, body };
  }

  function keptOf({ providerOrderId }: Ticket): StoredOrder {
    const known = kept.get(providerOrderId);
    if (known === undefined) throw new Error('the ticket belongs to another simulator');
    return known;
  }

  function become(ticket: Ticket, nativeStatus: string): void {
    const known = keptOf(ticket);
    ticket.status = nativeStatus;
    if (DELIVERY_STATUSES.includes(nativeStatus)) known.delivery = deliveryIn(nativeStatus);
    else if (ORDER_STATUSES.includes(nativeStatus) && known.status !== nativeStatus) {
      Object.assign(known, { before: known.status, status: nativeStatus });
    }
  }

  function report(webhookUrl: string, ticket: Ticket, nativeStatus: string) {
    const webhook = sign(webhookUrl, ticket, nativeStatus);
    become(ticket, nativeStatus);
    return deliverWebhook(webhookUrl, () => webhook, DELIVERY, hurry);
  }

  const server = await serveHttp(route, port);
  const simulator: Counting<HubriseSimulator, 'requests' | 'reads' | 'cancels'> = {
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
      return callback;
    },
    takesButAnswers: undefined,
    behave: undefined,
    onTicket: undefined,
    become,
    reads: 0,
    misread: undefined,
    cancels: 0,
    miscancel: undefined,
    estimate: undefined,
    lifeOf: (fulfillment) =>
      fulfillment === 'delivery'
        ? ['received', 'accepted', 'in_preparation', 'awaiting_shipment', 'in_delivery', 'completed']
        : ['received', 'accepted', 'in_preparation', 'awaiting_collection', 'completed'],
    sign,
    report,
    signKitchen,
    setKitchen(webhookUrl, kitchen) {
      const webhook = signKitchen(kitchen);
      return deliverWebhook(webhookUrl, () => webhook, DELIVERY, hurry);
    },
    stop: () => server.stop(),
  };
  return simulator;
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
