/**
 * Every request of every provider is held by its simulator to a table of fields, written from its vendor's documents: the
 * source and the date stand at the table. None of the vendors' own schemas is kept here.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { KitchenOrder } from '../../src/core/domain/order.ts';
import type { PosContext, Provider } from '../../src/core/domain/provider.ts';
import { boundedFetch } from '../../src/core/egress/bounded-fetch.ts';
import { registry } from '../../src/providers/index.ts';
import { inMemoryCredentials } from '../../packages/provider-kit/contract/in-memory-credentials.ts';
import { signWebhook } from '../../world/pos/sign-webhook.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { POS_NAMES, SIMULATORS, type PosName } from '../../world/pos/index.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { startHubrise, type HubriseSimulator } from '../../world/pos/hubrise/start-hubrise.ts';
import { startSquare } from '../../world/pos/square/start-square.ts';

/** Every request that a provider sends, ids left out. A new request is added here, and its table there. */
const REQUESTS = {
  standard: ['GET /status', 'POST /cancel', 'POST /orders'],
  hubrise: [
    'GET /v1/callback',
    'GET /v1/location',
    'GET /v1/location/orders',
    'GET /v1/location/orders/{id}',
    'PATCH /v1/location/orders/{id}',
    'POST /v1/callback',
    'POST /v1/location/orders',
  ],
  square: [
    'GET /v2/locations/{id}',
    'GET /v2/orders/{id}',
    'GET /v2/webhooks/subscriptions',
    'GET /v2/webhooks/subscriptions/{id}',
    'POST /oauth2/token/status',
    'POST /v2/orders',
    'POST /v2/orders/search',
    'POST /v2/orders/{id}/pay',
    'POST /v2/payments',
    'POST /v2/webhooks/subscriptions',
    'PUT /v2/orders/{id}',
    'PUT /v2/webhooks/subscriptions/{id}',
  ],
  'lightspeed-k': [
    'GET /o/op/1/menu/discounts',
    'GET /o/op/1/menu/list',
    'GET /o/op/1/menu/modifiers',
    'GET /o/op/1/onlineOrderReadiness',
    'GET /o/op/1/order/accounts/{id}',
    'GET /o/op/2/menu/load/7',
    'GET /o/op/data/account-profiles',
    'GET /o/op/data/businesses',
    'GET /o/wh/1/webhook/{id}',
    'POST /o/op/1/order/toGo',
    'POST /o/wh/1/webhook',
    'POST /oauth/token',
    'PUT /o/wh/1/webhook',
    'PUT /o/wh/1/webhook/{id}/business-locations/{id}',
  ],
  deliverect: ['POST /oauth/token', 'POST /{id}/order/{id}'],
  toast: [
    'GET /config/v2/diningOptions',
    'GET /orders/v2/orders/{id}',
    'GET /orders/v2/ordersBulk',
    'POST /authentication/v1/authentication/login',
    'POST /orders/v2/orders',
    'POST /orders/v2/orders/{id}/void',
    'POST /orders/v2/prices',
  ],
} satisfies Record<PosName, readonly string[]>;

type Case = {
  what: string;
  name: PosName;
  start(): Promise<Simulator>;
  /** In addition to those of the simulator. */
  settings?(pos: Simulator): object;
  requests: readonly string[];
};
const CASES: readonly Case[] = [
  ...POS_NAMES.map((name): Case => ({ what: name, name, start: () => SIMULATORS[name](), requests: REQUESTS[name] })),
  {
    what: 'square, by OAuth',
    name: 'square',
    start: () => startSquare({ byOauth: true }),
    requests: ['POST /oauth2/token', ...REQUESTS.square.filter((each) => !/locations|webhooks/.test(each))].toSorted(),
  },
  {
    what: 'hubrise, with customers attached',
    name: 'hubrise',
    start: () => startHubrise(),
    settings: (pos) => ({ customers: 'attach', customerListId: (pos as HubriseSimulator).list.listId }),
    requests: [
      'GET /v1/customer_lists/{id}',
      'PATCH /v1/customer_lists/{id}/customers/{id}',
      'POST /v1/customer_lists/{id}/customers',
      ...REQUESTS.hubrise,
    ].toSorted(),
  },
];

const WEBHOOK_URL = 'https://expediter.example.com/webhook/pos/club-1?token=';
const REQUESTED = new Date(Date.now() + 3_600_000).toISOString();
const PICKUP = KitchenOrder.parse(sampleOrder({ callOutCode: 'K472' }));
const { destination } = sampleOrder({ type: 'delivery' }).fulfillment;
const { money } = sampleOrder({ type: 'delivery' });
const LATER = KitchenOrder.parse({
  ...sampleOrder({ type: 'delivery', callOutCode: 'K473' }),
  money: { ...money, discount: 500, total: money.total - 500 },
  discounts: [{ name: 'Club: 5 off', amount: 500 }],
  fulfillment: { type: 'delivery', destination, requestedAt: REQUESTED },
});
const GIFT = KitchenOrder.parse({
  ...sampleOrder({ callOutCode: 'K474' }),
  items: [{ ...sampleOrder().items[0], unitPrice: 0, modifiers: [] }],
  money: { subtotal: 0, tax: 0, tip: 0, fee: 0, total: 0, currency: 'EUR' },
});

type Send = typeof fetch;
type Context = PosContext<unknown>;

/** All that a provider does, in an order in which it can be done, each with the POS as the one before left it. */
const DEEDS: readonly ((provider: Provider, context: Context, pos: Simulator) => unknown)[] = [
  (provider, context) => provider.connect?.({ ...context, webhookUrl: `${WEBHOOK_URL}1`, locations: 1 }),
  (provider, context) => provider.connect?.({ ...context, webhookUrl: `${WEBHOOK_URL}2`, locations: 1 }),
  (provider, context) => provider.check?.(context),
  (provider, context) => provider.createOrder(PICKUP, context),
  (provider, context) => provider.createOrder(LATER, context),
  (provider, context) => provider.createOrder(GIFT, context).catch(() => undefined),
  (provider, context) => provider.renewConnection?.(context),
  (provider, context) => provider.findOrder?.(PICKUP.serviceOrderId, context),
  (provider, context) => provider.readStatus?.({}, PICKUP, context),
  (provider, context, pos) => {
    const [ticket] = pos.tickets;
    if (ticket === undefined) throw new Error('there is no ticket');
    const [first = ''] = pos.lifeOf('pickup');
    pos.become?.(ticket, first);
    return provider.readStatus?.({ providerOrderId: ticket.providerOrderId }, PICKUP, context);
  },
  (provider, context, pos) => {
    const providerOrderId = pos.tickets[0]?.providerOrderId;
    return provider.cancelOrder?.({ providerOrderId }, { ...PICKUP, cancelReason: 'Sick' }, context);
  },
];

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

describe.each(CASES)('the requests to $what', ({ name, start, settings: others, requests }) => {
  const provider = registry.get(name);
  if (provider === undefined) throw new Error(`there is no provider ${name}`);

  /** Does all deeds up to one, this one's requests through a `send` of its own. */
  async function doAll(last: number, send: (request: Request, pos: Simulator) => Promise<Request>) {
    const pos = await start();
    ends.push(() => pos.stop());
    const settings = provider?.settings.parse({ ...pos.settings, ...others?.(pos) });
    const credentials = inMemoryCredentials(() => new Date());
    const plain = boundedFetch();
    const contextOf = (fetch: Send): Context => {
      return { settings, now: new Date(), signal: AbortSignal.timeout(10_000), credentials, fetch };
    };
    for (const [nth, deed] of DEEDS.slice(0, last + 1).entries()) {
      const changing: Send = async (input, init) => {
        const request = input instanceof Request ? input : new Request(input, init);
        return plain(await send(request, pos), init);
      };
      await deed(provider as Provider, contextOf(nth === last ? changing : plain), pos);
    }
    return pos;
  }

  it('use exactly these routes and fields', async () => {
    const seen = new Set<string>();
    for (const [nth] of DEEDS.entries()) {
      const pos = await doAll(nth, async (request, at) => {
        seen.add(routeOf(request, at));
        return request;
      });
      expect(pos.refusals).toEqual([]);
    }
    expect([...seen].toSorted()).toEqual(requests);
  });

  it('are refused with an additional field at any place', async () => {
    /** Of each deed, of each of its requests: how many places there are for a field. */
    const places: { deed: number; request: number; place: number; route: string }[] = [];
    for (const [deed] of DEEDS.entries()) {
      let nth = 0;
      await doAll(deed, async (request, pos) => {
        const text = await request.clone().text();
        for (let place = 0; place <= objectsIn(text); place += 1) {
          places.push({ deed, request: nth, place, route: routeOf(request, pos) });
        }
        nth += 1;
        return request;
      });
    }
    expect(new Set(places.map(({ route }) => route))).toEqual(new Set(requests));

    for (const { deed, request: wanted, place, route } of onceEach(places)) {
      let nth = 0;
      let refusals: readonly string[] = [];
      await doAll(deed, async (request, pos) => {
        refusals = pos.refusals;
        return nth++ === wanted ? withField(request, place, pos) : request;
      }).catch(() => undefined);
      expect(refusals, `${route} takes an undocumented field, at ${place}`).not.toEqual([]);
    }
  }, 120_000);
});

/** The same request of two deeds has the same table: the one with the most places is enough. */
function onceEach<Place extends { deed: number; request: number; route: string }>(places: readonly Place[]): Place[] {
  const fullest = new Map<string, Place[]>();
  for (const [, ofRequest] of Map.groupBy(places, ({ deed, request }) => `${deed} ${request}`)) {
    const route = ofRequest[0]?.route ?? '';
    if (ofRequest.length > (fullest.get(route)?.length ?? 0)) fullest.set(route, ofRequest);
  }
  return [...fullest.values()].flat();
}

/** Without the ids of orders, of settings, and those that a POS makes. */
function routeOf({ method, url }: Request, { tickets, settings }: Simulator): string {
  const isId = (part: string): boolean =>
    /^wbhk_|ZY$|^[0-9a-f]{8}$/.test(part) ||
    Object.values(settings).includes(part) ||
    tickets.some(({ providerOrderId, serviceOrderId }) => part === providerOrderId || part.includes(serviceOrderId));
  const parts = new URL(url).pathname.split('/').map((part) => (isId(decodeURIComponent(part)) ? '{id}' : part));
  return `${method} ${parts.join('/').replace(/customer_lists\/[^/]+/, 'customer_lists/{id}')}`;
}

function objectsIn(text: string): number {
  let count = 0;
  if (text.startsWith('{')) JSON.parse(text, (_key, value: unknown) => ((count += isObject(value) ? 1 : 0), value));
  return text === '' || count > 0 ? count : 1;
}

/** The request with a field more: at 0 in its query, else in one of the objects of its body. */
async function withField(request: Request, place: number, { settings }: Simulator): Promise<Request> {
  const { method, headers } = request;
  const url = new URL(request.url);
  if (place === 0) url.searchParams.set('unheardOf', '1');
  const text = await request.text();
  const body = place === 0 ? text : text.startsWith('{') ? withFieldAt(text, place) : `${text}&unheardOf=1`;
  // A signed body is signed again. Otherwise it would be refused for its signature.
  const id = headers.get('webhook-id');
  const signed = id === null ? {} : signWebhook(String(settings['secret']), body, { id });
  const all = { ...Object.fromEntries(headers), ...signed };
  return new Request(url, { method, headers: all, ...(body !== '' && { body }) });
}

/** Numbers as they were written: a double would change an int64. */
function withFieldAt(text: string, place: number): string {
  let nth = 0;
  const changed: unknown = JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (isObject(value)) return ++nth === place ? { ...value, unheardOf: 1 } : value;
    return typeof value === 'number' ? JSON.rawJSON(context?.source ?? '') : value;
  });
  return JSON.stringify(changed);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
