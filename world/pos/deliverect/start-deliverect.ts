/**
 * Deliverect's Channel API with one channel link, as developers.deliverect.com and docs.deliverect.com document it. The
 * comments say what they leave open.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody, sendJson, serveHttp } from '../../network/serve-http.ts';
import { addUp, checkDeliverectOrder } from './check-deliverect-order.ts';
import type { DeliverectItem, DeliverectOrder } from './check-deliverect-order.ts';
import { deliverWebhook } from '../deliver-webhook.ts';
import { isJson, jsonIn } from '../json-in.ts';
import { sendFault } from '../send-fault.ts';
import type { Counting, Kitchen, SignedWebhook, Simulator, SimulatorOptions } from '../simulator.ts';
import type { Ticket, TicketModifier } from '../simulator.ts';

/**
 * One attempt, whatever the answer:
 * https://developers.deliverect.com/v1.1-restaurants/reference/store-api_order_status_event
 */
const DELIVERY = { waits: [], timeoutMs: 20_000, acknowledges: (status: number) => status >= 200 && status < 300 };

/**
 * Codes sent as a courier's update, which names no channel link:
 * https://developers.deliverect.com/page/courier-status-update-model
 */
const OF_A_COURIER = new Set(['80', '81', '83', '84', '85', '87', '89', '115']);

/** Digits of the currencies that do not have two. */
const DIGITS: Record<string, number> = { JPY: 0, KWD: 3 };

const TOKEN_SECONDS = 3600;

/** https://developers.deliverect.com/v3.0-ordering-experience/reference/busy-mode */
const BUSY_MODES = { open: 'ONLINE', busy: 'BUSY', closed: 'PAUSED' };

/** The URLs that the answer to a registration must hold: .../v3.0-ordering-experience/reference/channel_register */
const URLS = [
  'statusUpdateURL',
  'menuUpdateURL',
  'snoozeUnsnoozeURL',
  'busyModeURL',
  'updatePrepTimeURL',
  'courierUpdateURL',
  'paymentUpdateURL',
] as const;
type Url = (typeof URLS)[number];

export type Deliverect = Simulator & {
  /** Activates the channel link: asks the platform's registration URL where its webhooks go. @throws if it does not say */
  activate(registrationUrl: string): Promise<void>;
  /** Makes a webhook to one of those URLs; `body` gets the ids that name the channel link. */
  signAbout(body: object): SignedWebhook;
  /** Sends it there. */
  tell(url: Url, body: object): Promise<{ status: number; body: unknown }>;
};

/** What Deliverect knows of its one channel link. */
type ChannelLink = {
  readonly currency: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly channelName: string;
  readonly id: string;
  readonly hmacSecret: string;
  readonly location: string;
  readonly tickets: Ticket[];
  readonly refusals: string[];
  /** True while the token is valid. */
  readonly tokens: Map<string, boolean>;
  /** Where the platform wants its webhooks. Empty until the link is activated. */
  urls: Partial<Record<Url, string>>;
  /** What tests see and change. */
  readonly simulator: Counting<Deliverect, 'requests' | 'cancels' | 'grants'>;
};

/** Resolves when it serves. */
export async function startDeliverect(options: SimulatorOptions = {}): Promise<Deliverect> {
  const { currency = 'EUR', hurry = 1, port } = options;
  const clientId = randomBytes(8).toString('hex');
  const clientSecret = randomBytes(24).toString('base64url');
  const channelName = 'clubplatform';
  const channelLinkId = randomBytes(12).toString('hex');
  const hmacSecret = randomBytes(24).toString('base64url');
  const tickets: Ticket[] = [];
  const refusals: string[] = [];
  const tokens = new Map<string, boolean>();
  const { url, stop } = await serveHttp((request, response) => route(channelLink, request, response), port);
  const simulator: ChannelLink['simulator'] = {
    integration: 'deliverect',
    url,
    settings: { clientId, clientSecret, channelName, channelLinkId, hmacSecret, baseUrl: url },
    tickets,
    requests: 0,
    refusals,
    behave: undefined,
    cancels: 0,
    miscancel: undefined,
    estimate: undefined,
    onTicket: undefined,
    lifeOf: (fulfillment) =>
      fulfillment === 'delivery'
        ? // The courier is sent for while the kitchen works.
          ['1', '2', '20', '50', '80', '83', '60', '70', '85', '87', '89', '90']
        : ['1', '2', '20', '50', '60', '70', '90'],
    sign: (_webhookUrl, ticket, nativeStatus) => sign(channelLink, ticket, nativeStatus),
    async report(webhookUrl, ticket, nativeStatus) {
      ticket.status = nativeStatus;
      return deliverWebhook(webhookUrl, () => sign(channelLink, ticket, nativeStatus), DELIVERY, hurry);
    },
    signKitchen: (kitchen) => signKitchen(channelLink, kitchen),
    setKitchen: (webhookUrl, kitchen) =>
      deliverWebhook(webhookUrl, () => signKitchen(channelLink, kitchen), DELIVERY, hurry),
    activate: (registrationUrl) => activate(channelLink, registrationUrl),
    signAbout: (body) => signAbout(channelLink, body),
    tell: (to, body) => deliverWebhook(channelLink.urls[to] ?? '', () => signAbout(channelLink, body), DELIVERY, hurry),
    expireTokens() {
      for (const token of tokens.keys()) tokens.set(token, false);
    },
    grants: 0,
    tokenSeconds: TOKEN_SECONDS,
    stop,
  };
  const channelLink: ChannelLink = {
    currency,
    clientId,
    clientSecret,
    channelName,
    id: channelLinkId,
    hmacSecret,
    location: randomBytes(12).toString('hex'),
    tickets,
    refusals,
    tokens,
    urls: {},
    simulator,
  };
  return simulator;
}

function refuse(channelLink: ChannelLink, response: ServerResponse, status: number, body: object, why: string): void {
  channelLink.refusals.push(why);
  sendJson(response, status, body);
}

async function route(channelLink: ChannelLink, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? '';
  const isOrder = /^\/([^/?]+)\/order\/([^/?]+)$/.exec(path);
  if (request.method === 'POST' && path === '/oauth/token') return grantToken(channelLink, request, response);
  if (request.method === 'POST' && isOrder !== null) {
    return takeOrder(channelLink, request, response, { channel: isOrder[1] ?? '', link: isOrder[2] ?? '' });
  }
  const message = 'The requested URL was not found on the server.';
  return refuse(channelLink, response, 404, { message }, `${request.method} ${path}: there is no such path`);
}

/**
 * Grants a token: https://developers.deliverect.com/openapi/oauth2.json, read on 2026-11-23
 * How a wrong request is refused is not documented.
 */
async function grantToken(channelLink: ChannelLink, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const wanted = {
    client_id: channelLink.clientId,
    client_secret: channelLink.clientSecret,
    audience: channelLink.simulator.url,
    grant_type: 'client_credentials',
  };
  const given = Object(jsonIn(await readBody(request))) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(given)])]
    .filter((name) => given[name] !== (wanted as Record<string, unknown>)[name])
    .join(', ');
  if (!isJson(request) || names !== '') {
    return refuse(channelLink, response, 401, { code: 'access_denied' }, `the request for a token is wrong: ${names}`);
  }
  channelLink.simulator.grants += 1;
  const token = randomBytes(24).toString('base64url');
  channelLink.tokens.set(token, true);
  return sendJson(response, 200, {
    access_token: token,
    expires_at: Math.floor(Date.now() / 1000) + TOKEN_SECONDS,
    expires_in: TOKEN_SECONDS,
    scope: `genericChannel:${channelLink.channelName}`,
    token_type: 'Bearer',
  });
}

async function takeOrder(
  channelLink: ChannelLink,
  request: IncomingMessage,
  response: ServerResponse,
  { channel, link }: { channel: string; link: string },
): Promise<void> {
  const json = Object(jsonIn(await readBody(request))) as object;
  const { channelOrderId, status } = json as { channelOrderId?: unknown; status?: unknown };
  const isCancel = status === 100;
  if (isCancel) channelLink.simulator.cancels += 1;
  else channelLink.simulator.requests += 1;
  const fault = isCancel
    ? channelLink.simulator.miscancel?.()
    : channelLink.simulator.behave?.({ serviceOrderId: String(channelOrderId) });
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);

  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  if (channelLink.tokens.get(token) !== true) {
    const why = channelLink.tokens.has(token) ? 'the token has expired' : 'the token is missing or unknown';
    return refuse(channelLink, response, 401, { code: 'token_expired', description: 'token is expired' }, why);
  }
  // https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting
  // That the first is a 401 is not documented.
  if (channel !== channelLink.channelName) {
    const body = { code: 'Authorization error', description: "you're not allowed to send in orders" };
    return refuse(channelLink, response, 401, body, 'the channel name is another');
  }
  if (link !== channelLink.id) {
    const body = { code: 'insufficient_permissions', description: 'Not allowed to access this channelLink.' };
    return refuse(channelLink, response, 403, body, 'the channel link is another');
  }
  if (!isJson(request)) return refuse(channelLink, response, 400, {}, 'the content type is not application/json');
  const errors = checkDeliverectOrder(json);
  if (errors !== undefined) return refuse(channelLink, response, 400, errors, JSON.stringify(errors));

  const order = json as DeliverectOrder;
  const known = channelLink.tickets.find(({ serviceOrderId }) => serviceOrderId === order.channelOrderId);
  // A duplicate is answered with 200 as well and hidden: https://developers.deliverect.com/docs/how-to-create-orders
  // A cancel is passed on whatever the status: .../v3.0-ordering-experience/reference/order
  if (isCancel && known !== undefined) known.cancelled = true;
  else if (!isCancel && known === undefined) store(channelLink, readTicket(channelLink, order));
  else if (known !== undefined) known.requests += 1;
  if (fault === 'drop-answer') request.socket.destroy();
  else sendJson(response, isCancel || known === undefined ? 201 : 200, {});
}

function store(channelLink: ChannelLink, ticket: Ticket): void {
  channelLink.tickets.push(ticket);
  channelLink.simulator.onTicket?.(ticket);
}

function readTicket(channelLink: ChannelLink, order: DeliverectOrder): Ticket {
  const { decimalDigits, payment, orderIsAlreadyPaid, note, customer, deliveryAddress: to } = order;
  const minor = (amount: number): number => amount * 10 ** ((DIGITS[channelLink.currency] ?? 2) - decimalDigits);
  const readSubItem = ({ plu, name, quantity, price, subItems = [] }: DeliverectItem): TicketModifier => {
    return { reference: plu, name, quantity, price: minor(price), modifiers: subItems.map(readSubItem) };
  };
  return {
    providerOrderId: randomBytes(12).toString('hex'),
    serviceOrderId: order.channelOrderId,
    key: order.channelOrderId,
    fulfillment: order.orderType === 2 ? 'delivery' : 'pickup',
    callOut: order.channelOrderDisplayId,
    lines: order.items.map(({ plu, name, price, quantity, remark, subItems = [] }) => ({
      reference: plu,
      name,
      quantity,
      price: minor(price),
      note: remark,
      modifiers: subItems.map(readSubItem),
    })),
    paid: orderIsAlreadyPaid === true ? minor(payment.amount) : undefined,
    tip: minor((order.tip ?? 0) + (order.driverTip ?? 0)),
    fee: minor((order.deliveryCost ?? 0) + (order.serviceCharge ?? 0)),
    discount: minor(-(order.discountTotal ?? 0)),
    total: minor(addUp(order)),
    guest: { name: customer?.name, phone: customer?.phoneNumber, email: customer?.email },
    address:
      to &&
      [to.street, to.streetNumber, to.extraAddressInfo, to.postalCode, to.city, to.country].filter(Boolean).join(' '),
    wantedAt: order.deliveryIsAsap ? undefined : (order.deliveryTime ?? order.pickupTime),
    note: [note, customer?.note].filter(Boolean).join('\n'),
    requests: 1,
    status: undefined,
  };
}

/**
 * @param nativeStatus a code; a code and its reason, as in `35 Too busy`; or a code as the update of a preparation time,
 *   which has no time of its own, as in `prepared by 20`
 */
function sign(channelLink: ChannelLink, ticket: Ticket, nativeStatus: string): SignedWebhook {
  const { providerOrderId: orderId, serviceOrderId: channelOrderId } = ticket;
  const [, prepared, code = '', reason = code === '110' ? 'Item out of stock' : ''] =
    /^(prepared by )?(\d+)(?: (.*))?$/.exec(nativeStatus) ?? [];
  const { estimate } = channelLink.simulator;
  if (prepared !== undefined)
    return seal(channelLink, {
      channelOrderId,
      orderId,
      location: channelLink.location,
      status: code,
      pickupTime: estimate,
    });
  const status = Number(code);
  const said = OF_A_COURIER.has(code)
    ? { orderId, channelOrderId, status, deliveryTime: estimate, courierName: 'Sam' }
    : {
        reason,
        status,
        orderId,
        location: channelLink.location,
        receiptId: '',
        timeStamp: new Date().toISOString().replace('Z', '000Z'),
        channelLink: channelLink.id,
        channelOrderId,
      };
  return seal(channelLink, said);
}

function seal(channelLink: ChannelLink, said: object): SignedWebhook {
  const body = Buffer.from(JSON.stringify(said));
  const signature = createHmac('sha256', channelLink.hmacSecret).update(body).digest('hex');
  return {
    headers: { 'content-type': 'application/json', 'x-server-authorization-hmac-sha256': signature },
    body,
  };
}

const signAbout = (channelLink: ChannelLink, body: object): SignedWebhook =>
  seal(channelLink, {
    accountId: '5b0c71c6489f0029aa01bbd4',
    locationId: channelLink.location,
    channelLinkId: channelLink.id,
    ...body,
  });

const signKitchen = (channelLink: ChannelLink, { state, extraMinutes: delay }: Kitchen): SignedWebhook =>
  signAbout(channelLink, { status: BUSY_MODES[state], ...(state === 'busy' && { delay }) });

async function activate(channelLink: ChannelLink, registrationUrl: string): Promise<void> {
  const { headers, body } = signAbout(channelLink, {
    status: 'active',
    channelLocationId: 'club-1',
    channelLinkName: 'Club platform',
  });
  const response = await fetch(registrationUrl, { method: 'POST', headers, body: new Uint8Array(body) });
  const given = (await response.json()) as Partial<Record<Url, string>>;
  const lacking = URLS.filter((name) => !URL.canParse(given[name] ?? ''));
  if (response.status !== 200 || lacking.length > 0) throw new Error(`the registration lacks ${lacking.join(', ')}`);
  channelLink.urls = given;
}
