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

/** Starts the simulator, and resolves when it is ready. */
export async function startAcme({ currency = 'EUR', hurry = 1, port }: SimulatorOptions = {}): Promise<Acme> {
  const storeId = `s-${randomInt(1e9)}`;
  const clientId = randomBytes(8).toString('hex');
  const clientSecret = randomBytes(24).toString('base64url');
  const webhookSecret = randomBytes(24).toString('base64url');
  const Order = orderShape(currency);
  const tickets: Ticket[] = [];
  const byKey = new Map<string, Ticket>();
  const refusals: string[] = [];
  const tokens = new Set<string>();
  let requests = 0;
  let cancels = 0;
  let grants = 0;
  let webhookUrl: string | undefined;

  function refuse(response: ServerResponse, status: number, code: string, problem: string): void {
    refusals.push(problem);
    sendJson(response, status, { error: { code, message: problem } });
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const wanted = `${request.method} ${request.url}`;
    if (wanted === 'POST /v1/oauth/token') return grantToken(response, new URLSearchParams(body.toString()));
    const json = jsonIn(body);
    const isOrder = wanted === `POST /v1/stores/${storeId}/orders`;
    if (isOrder) {
      requests += 1;
      const fault = simulator.behave?.({ serviceOrderId: String(Object(json).reference) });
      if (fault === 'hang') return;
      if (typeof fault === 'object') return sendFault(response, fault);
      if (fault === 'drop-answer') response.end = () => response.destroy();
    }
    const [, voided] = new RegExp(`^POST /v1/stores/${storeId}/orders/([^/]+)/void$`).exec(wanted) ?? [];
    if (voided !== undefined) {
      cancels += 1;
      const fault = simulator.miscancel?.();
      if (fault === 'hang') return;
      if (typeof fault === 'object') return sendFault(response, fault);
      if (fault === 'drop-answer') response.end = () => response.destroy();
    }
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!tokens.has(token)) return refuse(response, 401, 'bad_token', 'the token is unknown or has expired');
    if (wanted === `GET /v1/stores/${storeId}`) return sendJson(response, 200, { storeId, name: 'Berlin' });
    if (request.method === 'GET') return refuse(response, 404, 'unknown_store', `there is no ${wanted}`);
    if (request.headers['content-type'] !== 'application/json') return refuse(response, 415, 'not_json', 'no JSON');
    if (isOrder) return takeOrder(request, response, json);
    if (voided !== undefined) return voidTicket(response, decodeURIComponent(voided));
    if (wanted === `PUT /v1/stores/${storeId}/webhook`) return registerWebhook(response, json);
    return refuse(response, 404, 'unknown_store', `there is no ${wanted}`);
  }

  function grantToken(response: ServerResponse, form: URLSearchParams): void {
    const wanted = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
    const wrong = Object.entries(wanted).find(([name, value]) => form.get(name) !== value);
    if (wrong !== undefined) return refuse(response, 401, 'bad_token', `${wrong[0]} is wrong`);
    const token = randomBytes(24).toString('base64url');
    tokens.add(token);
    grants += 1;
    return sendJson(response, 200, { access_token: token, expires_in: TOKEN_S });
  }

  function takeOrder(request: IncomingMessage, response: ServerResponse, json: unknown): void {
    const key = String(request.headers['idempotency-key'] ?? '');
    if (!/^[\w-]{1,64}$/.test(key)) return refuse(response, 400, 'bad_key', 'no Idempotency-Key of 1 to 64 characters');
    const known = byKey.get(key);
    if (known !== undefined) {
      known.requests += 1;
      return sendJson(response, 200, { id: known.providerOrderId });
    }
    const order = Order.safeParse(json);
    if (!order.success) return refuse(response, 400, 'bad_order', z.prettifyError(order.error));
    if ((order.data.address !== undefined) !== (order.data.type === 'DELIVERY')) {
      return refuse(response, 400, 'bad_order', 'a delivery needs an address, and a pickup has none');
    }
    const ticket = readTicket(order.data, key);
    byKey.set(key, ticket);
    tickets.push(ticket);
    simulator.onTicket?.(ticket);
    return sendJson(response, 201, { id: ticket.providerOrderId });
  }

  function voidTicket(response: ServerResponse, id: string): void {
    const ticket = tickets.find(({ providerOrderId }) => providerOrderId === id);
    if (ticket === undefined) return sendJson(response, 404, { error: { code: 'unknown_order', message: '' } });
    if (['READY', 'ON_THE_ROAD', 'HANDED_OVER'].includes(ticket.status ?? '')) {
      return sendJson(response, 409, { error: { code: 'too_late', message: '' } });
    }
    ticket.status = 'VOIDED';
    ticket.cancelled = true;
    return sendJson(response, 200, { state: 'VOIDED' });
  }

  function registerWebhook(response: ServerResponse, json: unknown): void {
    const wanted = z.strictObject({ url: z.url({ protocol: /^https$/ }) }).safeParse(json);
    if (!wanted.success) return refuse(response, 400, 'bad_url', z.prettifyError(wanted.error));
    webhookUrl = wanted.data.url;
    return sendJson(response, 200, {});
  }

  /** @param native the state, with a cause if there is one, as in `VOIDED SOLD_OUT` */
  function sign(_webhookUrl: string, ticket: Ticket, native: string): SignedWebhook {
    const { providerOrderId: id, serviceOrderId: reference } = ticket;
    const [state, cause] = native.split(' ');
    const reason = state === 'VOIDED' ? 'The kitchen closed early' : '';
    const order = { id, reference, state, reason, cause, readyAt: simulator.estimate ?? null };
    const event = { event: 'order.updated', storeId, at: new Date(), order };
    const body = Buffer.from(JSON.stringify(event));
    const signature = createHmac('sha256', webhookSecret).update(body).digest('hex');
    return { headers: { 'content-type': 'application/json', 'x-acme-signature': signature }, body };
  }

  const { url, stop } = await serveHttp(route, port);
  const simulator: Acme = {
    integration: 'acme',
    url,
    settings: { storeId, clientId, clientSecret, webhookSecret, baseUrl: url, itemMap: { 'burger-classic': 'BURG-1' } },
    tickets,
    refusals,
    get requests() {
      return requests;
    },
    get webhookUrl() {
      return webhookUrl;
    },
    get cancels() {
      return cancels;
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
    expireTokens: () => tokens.clear(),
    get grants() {
      return grants;
    },
    tokenSeconds: TOKEN_S,
    sign,
    report(webhookUrl, ticket, state) {
      ticket.status = state;
      return deliverWebhook(webhookUrl, () => sign(webhookUrl, ticket, state), DELIVERY, hurry);
    },
    stop,
  };
  return simulator;
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
