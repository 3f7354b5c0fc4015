/**
 * Simulates Acme POS with one store, and follows only Acme's documentation. It imports nothing from `src`, so that it
 * does not repeat a mistake of the provider.
 */
import { createHmac, randomBytes, randomInt } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { deliverWebhook, jsonIn, readBody, sendFault, sendJson, serveHttp } from 'expediter-kit/contract';
import type { Delivery, SignedWebhook, Simulator, SimulatorOptions, Ticket } from 'expediter-kit/contract';
import { z } from 'zod';

/** "Webhooks": Acme repeats a webhook, after these waits, until it gets a 2xx in time. */
const DELIVERY: Delivery = {
  waits: [10_000, 60_000, 600_000],
  timeoutMs: 5_000,
  acknowledges: (status) => status >= 200 && status < 300,
};

/** The number of decimals, for currencies that do not have two decimals. */
const DIGITS = new Map([
  ['JPY', 0],
  ['KWD', 3],
]);

/** "Tokens": seconds after which a token expires, mostly an hour. */
const TOKEN_S = 3600;

/** The schema of an order, which refuses unknown fields ("Orders"). */
function orderShape(currency: string) {
  const digits = DIGITS.get(currency) ?? 2;
  const Amount = z.string().regex(new RegExp(digits === 0 ? '^\\d+$' : `^\\d+\\.\\d{${digits}}$`));
  const Count = z.int().min(1).max(999);
  const Sku = z.string().min(1).max(64);
  const Option = z.strictObject({ sku: Sku, count: Count, price: Amount.optional() });
  return z.strictObject({
    reference: z.string().min(1),
    pickupCode: z.string().max(6).optional(),
    type: z.enum(['PICKUP', 'DELIVERY']),
    due: z.iso.datetime().optional(),
    guest: z.strictObject({ name: z.string().max(80), phone: z.string().optional() }),
    address: z
      .strictObject({
        street: z.string(),
        city: z.string().optional(),
        postcode: z.string().optional(),
        directions: z.string().max(200).optional(),
      })
      .optional(),
    note: z.string().max(500).optional(),
    lines: z.array(Option.extend({ note: z.string().max(200).optional(), options: z.array(Option) })).min(1),
    discounts: z.array(z.strictObject({ name: z.string().min(1).max(80), amount: Amount })),
    paid: z.strictObject({ currency: z.literal(currency), tax: Amount, tip: Amount, fee: Amount, total: Amount }),
  });
}
type Order = z.infer<ReturnType<typeof orderShape>>;

export type Acme = Simulator & {
  /** The URL that the provider registered. */
  readonly webhookUrl: string | undefined;
};

/** What Acme knows of its one store. */
type Store = {
  readonly settings: ReturnType<typeof newSettings>;
  readonly orderShape: ReturnType<typeof orderShape>;
  readonly tickets: Ticket[];
  readonly byKey: Map<string, Ticket>;
  readonly refusals: string[];
  /** The tokens that are valid. */
  readonly tokens: Set<string>;
  requests: number;
  cancels: number;
  grants: number;
  webhookUrl: string | undefined;
  /** What tests see and change. */
  readonly simulator: Acme;
};

/** Starts the simulator, and resolves when it is ready. */
export async function startAcme({ currency = 'EUR', hurry = 1, port }: SimulatorOptions = {}): Promise<Acme> {
  const settings = newSettings();
  const { url, stop } = await serveHttp((request, response) => route(store, request, response), port);
  const simulator: Acme = {
    integration: 'acme',
    url,
    settings: { ...settings, baseUrl: url },
    get tickets() {
      return store.tickets;
    },
    get refusals() {
      return store.refusals;
    },
    get requests() {
      return store.requests;
    },
    get webhookUrl() {
      return store.webhookUrl;
    },
    get cancels() {
      return store.cancels;
    },
    miscancel: undefined,
    become: (ticket, state) => void (ticket.status = state),
    estimate: undefined,
    behave: undefined,
    onTicket: undefined,
    lifeOf: (fulfillment) => [
      'NEW',
      'ACCEPTED',
      'COOKING',
      'READY',
      ...(fulfillment === 'delivery' ? ['ON_THE_ROAD'] : []),
      'HANDED_OVER',
    ],
    expireTokens: () => store.tokens.clear(),
    get grants() {
      return store.grants;
    },
    tokenSeconds: TOKEN_S,
    sign: (_webhookUrl, ticket, native) => sign(store, ticket, native),
    report(webhookUrl, ticket, state) {
      ticket.status = state;
      return deliverWebhook(webhookUrl, () => sign(store, ticket, state), DELIVERY, hurry);
    },
    stop,
  };
  const store: Store = {
    settings,
    orderShape: orderShape(currency),
    tickets: [],
    byKey: new Map(),
    refusals: [],
    tokens: new Set(),
    requests: 0,
    cancels: 0,
    grants: 0,
    webhookUrl: undefined,
    simulator,
  };
  return simulator;
}

/** Settings of a location of this store, without the base URL. */
function newSettings() {
  return {
    storeId: `s-${randomInt(1e9)}`,
    clientId: randomBytes(8).toString('hex'),
    clientSecret: randomBytes(24).toString('base64url'),
    webhookSecret: randomBytes(24).toString('base64url'),
    itemMap: { 'burger-classic': 'BURG-1' },
  };
}

function refuse(store: Store, response: ServerResponse, status: number, code: string, problem: string): void {
  store.refusals.push(problem);
  sendJson(response, status, { error: { code, message: problem } });
}

async function route(store: Store, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readBody(request);
  const wanted = `${request.method} ${request.url}`;
  if (wanted === 'POST /v1/oauth/token') return grantToken(store, response, new URLSearchParams(body.toString()));
  const json = jsonIn(body);
  const isOrder = wanted === `POST /v1/stores/${store.settings.storeId}/orders`;
  if (isOrder) {
    store.requests += 1;
    const fault = store.simulator.behave?.({ serviceOrderId: String(Object(json).reference) });
    if (fault === 'hang') return;
    if (typeof fault === 'object') return sendFault(response, fault);
    if (fault === 'drop-answer') response.end = () => response.destroy();
  }
  const [, voided] = new RegExp(`^POST /v1/stores/${store.settings.storeId}/orders/([^/]+)/void$`).exec(wanted) ?? [];
  if (voided !== undefined) {
    store.cancels += 1;
    const fault = store.simulator.miscancel?.();
    if (fault === 'hang') return;
    if (typeof fault === 'object') return sendFault(response, fault);
    if (fault === 'drop-answer') response.end = () => response.destroy();
  }
  const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  if (!store.tokens.has(token)) return refuse(store, response, 401, 'bad_token', 'the token is unknown or has expired');
  if (wanted === `GET /v1/stores/${store.settings.storeId}`)
    return sendJson(response, 200, { storeId: store.settings.storeId, name: 'Berlin' });
  if (request.method === 'GET') return refuse(store, response, 404, 'unknown_store', `there is no ${wanted}`);
  if (request.headers['content-type'] !== 'application/json')
    return refuse(store, response, 415, 'not_json', 'no JSON');
  if (isOrder) return takeOrder(store, request, response, json);
  if (voided !== undefined) return voidTicket(store, response, decodeURIComponent(voided));
  if (wanted === `PUT /v1/stores/${store.settings.storeId}/webhook`) return registerWebhook(store, response, json);
  return refuse(store, response, 404, 'unknown_store', `there is no ${wanted}`);
}

function grantToken(store: Store, response: ServerResponse, form: URLSearchParams): void {
  const wanted = {
    grant_type: 'client_credentials',
    client_id: store.settings.clientId,
    client_secret: store.settings.clientSecret,
  };
  const wrong = Object.entries(wanted).find(([name, value]) => form.get(name) !== value);
  if (wrong !== undefined) return refuse(store, response, 401, 'bad_token', `${wrong[0]} is wrong`);
  const token = randomBytes(24).toString('base64url');
  store.tokens.add(token);
  store.grants += 1;
  return sendJson(response, 200, { access_token: token, expires_in: TOKEN_S });
}

function takeOrder(store: Store, request: IncomingMessage, response: ServerResponse, json: unknown): void {
  const key = String(request.headers['idempotency-key'] ?? '');
  if (!/^[\w-]{1,64}$/.test(key))
    return refuse(store, response, 400, 'bad_key', 'no Idempotency-Key of 1 to 64 characters');
  const known = store.byKey.get(key);
  if (known !== undefined) {
    known.requests += 1;
    return sendJson(response, 200, { id: known.providerOrderId });
  }
  const order = store.orderShape.safeParse(json);
  if (!order.success) return refuse(store, response, 400, 'bad_order', z.prettifyError(order.error));
  if ((order.data.address !== undefined) !== (order.data.type === 'DELIVERY')) {
    return refuse(store, response, 400, 'bad_order', 'a delivery needs an address, and a pickup has none');
  }
  const ticket = readTicket(order.data, key);
  store.byKey.set(key, ticket);
  store.tickets.push(ticket);
  store.simulator.onTicket?.(ticket);
  return sendJson(response, 201, { id: ticket.providerOrderId });
}

function voidTicket(store: Store, response: ServerResponse, id: string): void {
  const ticket = store.tickets.find(({ providerOrderId }) => providerOrderId === id);
  if (ticket === undefined) return sendJson(response, 404, { error: { code: 'unknown_order', message: '' } });
  if (['READY', 'ON_THE_ROAD', 'HANDED_OVER'].includes(ticket.status ?? '')) {
    return sendJson(response, 409, { error: { code: 'too_late', message: '' } });
  }
  ticket.status = 'VOIDED';
  ticket.cancelled = true;
  return sendJson(response, 200, { state: 'VOIDED' });
}

function registerWebhook(store: Store, response: ServerResponse, json: unknown): void {
  const wanted = z.strictObject({ url: z.url({ protocol: /^https$/ }) }).safeParse(json);
  if (!wanted.success) return refuse(store, response, 400, 'bad_url', z.prettifyError(wanted.error));
  store.webhookUrl = wanted.data.url;
  return sendJson(response, 200, {});
}

/** @param native the state, with a cause if there is one, as in `VOIDED SOLD_OUT` */
function sign(store: Store, ticket: Ticket, native: string): SignedWebhook {
  const { providerOrderId: id, serviceOrderId: reference } = ticket;
  const [state, cause] = native.split(' ');
  const reason = state === 'VOIDED' ? 'The kitchen closed early' : '';
  const order = { id, reference, state, reason, cause, readyAt: store.simulator.estimate ?? null };
  const event = { event: 'order.updated', storeId: store.settings.storeId, at: new Date(), order };
  const body = Buffer.from(JSON.stringify(event));
  const signature = createHmac('sha256', store.settings.webhookSecret).update(body).digest('hex');
  return { headers: { 'content-type': 'application/json', 'x-acme-signature': signature }, body };
}

function readTicket(
  { reference, pickupCode, type, due, guest, address, lines, note, discounts, paid }: Order,
  key: string,
): Ticket {
  const minor = (amount: string): number => Number(amount.replace('.', ''));
  const to = address && [address.street, address.postcode, address.city].filter(Boolean).join(' ');
  return {
    providerOrderId: `t-${randomBytes(8).toString('hex')}`,
    serviceOrderId: reference,
    key,
    fulfillment: type === 'DELIVERY' ? 'delivery' : 'pickup',
    callOut: pickupCode,
    lines: lines.map(({ sku, count, price, note, options }) => ({
      reference: sku,
      name: undefined,
      quantity: count,
      price: price === undefined ? undefined : minor(price),
      note,
      modifiers: options.map(({ sku, count, price }) => {
        return { reference: sku, quantity: count, price: price === undefined ? undefined : minor(price) };
      }),
    })),
    paid: minor(paid.total),
    tip: minor(paid.tip),
    fee: minor(paid.fee),
    discount: discounts.reduce((sum, { amount }) => sum + minor(amount), 0),
    guest: { name: guest.name, phone: guest.phone, email: undefined },
    address: to,
    wantedAt: due,
    note: [note, address?.directions].filter(Boolean).join('\n'),
    requests: 1,
    status: undefined,
  };
}
