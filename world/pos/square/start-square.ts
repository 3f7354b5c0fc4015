/**
 * Square's Orders, Payments, OAuth and Webhook Subscriptions APIs, as far as an online order needs them, for one seller
 * with one location and a formal partnership, without which delivery orders are not shown.
 *
 * A ticket is a paid order: only those reach a seller's screen.
 * https://developer.squareup.com/docs/orders-api/fulfillments
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody, sendJson, serveHttp } from '../../network/serve-http.ts';
import { deliverWebhook } from '../deliver-webhook.ts';
import { priceSquareOrder, type SquareCatalog } from './price-square-order.ts';
import { sendFault } from '../send-fault.ts';
import type { Counting, Fault, Simulator, SimulatorOptions, Ticket } from '../simulator.ts';
import { CreateOrder, CreatePayment, PayOrder, QUERIES, SearchOrders, TAKES_BODY } from './square-requests.ts';
import { errorsIn, UpdateOrder, type SquareAnswer, type SquareCall, type SquareError } from './square-requests.ts';
import { MERCHANT, TOKEN_S, squareOauth, type SquareOauth } from './square-oauth.ts';
import { squareSubscriptions, type SquareSubscription } from './square-subscriptions.ts';
import { FULFILLMENT_UID, SQUARE_DELIVERY, squareEvents } from './square-webhooks.ts';

export type SquareSimulator = Simulator & {
  /** A token by OAuth, for orders and payments, not for subscriptions; it lives for 30 days. */
  readonly sellerToken: string;
  readonly oauth: SquareOauth;
  /** The scopes that the seller has granted. */
  sellerScopes: string[];
  /** The location's status. */
  locationStatus: 'ACTIVE' | 'INACTIVE';
  readonly catalog: SquareCatalog;
  /** All orders, paid or not. The payments' tips are the pool of the seller's staff. */
  readonly orders: readonly { readonly id: string; readonly isPaid: boolean; readonly tip: number }[];
  /** Every request with a body, oldest first. */
  readonly calls: readonly { readonly route: string; readonly body: unknown }[];
  readonly subscriptions: SquareSubscription[];
  /** Returns a fault for any request, by its route such as `POST /v2/payments`, before it is processed. */
  fail: ((route: string) => Fault | undefined) | undefined;
};

type Order = {
  id: string;
  /** The idempotency key of its request. */
  key: string;
  content: CreateOrder['order'];
  total: number;
  tax: number;
  charges: number;
  discount: number;
  createdAt: string;
  version: number;
  /** The reason given at the till. */
  cancelReason: string | undefined;
  state: string;
  /** Of its fulfillment. */
  stage: string;
  updatedAt: string;
  isPaid: boolean;
  paid: number;
  tip: number;
  requests: number;
  dropsAnswer: boolean;
  ticket: Ticket | undefined;
};

/** What the simulator knows of its one seller. */
type Seller = {
  readonly currency: string;
  readonly locationId: string;
  /** The application's own token. */
  readonly accessToken: string;
  readonly sellerToken: string;
  readonly sellerTokenUntil: number;
  readonly signatureKey: string;
  readonly oauth: SquareOauth;
  readonly webhooks: ReturnType<typeof squareSubscriptions>;
  readonly catalog: SquareCatalog;
  readonly orders: Order[];
  readonly tickets: Ticket[];
  readonly refusals: string[];
  readonly calls: { route: string; body: unknown }[];
  /** The first successful request and its answer, by endpoint and key. */
  readonly answered: Map<string, { request: string; answer: SquareAnswer; order: Order }>;
  /** What tests see and change. */
  readonly simulator: Counting<SquareSimulator, 'requests' | 'reads' | 'cancels'>;
};

/** The states of a fulfillment. */
const STAGES = ['PROPOSED', 'RESERVED', 'PREPARED', 'COMPLETED', 'CANCELED', 'FAILED'];

/** Makes an id in Square's format. */
function newId(): string {
  return randomBytes(12).toString('hex').toUpperCase();
}

function newToken(): string {
  return `EAAA${randomBytes(30).toString('base64url')}`;
}

function errorAnswer(status: number, code: string, detail: string, field?: string, category?: string): SquareAnswer {
  const error: SquareError = { category: category ?? 'INVALID_REQUEST_ERROR', code, detail, ...(field && { field }) };
  return { status, body: { errors: [error] } };
}

function insufficientScopes(scope: string): SquareAnswer {
  const detail =
    'The merchant has not given your application sufficient permissions to do that. The merchant must authorize your ' +
    `application for the following scopes: ${scope}`;
  return errorAnswer(403, 'INSUFFICIENT_SCOPES', detail, undefined, 'AUTHENTICATION_ERROR');
}

const SELLER_TOKEN_MS = 30 * 86_400_000;

/** @param options.byOauth its settings have a refresh token in the place of the application's own token */
export async function startSquare(options: SimulatorOptions & { byOauth?: boolean } = {}): Promise<SquareSimulator> {
  const { currency = 'EUR', hurry = 1, byOauth = false } = options;
  const locationId = newId();
  const accessToken = newToken();
  const sellerToken = newToken();
  const sellerTokenUntil = Date.now() + SELLER_TOKEN_MS;
  const oauth = squareOauth();
  const signatureKey = randomBytes(16).toString('base64url');
  const { catalog, itemMap, menu } = openCatalog();
  const events = squareEvents(locationId);
  const webhooks = squareSubscriptions();
  const orders: Order[] = [];
  const tickets: Ticket[] = [];
  const refusals: string[] = [];
  const calls: { route: string; body: unknown }[] = [];
  const server = await serveHttp((request, response) => serve(seller, request, response), options.port);

  const simulator: Seller['simulator'] = {
    integration: 'square',
    url: server.url,
    settings: {
      ...(byOauth
        ? { clientId: oauth.clientId, clientSecret: oauth.clientSecret, refreshToken: oauth.refreshToken }
        : { accessToken }),
      locationId,
      signatureKey,
      itemMap,
      baseUrl: server.url,
    },
    ...(byOauth && { expireTokens: () => oauth.expireTokens(), tokenSeconds: TOKEN_S }),
    get grants() {
      return oauth.grants;
    },
    menu,
    tickets,
    requests: 0,
    refusals,
    behave: undefined,
    onTicket: undefined,
    become: (ticket, nativeStatus) => become(seller, ticket, nativeStatus),
    reads: 0,
    misread: undefined,
    cancels: 0,
    miscancel: undefined,
    estimate: undefined,
    sellerToken,
    oauth,
    sellerScopes: ['ORDERS_READ', 'ORDERS_WRITE', 'PAYMENTS_WRITE'],
    locationStatus: 'ACTIVE',
    catalog,
    orders,
    calls,
    subscriptions: webhooks.subscriptions,
    fail: undefined,
    // A paid order begins as PROPOSED without an event.
    lifeOf: () => ['RESERVED', 'PREPARED', 'COMPLETED'],
    sign: (webhookUrl, ticket, nativeStatus) =>
      events.sign(webhookUrl, keyFor(seller, webhookUrl), events.describe(ticket, nativeStatus)),
    report(webhookUrl, ticket, nativeStatus) {
      become(seller, ticket, nativeStatus);
      const event = events.describe(ticket, nativeStatus);
      const sign = (attempt: number) => {
        const { headers, body } = events.sign(webhookUrl, keyFor(seller, webhookUrl), event);
        const retry = { 'square-retry-number': String(attempt - 1), 'square-retry-reason': 'http_error' };
        return { headers: { ...headers, ...(attempt > 1 && retry) }, body };
      };
      return deliverWebhook(webhookUrl, sign, SQUARE_DELIVERY, hurry);
    },
    stop: () => server.stop(),
  };
  const seller: Seller = {
    currency,
    locationId,
    accessToken,
    sellerToken,
    sellerTokenUntil,
    signatureKey,
    oauth,
    webhooks,
    catalog,
    orders,
    tickets,
    refusals,
    calls,
    answered: new Map(),
    simulator,
  };
  return simulator;
}

/** The catalog with its first entries, the seller's id of each of ours, and how to add more. */
function openCatalog() {
  const itemMap: Record<string, string> = {};
  const catalog: SquareCatalog = { variations: new Map(), modifiers: new Map(), taxPercentage: 19 };
  const sell = (ours: string, name: string, price: number): void => {
    if (Object.hasOwn(itemMap, ours)) return;
    itemMap[ours] = newId();
    catalog.variations.set(itemMap[ours], { name, price });
  };
  const offer = (ours: string, name: string, price: number): void => {
    if (Object.hasOwn(itemMap, ours)) return;
    itemMap[ours] = newId();
    catalog.modifiers.set(itemMap[ours], { name, price });
  };
  sell('burger-classic', 'Classic Burger', 1290);
  sell('fries-sweet-potato', 'Sweet Potato Fries', 450);
  sell('beer-pale-ale', 'Pale Ale 0.33 l', 480);
  offer('cheddar', 'Extra cheddar', 150);
  offer('no-onions', 'No onions', 0);
  return { catalog, itemMap, menu: { sell, offer } };
}

const isSellers = (seller: Seller, token: string): boolean => token !== seller.accessToken;

const money = (seller: Seller, amount: number) => ({ amount, currency: seller.currency });

const showOrder = (seller: Seller, order: Order) => ({
  id: order.id,
  location_id: order.content.location_id,
  reference_id: order.content.reference_id,
  metadata: order.content.metadata,
  state: order.state,
  version: order.version,
  created_at: order.createdAt,
  updated_at: order.updatedAt,
  fulfillments: order.content.fulfillments?.map((fulfillment) => {
    const [field, time] =
      fulfillment.type === 'PICKUP'
        ? (['pickup_details', 'pickup_at'] as const)
        : (['delivery_details', 'deliver_at'] as const);
    const { [field]: details, ...rest } = fulfillment as Record<string, unknown>;
    const now = {
      ...(seller.simulator.estimate && { [time]: seller.simulator.estimate }),
      cancel_reason: order.cancelReason,
    };
    return { uid: FULFILLMENT_UID, ...rest, [field]: Object.assign({}, details, now), state: order.stage };
  }),
  total_money: money(seller, order.total + order.tip),
  total_tax_money: money(seller, order.tax),
  total_tip_money: money(seller, order.tip),
  total_service_charge_money: money(seller, order.charges),
  total_discount_money: money(seller, order.discount),
  discounts: order.content.discounts,
  net_amount_due_money: money(seller, order.isPaid ? 0 : order.total),
  service_charges: order.content.service_charges,
});

/** Applies an idempotency key: repeats the first success, and refuses another body. */
function once(
  seller: Seller,
  call: SquareCall,
  key: string | undefined,
  make: () => { answer: SquareAnswer; order?: Order },
): { answer: SquareAnswer; order?: Order | undefined; isRepeat: boolean } {
  const name = `${call.route} ${key}`;
  const request = JSON.stringify(call.body);
  const known = key === undefined ? undefined : seller.answered.get(name);
  if (known === undefined) {
    const { answer, order } = make();
    if (answer.status < 300 && order !== undefined) seller.answered.set(name, { request, answer, order });
    return { answer, order, isRepeat: false };
  }
  if (known.request === request) return { ...known, isRepeat: true };
  const detail = 'The idempotency key can only be retried with the same request data.';
  return { answer: errorAnswer(400, 'IDEMPOTENCY_KEY_REUSED', detail, 'idempotency_key'), isRepeat: false };
}

function createOrder(seller: Seller, call: SquareCall, fault: Fault | undefined): SquareAnswer {
  const body = call.read(CreateOrder);
  if ('status' in body) return body;
  const { order: content, idempotency_key } = body.value;
  const { answer, order, isRepeat } = once(seller, call, idempotency_key, () => {
    const refusal = refusalOf(seller, content);
    if (refusal !== undefined) return { answer: refusal };
    const order: Order = {
      id: `${newId()}ZY`,
      key: idempotency_key ?? '',
      content,
      ...priceSquareOrder(content, seller.catalog),
      createdAt: new Date().toISOString(),
      version: 1,
      cancelReason: undefined,
      state: 'OPEN',
      stage: 'PROPOSED',
      updatedAt: new Date().toISOString(),
      isPaid: false,
      paid: 0,
      tip: 0,
      requests: 0,
      dropsAnswer: false,
      ticket: undefined,
    };
    seller.orders.push(order);
    return { answer: { status: 200, body: { order: showOrder(seller, order) } }, order };
  });
  if (order !== undefined) {
    order.requests += 1;
    order.dropsAnswer = fault === 'drop-answer';
    if (isRepeat && order.ticket !== undefined) order.ticket.requests += 1;
  }
  return answer;
}

function refusalOf(seller: Seller, content: CreateOrder['order']): SquareAnswer | undefined {
  if (content.location_id !== seller.locationId) {
    return errorAnswer(400, 'LOCATION_MISMATCH', 'The location is not of this merchant.', 'order.location_id');
  }
  const moneys = [
    ...(content.line_items ?? [])
      .flatMap((line) => [line, ...(line.modifiers ?? [])])
      .map((each) => each.base_price_money),
    ...(content.service_charges ?? []).map((charge) => charge.amount_money),
    ...(content.discounts ?? []).map((discount) => discount.amount_money),
  ];
  if (moneys.some((each) => each !== undefined && each.currency !== seller.currency)) {
    return errorAnswer(400, 'INVALID_VALUE', `The location's currency is ${seller.currency}.`);
  }
  for (const [nth, line] of (content.line_items ?? []).entries()) {
    const id = line.catalog_object_id;
    const variation = seller.catalog.variations.get(id ?? '');
    if (id !== undefined && variation === undefined) {
      return errorAnswer(404, 'NOT_FOUND', `Item variation with catalog object ID \`${id}\` not found.`);
    }
    if (variation?.price === undefined && line.base_price_money === undefined) {
      const field = `order.line_items[${nth}].base_price_money`;
      return errorAnswer(400, 'MISSING_REQUIRED_PARAMETER', 'A variable price must be named.', field);
    }
    const unknown = line.modifiers?.find(
      ({ catalog_object_id: id }) => id !== undefined && !seller.catalog.modifiers.has(id),
    );
    if (unknown !== undefined) {
      const detail = `Modifier with catalog object ID \`${unknown.catalog_object_id}\` not found.`;
      return errorAnswer(404, 'NOT_FOUND', detail);
    }
  }
  return undefined;
}

function createPayment(seller: Seller, call: SquareCall): { answer: SquareAnswer; order?: Order | undefined } {
  const body = call.read(CreatePayment);
  if ('status' in body) return { answer: body };
  const { order_id, location_id, amount_money, tip_money, idempotency_key } = body.value;
  return once(seller, call, idempotency_key, () => {
    const order = seller.orders.find(({ id }) => id === order_id);
    const tip = tip_money?.amount ?? 0;
    if (order === undefined) return { answer: errorAnswer(404, 'NOT_FOUND', 'No such order.', 'order_id') };
    if (location_id !== undefined && location_id !== seller.locationId) {
      return { answer: errorAnswer(400, 'LOCATION_MISMATCH', 'Not the location of the order.', 'location_id') };
    }
    if (order.isPaid) return { answer: errorAnswer(400, 'BAD_REQUEST', 'The order is paid already.') };
    if ([amount_money, tip_money].some((each) => each !== undefined && each.currency !== seller.currency)) {
      return {
        answer: errorAnswer(400, 'INVALID_VALUE', `The currency is ${seller.currency}.`, 'amount_money.currency'),
      };
    }
    if (amount_money.amount !== order.total) {
      const detail = "The payment's amount does not match the order's total.";
      const answer = errorAnswer(400, 'PAYMENT_AMOUNT_MISMATCH', detail, 'amount_money', 'PAYMENT_METHOD_ERROR');
      return { answer };
    }
    if (amount_money.amount + tip === 0) {
      return { answer: errorAnswer(400, 'VALUE_TOO_LOW', 'The total is below the minimum.', 'amount_money.amount') };
    }
    pay(seller, order, amount_money.amount, tip);
    const payment = {
      id: newId(),
      status: 'COMPLETED',
      source_type: 'EXTERNAL',
      order_id,
      location_id: seller.locationId,
    };
    return { answer: { status: 200, body: { payment } }, order };
  });
}

/**
 * Updates an order, as far as its end is concerned. That a payment keeps it from being cancelled, but not its
 * fulfillment: https://developer.squareup.com/forums/t/best-method-to-cancel-order-after-refund/922
 * The code of an outdated version, and how an ended fulfillment is refused, are not documented.
 */
function updateOrder(
  seller: Seller,
  call: SquareCall,
  id: string,
): { answer: SquareAnswer; order?: Order | undefined } {
  const body = call.read(UpdateOrder);
  if ('status' in body) return { answer: body };
  const { version, state, fulfillments = [] } = body.value.order;
  return once(seller, call, body.value.idempotency_key, () => {
    const order = seller.orders.find((each) => each.id === id);
    const refuse = (code: string, detail: string, field?: string) => ({
      answer: errorAnswer(400, code, detail, field),
    });
    if (order === undefined) return { answer: errorAnswer(404, 'NOT_FOUND', `Order not found for id ${id}`) };
    if (version !== order.version) return { answer: errorAnswer(409, 'CONFLICT', 'Not the current version.') };
    if (order.state !== 'OPEN') return refuse('BAD_REQUEST', `An order that is ${order.state} cannot be updated.`);
    if (state === 'CANCELED' && order.isPaid) {
      return refuse('BAD_REQUEST', 'Orders cannot be canceled after payments have been processed.', 'order.state');
    }
    for (const [nth, { uid, state: stage }] of fulfillments.entries()) {
      const field = `order.fulfillments[${nth}].state`;
      if (uid !== FULFILLMENT_UID) return refuse('BAD_REQUEST', 'No such fulfillment.', field);
      if (['COMPLETED', 'CANCELED', 'FAILED'].includes(order.stage))
        return refuse('BAD_REQUEST', 'It has ended.', field);
      if (stage === 'CANCELED' && order.ticket !== undefined) order.ticket.cancelled = true;
      change(order, { stage });
    }
    if (state !== undefined) change(order, { state });
    return { answer: { status: 200, body: { order: showOrder(seller, order) } }, order };
  });
}

function change(order: Order, changed: Partial<Order>): void {
  Object.assign(order, changed, { version: order.version + 1, updatedAt: new Date().toISOString() });
}

function payOrder(seller: Seller, call: SquareCall, id: string): { answer: SquareAnswer; order?: Order | undefined } {
  const body = call.read(PayOrder);
  if ('status' in body) return { answer: body };
  return once(seller, call, body.value.idempotency_key, () => {
    const order = seller.orders.find((each) => each.id === id);
    if (order === undefined) return { answer: errorAnswer(404, 'NOT_FOUND', 'No such order.') };
    if (order.total !== 0 || body.value.payment_ids.length > 0) {
      return { answer: errorAnswer(400, 'BAD_REQUEST', 'The payments do not match the total.', 'payment_ids') };
    }
    pay(seller, order, 0, 0);
    return { answer: { status: 200, body: { order: showOrder(seller, order) } }, order };
  });
}

function pay(seller: Seller, order: Order, amount: number, tip: number): void {
  change(order, { isPaid: true, paid: amount + tip, tip });
  order.ticket = ticketOf(seller, order);
  seller.tickets.push(order.ticket);
  seller.simulator.onTicket?.(order.ticket);
}

function ticketOf(seller: Seller, { id, key, content, requests, paid, tip, total, discount }: Order): Ticket {
  const [fulfillment] = content.fulfillments ?? [];
  const details = fulfillment?.type === 'DELIVERY' ? fulfillment.delivery_details : fulfillment?.pickup_details;
  const { recipient } = details ?? {};
  const wantedAt = fulfillment?.type === 'DELIVERY' ? fulfillment.delivery_details.deliver_at : pickupAt(fulfillment);
  const charged = (isMeant: RegExp): number =>
    (content.service_charges ?? [])
      .filter(({ name = '' }) => isMeant.test(name))
      .reduce((sum, charge) => sum + (charge.amount_money?.amount ?? 0), 0);
  const dropOff = fulfillment?.type === 'DELIVERY' ? fulfillment.delivery_details.dropoff_notes : undefined;
  return {
    providerOrderId: id,
    serviceOrderId: serviceOrderIdIn(content),
    key,
    fulfillment: fulfillment?.type === 'DELIVERY' ? 'delivery' : 'pickup',
    callOut: content.ticket_name,
    lines: (content.line_items ?? []).map((line) => ({
      reference: line.catalog_object_id ?? '',
      name: seller.catalog.variations.get(line.catalog_object_id ?? '')?.name ?? line.name,
      quantity: Number(line.quantity),
      price: line.base_price_money?.amount,
      note: line.note,
      modifiers: (line.modifiers ?? []).map((modifier) => ({
        reference: modifier.catalog_object_id ?? '',
        name: seller.catalog.modifiers.get(modifier.catalog_object_id ?? '')?.name ?? modifier.name,
        quantity: Number(modifier.quantity ?? '1'),
        price: modifier.base_price_money?.amount,
      })),
    })),
    paid,
    tip: tip + charged(/tip/i),
    fee: charged(/^(?!.*tip)/i),
    discount,
    total: total + tip,
    guest: { name: recipient?.display_name, phone: recipient?.phone_number, email: recipient?.email_address },
    address: recipient?.address && Object.values(recipient.address).join(' '),
    wantedAt,
    note: [details?.note, dropOff].filter((note) => note !== undefined).join('\n'),
    requests,
    status: undefined,
  };
}

/** @param nativeStatus also a state and why, as in `CANCELED Item(s) not in stock`; no webhook says why */
function become(seller: Seller, ticket: Ticket, nativeStatus: string): void {
  ticket.status = nativeStatus;
  const order = seller.orders.find(({ ticket: its }) => its === ticket);
  const [, state] = /^order\.updated (\w+)$/.exec(nativeStatus) ?? [];
  const [word = '', ...reason] = nativeStatus.split(' ');
  const stage = STAGES.includes(word) ? word : undefined;
  if (order === undefined || (state ?? stage) === undefined) return;
  const cancelReason = reason.join(' ') || undefined;
  change(order, { ...(state && { state }), ...(stage && { stage, cancelReason }) });
}

/** "The ID of the order to retrieve": https://developer.squareup.com/reference/square/orders-api/retrieve-order */
function showOrderTo(seller: Seller, token: string, id: string): SquareAnswer {
  if (token === seller.sellerToken && !seller.simulator.sellerScopes.includes('ORDERS_READ'))
    return insufficientScopes('ORDERS_READ');
  const order = seller.orders.find((each) => each.id === id);
  if (order === undefined) return errorAnswer(404, 'NOT_FOUND', `Order not found for id ${id}`);
  return { status: 200, body: { order: showOrder(seller, order) } };
}

function searchOrders(seller: Seller, call: SquareCall): SquareAnswer {
  const body = call.read(SearchOrders);
  if ('status' in body) return body;
  const { location_ids, limit, cursor = '0', query, return_entries: asEntries } = body.value;
  // "All locations must belong to the same merchant." The answer for another's is not documented.
  if (location_ids.some((id) => id !== seller.locationId)) {
    return errorAnswer(400, 'LOCATION_MISMATCH', 'The location is not of this merchant.', 'location_ids');
  }
  const since = query?.filter?.date_time_filter.created_at.start_at;
  const found = seller.orders.filter(
    ({ createdAt }) => since === undefined || Date.parse(createdAt) >= Date.parse(since),
  );
  const from = Number(cursor);
  const page = found.slice(from, from + limit);
  const shown = asEntries
    ? {
        order_entries: page.map(({ id, content }) => ({
          order_id: id,
          location_id: content.location_id,
          version: 1,
        })),
      }
    : { orders: page.map((order) => showOrder(seller, order)) };
  return { status: 200, body: { ...shown, ...(found.length > from + limit && { cursor: `${from + limit}` }) } };
}

const scopesOfSeller = (seller: Seller): readonly string[] => seller.oauth.scopes ?? seller.simulator.sellerScopes;

function showLocation(seller: Seller, id: string, token: string): SquareAnswer {
  if (isSellers(seller, token) && !scopesOfSeller(seller).includes('MERCHANT_PROFILE_READ')) {
    return insufficientScopes('MERCHANT_PROFILE_READ');
  }
  // "main" stands for the seller's main location.
  if (id !== seller.locationId && id !== 'main') return errorAnswer(404, 'NOT_FOUND', 'No such location.');
  const { locationStatus: status } = seller.simulator;
  return {
    status: 200,
    body: { location: { id: seller.locationId, name: 'Berlin', currency: seller.currency, status, capabilities: [] } },
  };
}

function answer(seller: Seller, call: SquareCall, token: string): { answer: SquareAnswer; order?: Order | undefined } {
  const { route } = call;
  if (route === 'GET /v2/merchants/me') {
    const mayRead = scopesOfSeller(seller).includes('MERCHANT_PROFILE_READ');
    return { answer: mayRead ? seller.oauth.showSeller(token) : insufficientScopes('MERCHANT_PROFILE_READ') };
  }
  if (seller.oauth.isOfAnother(token) && !route.startsWith('POST /oauth2/')) {
    const detail = 'The seller has no such location.';
    return { answer: errorAnswer(403, 'FORBIDDEN', detail, undefined, 'AUTHENTICATION_ERROR') };
  }
  if (route === 'POST /oauth2/token/status') {
    const scopes = isSellers(seller, token) ? scopesOfSeller(seller) : [];
    const until = token === seller.sellerToken ? seller.sellerTokenUntil : seller.oauth.expiryOf(token);
    const expires_at = until && new Date(until).toISOString();
    const body = { scopes, expires_at, client_id: seller.oauth.clientId, merchant_id: MERCHANT };
    return { answer: { status: 200, body } };
  }
  if (route.includes('/v2/webhooks/') && isSellers(seller, token)) {
    return { answer: insufficientScopes('DEVELOPER_APPLICATION_WEBHOOKS') };
  }
  const [, shownId] = /^GET \/v2\/locations\/(\w+)$/.exec(route) ?? [];
  if (shownId !== undefined) return { answer: showLocation(seller, shownId, token) };
  if (route === 'POST /v2/payments') return createPayment(seller, call);
  if (route === 'POST /v2/orders/search') return { answer: searchOrders(seller, call) };
  const [, payId] = /^POST \/v2\/orders\/(\w+)\/pay$/.exec(route) ?? [];
  if (payId !== undefined) return payOrder(seller, call, payId);
  const [, updatedId] = /^PUT \/v2\/orders\/(\w+)$/.exec(route) ?? [];
  if (updatedId !== undefined) return updateOrder(seller, call, updatedId);
  const [, orderId] = /^GET \/v2\/orders\/(\w+)$/.exec(route) ?? [];
  if (orderId !== undefined) return { answer: showOrderTo(seller, token, orderId) };
  return { answer: seller.webhooks.answer(call) ?? errorAnswer(404, 'NOT_FOUND', `There is no ${route} here.`) };
}

async function serve(seller: Seller, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://square');
  const route = `${request.method} ${url.pathname}`;
  const body = parse((await readBody(request)).toString());
  const isOrder = route === 'POST /v2/orders';
  if (body !== undefined && route !== 'POST /oauth2/token') seller.calls.push({ route, body });
  if (isOrder) seller.simulator.requests += 1;
  const ordered = isOrder
    ? seller.simulator.behave?.({ serviceOrderId: serviceOrderIdIn(contentIn(body)) })
    : undefined;
  const isRead = /^GET \/v2\/orders\/\w+$/.test(route);
  if (isRead) seller.simulator.reads += 1;
  const isCancel = /^PUT \/v2\/orders\/\w+$/.test(route);
  if (isCancel) seller.simulator.cancels += 1;
  const asked = isRead ? seller.simulator.misread?.() : isCancel ? seller.simulator.miscancel?.() : undefined;
  const fault = seller.simulator.fail?.(route) ?? ordered ?? asked;
  if (fault === 'hang') return;
  if (typeof fault === 'object') {
    sendFault(response, fault);
    return;
  }
  const refuse = ({ status, body }: SquareAnswer): void => {
    seller.refusals.push(`${route}: ${status} ${JSON.stringify(body)}`);
    sendJson(response, status, body);
  };

  if (route === 'GET /oauth2/authorize') return seller.oauth.showPage(response, url.searchParams);
  const isForToken = route === 'POST /oauth2/token';
  const isRevocation = route === 'POST /oauth2/revoke';
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  const isOurs =
    token === seller.accessToken || token === seller.sellerToken || (seller.oauth.expiryOf(token) ?? 0) > Date.now();
  if (!isForToken && !isRevocation && !isOurs) {
    const code = seller.oauth.expiryOf(token) === undefined ? 'UNAUTHORIZED' : 'ACCESS_TOKEN_EXPIRED';
    refuse(errorAnswer(401, code, 'The token is not good.', undefined, 'AUTHENTICATION_ERROR'));
    return;
  }
  const version = request.headers['square-version'];
  if (typeof version === 'string' && !/^\d{4}-\d\d-\d\d$/.test(version)) {
    refuse(errorAnswer(400, 'INVALID_SQUARE_VERSION_FORMAT', 'YYYY-MM-DD is required.'));
    return;
  }
  if (body !== undefined && !request.headers['content-type']?.startsWith('application/json')) {
    refuse(errorAnswer(415, 'INVALID_CONTENT_TYPE', 'application/json is required.'));
    return;
  }

  const query = [...url.searchParams.keys()].filter((name) => QUERIES.get(route)?.includes(name) !== true);
  if (query.length > 0) {
    refuse(errorAnswer(400, 'UNKNOWN_QUERY_PARAMETER', `${query.join(', ')} is not documented.`));
    return;
  }
  if (body !== undefined && !TAKES_BODY.test(route)) {
    refuse(
      errorAnswer(400, 'UNEXPECTED_VALUE', `${route} takes no body, and no ${Object.keys(Object(body)).join(', ')}.`),
    );
    return;
  }

  const call: SquareCall = {
    route,
    query: url.searchParams,
    body,
    read(shape) {
      const result = shape.safeParse(body, { reportInput: true });
      if (result.success) return { value: result.data };
      return { status: 400, body: { errors: errorsIn(result.error) } };
    },
  };
  const { answer: answered, order } = isForToken
    ? { answer: seller.oauth.obtainToken(call), order: undefined }
    : isRevocation
      ? { answer: seller.oauth.revoke(call, request.headers.authorization), order: undefined }
      : isOrder
        ? { answer: createOrder(seller, call, ordered), order: undefined }
        : answer(seller, call, token);
  if (answered.status >= 400) refuse(answered);
  else if (fault === 'drop-answer' && !(isOrder && ordered === fault)) request.socket.destroy();
  else if (order?.dropsAnswer) request.socket.destroy();
  else sendJson(response, answered.status, answered.body);
}

const keyFor = (seller: Seller, webhookUrl: string): string =>
  seller.webhooks.subscriptions.find(({ notification_url }) => notification_url === webhookUrl)?.signature_key ??
  seller.signatureKey;

type Fulfillment = NonNullable<CreateOrder['order']['fulfillments']>[number];

function pickupAt(fulfillment: Fulfillment | undefined): string | undefined {
  return fulfillment?.type === 'PICKUP' ? fulfillment.pickup_details.pickup_at : undefined;
}

type Named = { reference_id?: string | undefined; metadata?: Record<string, string> | undefined };

/** Returns our id. A reference has at most 40 characters, so longer ones are in the metadata. */
function serviceOrderIdIn({ reference_id = '', metadata }: Named): string {
  return metadata?.['service_order_id'] ?? reference_id;
}

function contentIn(body: unknown): Named {
  return (body as { order?: Named } | undefined)?.order ?? {};
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}
