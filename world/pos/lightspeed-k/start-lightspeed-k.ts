/**
 * Lightspeed Restaurant K-Series: OAuth, online orders and their webhooks for one business location, as
 * https://api-docs.lsk.lightspeed.app and https://api-portal.lsk.lightspeed.app document them. The comments say what
 * they leave open.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody, sendJson, serveHttp } from '../../network/serve-http.ts';
import { checkToGoOrder, readToGoOrder } from './check-lightspeed-k-order.ts';
import type { FieldError, ToGoItem, ToGoOrder } from './check-lightspeed-k-order.ts';
import { deliverWebhook } from '../deliver-webhook.ts';
import { isJson } from '../json-in.ts';
import { sendFault } from '../send-fault.ts';
import type { Counting, Kitchen, SignedWebhook, Simulator, SimulatorOptions } from '../simulator.ts';
import type { Ticket, TicketModifier } from '../simulator.ts';

/** Neither a time-out nor a repeat is documented. One attempt is the worst case. */
const DELIVERY = { waits: [], timeoutMs: 10_000, acknowledges: (status: number) => status === 200 };

/** "Access tokens expire after 60 minutes." */
const TOKEN_SECONDS = 3599;

/** Digits of the currencies that do not have two. */
const DIGITS: Record<string, number> = { JPY: 0, KWD: 3 };

const PROFILES: Record<string, Ticket['fulfillment']> = { TAKEAWAY: 'pickup', HOMEDELIVERY: 'delivery' };

/** A registered webhook: schema apeWebhookEndpoint. */
export type LightspeedEndpoint = {
  endpointId: string;
  url: string;
  withBasicAuth: boolean;
  username?: string;
  password?: string;
  provideAccount: boolean;
  expandTransactions: boolean;
  expandPayments: boolean;
  subscribeTo: { name: string; resource: string }[];
};

export type LightspeedSimulator = Simulator & {
  /** What must all be so for READY, for a test to change. */
  readonly tills: {
    enabled: boolean;
    salesPeriod: 'OPENED' | 'CLOSED';
    acceptingOnlineOrders: boolean;
    availableDevices: boolean;
  };
  /** The groups of production instructions, for a test to change. */
  readonly instructions: {
    multiSelectionPermitted: boolean;
    productionInstructionList: { instruction: string; ikentooModifierId: number }[];
  }[];
  /** Endpoints by id. */
  readonly endpoints: ReadonlyMap<string, LightspeedEndpoint>;
  /** The endpoints that get the location's readiness. */
  readonly linkedEndpoints: ReadonlySet<string>;
  /** Bodies of well-formed orders, oldest first. */
  readonly orders: readonly unknown[];
  readonly grants: number;
  expireTokens(): void;
};

/** What the simulator knows of its one business location. */
type Restaurant = {
  /** Digits of the currency. */
  readonly decimals: number;
  readonly settings: ReturnType<typeof newSettings>;
  readonly tickets: Ticket[];
  readonly orders: unknown[];
  readonly refusals: string[];
  readonly endpoints: Map<string, LightspeedEndpoint>;
  readonly linkedEndpoints: Set<string>;
  /** True while the token is valid. */
  readonly accessTokens: Map<string, boolean>;
  /** True while the token is unspent. */
  readonly refreshTokens: Map<string, boolean>;
  /** The check of each ticket that a till took: when it was opened and closed. */
  readonly checks: Map<Ticket, { openDate: string; closeDate?: string }>;
  /** What tests see and change. */
  readonly simulator: Counting<LightspeedSimulator, 'requests' | 'reads' | 'grants'>;
};

/** Resolves when it serves. */
export async function startLightspeedK(options: SimulatorOptions = {}): Promise<LightspeedSimulator> {
  const { currency = 'EUR', hurry = 1, port } = options;
  const settings = newSettings();
  const tickets: Ticket[] = [];
  const orders: unknown[] = [];
  const refusals: string[] = [];
  const endpoints = new Map<string, LightspeedEndpoint>();
  const linkedEndpoints = new Set<string>();
  const accessTokens = new Map<string, boolean>();
  const { url, stop } = await serveHttp((request, response) => route(restaurant, request, response), port);
  const simulator: Restaurant['simulator'] = {
    integration: 'lightspeed-k',
    url,
    settings: { ...settings, baseUrl: url },
    menu: { sell: mapIn(settings.itemMap), offer: mapIn(settings.subItemMap) },
    tickets,
    orders,
    endpoints,
    linkedEndpoints,
    tills: {
      enabled: true,
      salesPeriod: 'OPENED',
      acceptingOnlineOrders: true,
      availableDevices: true,
    },
    instructions: [
      {
        multiSelectionPermitted: false,
        productionInstructionList: [{ instruction: 'No onions', ikentooModifierId: 236_025_632_784_492 }],
      },
    ],
    requests: 0,
    refusals,
    behave: undefined,
    onTicket: undefined,
    become: (ticket, nativeStatus) => become(restaurant, ticket, nativeStatus),
    reads: 0,
    misread: undefined,
    // A prepaid check closes at once, before the food is ready.
    lifeOf: (fulfillment) => [
      'SUCCESS',
      'CLOSED',
      'READY_FOR_PICKUP',
      ...(fulfillment === 'delivery' ? ['IN_DELIVERY'] : []),
      'DELIVERED',
    ],
    sign: (_webhookUrl, ticket, nativeStatus) => sign(restaurant, ticket, nativeStatus),
    async report(webhookUrl, ticket, nativeStatus) {
      become(restaurant, ticket, nativeStatus);
      return deliverWebhook(webhookUrl, () => sign(restaurant, ticket, nativeStatus), DELIVERY, hurry);
    },
    signKitchen: (kitchen) => signKitchen(restaurant, kitchen),
    setKitchen: (webhookUrl, kitchen) =>
      deliverWebhook(webhookUrl, () => signKitchen(restaurant, kitchen), DELIVERY, hurry),
    expireTokens() {
      for (const token of accessTokens.keys()) accessTokens.set(token, false);
    },
    grants: 0,
    tokenSeconds: TOKEN_SECONDS,
    stop,
  };
  const restaurant: Restaurant = {
    decimals: DIGITS[currency] ?? 2,
    settings,
    tickets,
    orders,
    refusals,
    endpoints,
    linkedEndpoints,
    accessTokens,
    refreshTokens: new Map([[settings.refreshToken, true]]),
    checks: new Map(),
    simulator,
  };
  return simulator;
}

/** Settings of a location of the restaurant, without a base URL. */
function newSettings() {
  return {
    clientId: `devp-${randomUUID()}`,
    clientSecret: randomBytes(24).toString('base64url'),
    refreshToken: randomUUID() as string,
    businessLocationId: String(randomInt(10 ** 13, 10 ** 14)),
    endpointId: `expediter-${randomBytes(4).toString('hex')}`,
    webhookUsername: `lightspeed-${randomBytes(3).toString('hex')}`,
    webhookPassword: randomBytes(24).toString('base64url'),
    paymentMethod: 'OOPAYMENT',
    discountCode: 'PLATFORM',
    accountProfileCodes: { pickup: 'TAKEAWAY', delivery: 'HOMEDELIVERY' },
    itemMap: { 'burger-classic': '1001', 'no-onions': '236025632784492' } as Record<string, string>,
    subItemMap: { cheddar: '35' } as Record<string, string>,
  };
}

/** Any SKU is on the menu. An id of ours may be longer than one. */
const mapIn = (map: Record<string, string>) => (id: string) => {
  if (!Object.hasOwn(map, id)) map[id] = `new-${Object.keys(map).length}`;
};

function refuse(restaurant: Restaurant, response: ServerResponse, status: number, body: unknown, why: string): void {
  restaurant.refusals.push(why);
  sendJson(response, status, body);
}

/** Answers 400 in Spring's format. */
function refuseFields(
  restaurant: Restaurant,
  request: IncomingMessage,
  response: ServerResponse,
  object: string,
  errors: FieldError[],
): void {
  const body = {
    timestamp: new Date().toISOString(),
    status: 400,
    error: 'Bad Request',
    message: `Validation failed for object='${object}'. Error count: ${errors.length}`,
    errors: errors.map(({ field, code }) => ({
      codes: [`${code}.${object}.${field}`, `${code}.${field}`, code],
      defaultMessage: `${field} breaks ${code}`,
      objectName: object,
      field,
      bindingFailure: false,
      code,
    })),
    path: request.url,
  };
  refuse(restaurant, response, 400, body, errors.map(({ field, code }) => `${object}.${field}: ${code}`).join('; '));
}

async function route(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url: path = '' } = request;
  const profilesOf = /^\/o\/op\/data\/account-profiles\?businessLocationId=(\d+)$/.exec(path);
  const readinessOf = /^\/o\/op\/1\/onlineOrderReadiness\?businessLocationId=(\d+)$/.exec(path);
  const checkOf = /^\/o\/op\/1\/order\/accounts\/([^/?]+)\?businessLocationId=(\d+)$/.exec(path);
  const endpoint = /^\/o\/wh\/1\/webhook\/([^/?]+)$/.exec(path);
  if (method === 'POST' && path === '/oauth/token') return grantToken(restaurant, request, response);
  if (method === 'POST' && path === '/o/op/1/order/toGo') return takeOrder(restaurant, request, response);
  if ((method === 'PUT' || method === 'POST') && path === '/o/wh/1/webhook') {
    return registerEndpoint(restaurant, request, response, method);
  }
  const linked = /^\/o\/wh\/1\/webhook\/([^/?]+)\/business-locations\/(\d+)$/.exec(path);
  if (method === 'PUT' && linked !== null)
    return linkLocation(restaurant, request, response, linked[1] ?? '', linked[2] ?? '');
  if (method === 'GET' && path === '/o/op/data/businesses') return listBusinesses(restaurant, request, response);
  if (method === 'GET' && profilesOf !== null) return listProfiles(restaurant, request, response, profilesOf[1] ?? '');
  if (method === 'GET' && readinessOf !== null)
    return showReadiness(restaurant, request, response, readinessOf[1] ?? '');
  if (method === 'GET' && checkOf !== null)
    return showCheck(restaurant, request, response, checkOf[1] ?? '', checkOf[2] ?? '');
  const menuOf = /^\/o\/op\/[12]\/menu\/([\w/]+)\?businessLocationId=(\d+)$/.exec(path);
  if (method === 'GET' && menuOf !== null) return showMenu(restaurant, request, response, menuOf[1] ?? '');
  if (method === 'GET' && endpoint !== null) return showEndpoint(restaurant, request, response, endpoint[1] ?? '');
  return refuse(
    restaurant,
    response,
    404,
    notFound(path, 'No message available'),
    `${method} ${path}: there is no such path`,
  );
}

/**
 * Credentials as Basic: https://api-portal.lsk.lightspeed.app/guides/tutorials/authentication-tutorial
 * Errors as in RFC 6749.
 */
async function grantToken(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const form = new URLSearchParams((await readBody(request)).toString());
  const basic = Buffer.from(`${restaurant.settings.clientId}:${restaurant.settings.clientSecret}`).toString('base64');
  if (request.headers.authorization !== `Basic ${basic}`) {
    return refuse(restaurant, response, 401, { error: 'invalid_client' }, 'the credentials of the client are wrong');
  }
  if (request.headers['content-type'] !== 'application/x-www-form-urlencoded') {
    return refuse(restaurant, response, 400, { error: 'invalid_request' }, 'the token request is not a form');
  }
  if (form.get('grant_type') !== 'refresh_token') {
    return refuse(
      restaurant,
      response,
      400,
      { error: 'unsupported_grant_type' },
      'the grant type is not refresh_token',
    );
  }
  const others = [...form.keys()].filter((name) => name !== 'grant_type' && name !== 'refresh_token');
  if (others.length > 0) {
    return refuse(
      restaurant,
      response,
      400,
      { error: 'invalid_request' },
      `a token is not asked for with ${others.join(', ')}`,
    );
  }
  const offered = form.get('refresh_token') ?? '';
  if (restaurant.refreshTokens.get(offered) !== true) {
    const why = restaurant.refreshTokens.has(offered) ? 'the refresh token is spent' : 'the refresh token is not known';
    const body = { error: 'invalid_grant', error_description: `Invalid refresh token: ${offered}` };
    return refuse(restaurant, response, 400, body, why);
  }
  restaurant.refreshTokens.set(offered, false);
  restaurant.simulator.grants += 1;
  const [accessToken, refreshToken] = [randomUUID(), randomUUID()];
  restaurant.accessTokens.set(accessToken, true);
  restaurant.refreshTokens.set(refreshToken, true);
  return sendJson(response, 200, {
    access_token: accessToken,
    token_type: 'bearer',
    refresh_token: refreshToken,
    expires_in: TOKEN_SECONDS,
    scope: 'orders-api',
  });
}

/** Checks the token. Its refusal is not documented; this is the answer of Spring's resource servers. */
function isAuthorized(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse): boolean {
  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  if (restaurant.accessTokens.get(token) === true) return true;
  const why = restaurant.accessTokens.has(token)
    ? 'the access token has expired'
    : 'the access token is missing or unknown';
  refuse(restaurant, response, 401, { error: 'invalid_token', error_description: why }, why);
  return false;
}

async function takeOrder(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse): Promise<void> {
  restaurant.simulator.requests += 1;
  const json = readToGoOrder((await readBody(request)).toString());
  const reference = String(json['thirdPartyReference']);
  const fault = restaurant.simulator.behave?.({ serviceOrderId: reference });
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);

  if (!isAuthorized(restaurant, request, response)) return;
  if (!isJson(request)) return refuse(restaurant, response, 415, {}, 'the content type is not application/json');
  const errors = checkToGoOrder(json, restaurant.decimals);
  if (errors.length > 0) return refuseFields(restaurant, request, response, 'toGoOrder', errors);
  const order = json as ToGoOrder;
  const unknown = unknownIn(restaurant, order);
  if (unknown.length > 0) return refuseFields(restaurant, request, response, 'toGoOrder', unknown);

  const known = restaurant.tickets.find((ticket) => ticket.serviceOrderId === reference);
  if (known !== undefined) known.requests += 1;
  else {
    restaurant.orders.push(order);
    const ticket = readTicket(restaurant, order);
    restaurant.tickets.push(ticket);
    restaurant.simulator.onTicket?.(ticket);
  }
  if (fault === 'drop-answer') request.socket.destroy();
  else if (known === undefined) sendJson(response, 200, { status: 'ok' });
  else sendJson(response, 409, { status: 'fail', msg: `reference has already been used ${reference}` });
}

/** Finds references that the location does not have. How, or whether at once, they are refused is not documented. */
function unknownIn(
  restaurant: Restaurant,
  { businessLocationId: id, endpointId: endpoint, accountProfileCode, payment, items = [] }: ToGoOrder,
): FieldError[] {
  const isKnown = {
    businessLocationId: id.digits === restaurant.settings.businessLocationId,
    // The settings' own endpoint counts as registered by hand.
    endpointId: endpoint === restaurant.settings.endpointId || restaurant.endpoints.has(endpoint),
    accountProfileCode: accountProfileCode === undefined || Object.hasOwn(PROFILES, accountProfileCode),
    'payment.paymentMethod': payment === undefined || payment.paymentMethod === restaurant.settings.paymentMethod,
    // That a group which permits no multiple selection forbids the same one twice; how that is refused is not documented.
    'items.modifiers': items.every((each) => isPermitted(restaurant, each)),
    'items.discountCode': items.every((item) =>
      [undefined, restaurant.settings.discountCode].includes(item.discountCode),
    ),
  };
  return Object.entries(isKnown).flatMap(([field, known]) => (known ? [] : [{ field, code: 'NotFound' }]));
}

function isPermitted(restaurant: Restaurant, { modifiers = [], subItems = [] }: ToGoItem): boolean {
  const ids = modifiers.map(({ modifierId }) => modifierId);
  const single = restaurant.simulator.instructions.filter(({ multiSelectionPermitted }) => !multiSelectionPermitted);
  const isOnce = single
    .flatMap(({ productionInstructionList }) => productionInstructionList)
    .every(({ ikentooModifierId }) => ids.filter((id) => id === String(ikentooModifierId)).length < 2);
  return isOnce && subItems.every((each) => isPermitted(restaurant, each));
}

function readTicket(restaurant: Restaurant, order: ToGoOrder): Ticket {
  const { thirdPartyReference, accountProfileCode, collectionCode, deliveryAddress, items = [] } = order;
  const { payment, orderNote = '' } = order;
  const { firstName, lastName, contactNumberAsE164, email } = order.customerInfo;
  return {
    providerOrderId: `A${randomInt(1000, 99_999)}.${restaurant.tickets.length + 1}`,
    serviceOrderId: thirdPartyReference,
    key: thirdPartyReference,
    fulfillment: PROFILES[accountProfileCode ?? ''] ?? (deliveryAddress === undefined ? 'pickup' : 'delivery'),
    callOut: collectionCode,
    lines: items.map((item) => ({
      reference: item.sku,
      name: undefined,
      quantity: item.quantity,
      price: undefined,
      note: undefined,
      modifiers: modifiersOf(item),
    })),
    paid: payment === undefined ? undefined : minorUnits(restaurant, payment.paymentAmount.digits),
    tip: minorUnits(restaurant, payment?.tipAmount?.digits ?? '0'),
    fee: undefined,
    guest: { name: [firstName, lastName].filter(Boolean).join(' '), phone: contactNumberAsE164, email },
    address: deliveryAddress && Object.values(deliveryAddress).join(' '),
    wantedAt: order.orderCollectionTimeAsIso8601,
    note: orderNote,
    requests: 1,
    status: undefined,
  };
}

function minorUnits(restaurant: Restaurant, decimal: string): number {
  const [whole = '', rest = ''] = decimal.split('.');
  return Number(whole + rest.padEnd(restaurant.decimals, '0'));
}

async function registerEndpoint(
  restaurant: Restaurant,
  request: IncomingMessage,
  response: ServerResponse,
  method: string,
): Promise<void> {
  const json = Object(JSON.parse((await readBody(request)).toString())) as Partial<LightspeedEndpoint>;
  if (!isAuthorized(restaurant, request, response)) return;
  const errors = endpointErrors(json);
  if (errors.length > 0 || json.endpointId === undefined || json.url === undefined) {
    return refuseFields(restaurant, request, response, 'webhookEndpointDto', errors);
  }
  // What happens on a second creation, or an update of what does not exist, is not documented.
  if (restaurant.endpoints.has(json.endpointId) === (method === 'PUT')) {
    return refuseFields(restaurant, request, response, 'webhookEndpointDto', [{ field: 'endpointId', code: 'Exists' }]);
  }
  const defaults = { withBasicAuth: false, provideAccount: false, expandTransactions: false, expandPayments: false };
  const { endpointId: id, url: at } = json;
  restaurant.endpoints.set(id, { ...defaults, subscribeTo: [], ...json, endpointId: id, url: at });
  return sendJson(response, 200, restaurant.endpoints.get(id));
}

/** https://api-docs.lsk.lightspeed.app/operation/operation-apeaddwebhookbusinesslocation */
function linkLocation(
  restaurant: Restaurant,
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: string,
  id: string,
): void {
  if (!isAuthorized(restaurant, request, response)) return;
  const isKnown = restaurant.endpoints.has(endpoint) && id === restaurant.settings.businessLocationId;
  if (!isKnown)
    return refuse(restaurant, response, 404, notFound(request.url ?? '', 'Not Found'), `no ${endpoint} or no ${id}`);
  restaurant.linkedEndpoints.add(endpoint);
  sendJson(response, 200, { businessLocationId: Number(id), createdAt: writeTime(), warnings: [] });
}

function showEndpoint(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse, id: string): void {
  if (!isAuthorized(restaurant, request, response)) return;
  const endpoint = restaurant.endpoints.get(id);
  if (endpoint !== undefined) return sendJson(response, 200, endpoint);
  return sendJson(response, 404, notFound(request.url ?? '', `endpoint ID not found for ${id}`));
}

/** https://api-docs.lsk.lightspeed.app/operation/operation-apeloadmenus, …-apegetmenubyidv2, …-apeloadallmodifiers, …-apeloadalldiscounts */
function showMenu(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse, what: string): void {
  if (!isAuthorized(restaurant, request, response)) return;
  const skus = [...Object.values(restaurant.settings.itemMap), ...Object.values(restaurant.settings.subItemMap)];
  const menuEntry = skus.map((sku) => ({ '@type': 'menuItem', productName: sku, productPrice: '1.00', sku }));
  const answers: Record<string, unknown> = {
    list: [{ menuName: 'Online', ikentooMenuId: 7 }],
    'load/7': { menuName: 'Online', menuEntryGroups: [{ '@type': 'group', name: 'All', menuEntry }] },
    modifiers: restaurant.simulator.instructions,
    discounts: [{ name: 'Platform', code: restaurant.settings.discountCode, discountAmount: 1 }],
  };
  if (Object.hasOwn(answers, what)) return sendJson(response, 200, answers[what]);
  refuse(
    restaurant,
    response,
    404,
    notFound(request.url ?? '', 'No message available'),
    `there is no ${what} of a menu`,
  );
}

/** Lists businesses: https://api-docs.lsk.lightspeed.app/operation/operation-apelookupbusinesses */
function listBusinesses(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse): void {
  if (!isAuthorized(restaurant, request, response)) return;
  const businessLocations = [
    { id: Number(restaurant.settings.businessLocationId) - 1, name: 'Clubs - Potsdam' },
    { id: Number(restaurant.settings.businessLocationId), name: 'Clubs - Berlin' },
  ];
  sendJson(response, 200, [{ name: 'Clubs', id: 454_335_871, businessLocations }]);
}

/**
 * Order profiles: https://api-docs.lsk.lightspeed.app/operation/operation-apeaccountprofiles
 * Another location's are not documented.
 */
function listProfiles(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse, id: string): void {
  if (!isAuthorized(restaurant, request, response)) return;
  if (id !== restaurant.settings.businessLocationId)
    return refuse(restaurant, response, 403, {}, 'the business location is another');
  const accountProfileList = Object.entries(PROFILES).map(([code, fulfillment], nth) => ({
    id: 12_454_575_601_144 + nth,
    code,
    name: code.toLowerCase(),
    deliveryMode: fulfillment === 'pickup' ? 'TAKE_AWAY' : 'DELIVERY',
  }));
  sendJson(response, 200, { businessLocationId: Number(restaurant.settings.businessLocationId), accountProfileList });
}

/**
 * READY if all four conditions are met:
 * https://api-portal.lsk.lightspeed.app/guides/integration-guides/online-ordering/online-order-readiness/online-order-readiness-setup
 * Another location's is not documented.
 */
function showReadiness(restaurant: Restaurant, request: IncomingMessage, response: ServerResponse, id: string): void {
  if (!isAuthorized(restaurant, request, response)) return;
  if (id !== restaurant.settings.businessLocationId)
    return refuse(restaurant, response, 403, {}, 'the business location is another');
  sendJson(response, 200, readinessOf(restaurant.simulator.tills));
}

function readinessOf({ enabled, ...posStatus }: LightspeedSimulator['tills']): object {
  const { salesPeriod, acceptingOnlineOrders, availableDevices } = posStatus;
  const isReady = enabled && salesPeriod === 'OPENED' && acceptingOnlineOrders && availableDevices;
  return {
    status: isReady ? 'READY' : 'NOT_READY',
    lastUpdatedAt: new Date().toISOString(),
    onlineOrderingApiConfiguration: { enabled, orderProfileId: null, staffId: null },
    posStatus,
  };
}

/**
 * A check, without its items: schema apeAccountSnapshot. Another location's is not documented.
 * https://api-docs.lsk.lightspeed.app/operation/operation-apechecklookupwithaccountidentifier, read on 2026-11-23
 */
function showCheck(
  restaurant: Restaurant,
  request: IncomingMessage,
  response: ServerResponse,
  id: string,
  location: string,
): void {
  restaurant.simulator.reads += 1;
  const fault = restaurant.simulator.misread?.();
  if (fault === 'hang') return;
  if (typeof fault === 'object') return sendFault(response, fault);
  if (!isAuthorized(restaurant, request, response)) return;
  if (location !== restaurant.settings.businessLocationId)
    return refuse(restaurant, response, 403, {}, 'the business location is another');
  const ticket = restaurant.tickets.find(({ providerOrderId }) => providerOrderId === decodeURIComponent(id));
  const check = ticket && restaurant.checks.get(ticket);
  if (ticket === undefined || check === undefined) {
    const message = `Invalid account identifier: ${id}`;
    const body = { timestamp: writeTime(), status: 400, error: 'Bad Request', message, path: request.url };
    return sendJson(response, 400, body);
  }
  if (fault === 'drop-answer') request.socket.destroy();
  else {
    sendJson(response, 200, {
      clientCount: 1,
      uuid: randomUUID(),
      ...check,
      name: 'ORDER A1C2E',
      staffName: 'Jane',
      salesEntries: [],
      paymentEntries: [],
      ikaccountId: ticket.providerOrderId,
    });
  }
}

/** A till takes the order with SUCCESS. */
function become(restaurant: Restaurant, ticket: Ticket, nativeStatus: string): void {
  ticket.status = nativeStatus;
  if (nativeStatus.startsWith('FAILURE')) return;
  const check = restaurant.checks.get(ticket) ?? { openDate: writeTime() };
  restaurant.checks.set(ticket, nativeStatus === 'CLOSED' ? { ...check, closeDate: writeTime() } : check);
}

/**
 * Makes a flat webhook, as incomplete as the samples: only later statuses name the business location. A FAILURE may
 * have its reason behind a colon.
 */
function sign(restaurant: Restaurant, ticket: Ticket, nativeStatus: string): SignedWebhook {
  const [, status = '', reason = 'Not processed before validity ended'] = /^(\w+)(?:: (.*))?$/.exec(nativeStatus) ?? [];
  const { providerOrderId: ikentooAccountIdentifier, serviceOrderId: thirdPartyReference } = ticket;
  const ikentooAccountId = '2114502594134196';
  const body =
    status === 'FAILURE'
      ? { status, reason, thirdPartyReference }
      : status === 'SUCCESS'
        ? { status, ikentooAccountId, ikentooAccountIdentifier, thirdPartyReference, type: 'ORDER' }
        : {
            thirdPartyReference,
            businessLocationId: Number(restaurant.settings.businessLocationId),
            status,
            ikentooAccountId: Number(ikentooAccountId),
            ikentooAccountIdentifier,
            type: 'ORDER',
          };
  return seal(restaurant, body);
}

/** https://api-docs.lsk.lightspeed.app/operation/operation-onlineorderingreadinessupdatednotification */
function signKitchen(restaurant: Restaurant, { state }: Kitchen): SignedWebhook {
  const readiness = readinessOf({ ...restaurant.simulator.tills, acceptingOnlineOrders: state !== 'closed' });
  return seal(restaurant, {
    businessLocationId: Number(restaurant.settings.businessLocationId),
    type: 'ORDER_API',
    ...readiness,
  });
}

function seal(restaurant: Restaurant, body: object): SignedWebhook {
  const basic = Buffer.from(`${restaurant.settings.webhookUsername}:${restaurant.settings.webhookPassword}`).toString(
    'base64',
  );
  return {
    headers: { 'content-type': 'application/json', authorization: `Basic ${basic}` },
    body: Buffer.from(JSON.stringify(body)),
  };
}

/**
 * Lists what is wrong with a registration: schema apeWebhookEndpoint, read on 2026-11-23. Undocumented fields are
 * refused too.
 */
function endpointErrors(json: Record<string, unknown>): FieldError[] {
  const isText = (value: unknown): boolean => typeof value === 'string';
  const isFlag = (value: unknown): boolean => value === undefined || typeof value === 'boolean';
  const fields: Record<string, (value: unknown) => boolean> = {
    endpointId: isText,
    url: isText,
    withBasicAuth: isFlag,
    username: (value) => value === undefined || isText(value),
    password: (value) => value === undefined || isText(value),
    provideAccount: isFlag,
    expandTransactions: isFlag,
    expandPayments: isFlag,
    subscribeTo: (value) =>
      value === undefined ||
      (Array.isArray(value) &&
        value.every((each: Record<string, unknown>) => {
          const { name, resource, ...others } = each;
          const isResource = ['order', 'payment', 'item', 'order_api'].includes(String(resource));
          return isText(name) && isResource && Object.keys(others).length === 0;
        })),
  };
  const wrong = Object.keys(fields).filter((field) => fields[field]?.(json[field]) !== true);
  const unknown = Object.keys(json).filter((field) => !(field in fields));
  return [
    ...wrong.map((field) => ({ field, code: json[field] === undefined ? 'NotNull' : 'Type' })),
    ...unknown.map((field) => ({ field, code: 'Unknown' })),
  ];
}

/** A time as Lightspeed writes it: 2021-12-21T13:24:49.265+0000. */
function writeTime(): string {
  return new Date().toISOString().replace('Z', '+0000');
}

/** Counts modifiers, which are repeated instead of having a quantity. */
function modifiersOf({ modifiers = [], subItems = [] }: ToGoItem): TicketModifier[] {
  const counts = new Map<string, number>();
  for (const { modifierId } of modifiers) counts.set(modifierId, (counts.get(modifierId) ?? 0) + 1);
  return [
    ...[...counts].map(([reference, quantity]) => ({ reference, quantity, price: undefined })),
    ...subItems.map((subItem) => {
      return { reference: subItem.sku, quantity: subItem.quantity, price: undefined, modifiers: modifiersOf(subItem) };
    }),
  ];
}

function notFound(path: string, message: string): object {
  return { timestamp: new Date().toISOString(), status: 404, error: 'Not Found', message, path };
}
