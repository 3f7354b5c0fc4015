import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { GiveUp, NotAuthentic, NeedsOperator, Poison } from '../../src/core/domain/errors.ts';
import { KitchenOrder } from '../../src/core/domain/order.ts';
import type { PosContext, Webhook } from '../../src/core/domain/provider.ts';
import { deliverect } from '../../src/providers/deliverect/index.ts';
import { Settings } from '../../src/providers/deliverect/payloads.ts';
import { writeOrder } from '../../src/providers/deliverect/write-order.ts';
import { checkDeliverectOrder } from '../../world/pos/deliverect/check-deliverect-order.ts';
import { startDeliverect } from '../../world/pos/deliverect/start-deliverect.ts';
import { sampleOrder, type SampleOptions } from '../../world/platform/sample-order.ts';
import { readBody, sendJson, serveHttp } from '../../world/network/serve-http.ts';
import { errorOf, providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { contextAt, expectError, stopAtEnd, webhookAt } from './stage-parts.ts';

const NOW = new Date('2026-01-31T18:30:00.250Z');
const HEADER = 'x-server-authorization-hmac-sha256';
const LINK = '61bcc34f657cc48c23eb60d5';
const settings = Settings.parse({
  clientId: 'client-1',
  clientSecret: 'hidden-client',
  channelName: 'clubplatform',
  channelLinkId: LINK,
  hmacSecret: 'hidden-hmac',
});

providerContract(deliverect, {
  start: startDeliverect,
  wrongSettings: {
    clientId: [undefined, '', ' padded', 7],
    clientSecret: [undefined, '', 'padded '],
    channelName: [undefined, '', 'Club', 'two words', 'a/b', '..'],
    channelLinkId: [undefined, '', 'a/b', '..', 7],
    hmacSecret: [undefined, '', ' padded'],
    baseUrl: ['api.deliverect.com', 'ftp://pos.example', 'https://user:word@pos.example'],
    itemMap: [[], { burger: 7 }, { burger: '' }],
    closedMeansCompleted: ['yes', 1],
    pauseMinutes: [0, 1.5, 1441, '240'],
    deliveredBy: ['', 'channel', true],
  },
  secretSettings: ['clientSecret', 'hmacSecret'],
  provenSettings: ['clientId', 'clientSecret'],
  refusal: (words) => ({
    status: 400,
    body: { orderFieldsErrors: { note: words }, orderPaymentErrors: { due: words } },
  }),
  kitchen: ['open', 'busy', 'closed'],
  statuses: {
    ...Object.fromEntries(
      [1, 3, 4, 5, 6, 7, 25, 30, 80, 81, 83, 84, 85, 100, 115].map((code) => [code, null] as const),
    ),
    2: 'received',
    10: 'received',
    20: 'received',
    40: 'in_progress',
    50: 'in_progress',
    60: 'ready',
    70: 'ready',
    87: 'en_route',
    89: 'en_route',
    90: 'completed',
    95: 'completed',
    35: 'cancelled',
    110: 'cancelled',
    120: 'failed',
    121: 'failed',
    124: 'failed',
  },
  estimates: { native: 'prepared by 20', pickup: ['estimatedReadyAt'], delivery: ['estimatedReadyAt'], untimed: true },
  // Deliverect refuses no cancel. Whether a POS does is seen by its 110, which never comes.
  cancels: { answer: 'requested' },
  rejections: {
    'an item that is out of stock': { by: '110 Item out of stock', reasonCode: 'item_unavailable' },
    'a PLU that the POS does not have': {
      by: '120 InvalidProduct: Invalid PLU: burger-classic InvalidModifier: Invalid PLU: cheddar',
      reasonCode: 'item_unavailable',
      itemIds: ['burger-classic'],
    },
    "a modifier's PLU that the POS does not have": {
      by: '120 InvalidModifier: Invalid PLU: cheddar',
      reasonCode: 'item_unavailable',
    },
    'a restaurant that denies': { by: '35', reasonCode: 'restaurant_cancelled' },
    'a restaurant that cancels': { by: '110 -', reasonCode: 'restaurant_cancelled' },
    'a code of a channel': { by: '110 CUSTOMER_CALLED_TO_CANCEL', reasonCode: 'member_cancelled' },
    'a busy restaurant': { by: '35 Too busy', reasonCode: 'too_busy' },
    'a closed restaurant': { by: '35 We are closed', reasonCode: 'closed' },
    'a failed order': { by: '120', reasonCode: 'technical' },
    'an order that did not reach the POS': { by: '121', reasonCode: 'technical' },
    'an order that could not be parsed': { by: '124', reasonCode: 'technical' },
    'an incomplete address': {
      by: { status: 400, body: { orderFieldsErrors: { deliveryAddress: 'Missing.' }, orderPaymentErrors: {} } },
      reasonCode: 'invalid_address',
    },
    'a wrong payment': {
      by: { status: 400, body: { orderFieldsErrors: {}, orderPaymentErrors: { amount: 'Not valid.' } } },
      reasonCode: 'payment',
    },
    'any other field': {
      by: { status: 400, body: { orderFieldsErrors: { courier: 'Missing.' }, orderPaymentErrors: {} } },
      reasonCode: 'technical',
    },
    'a validation that has expired': { by: { status: 417, body: {} }, reasonCode: 'technical' },
  },
});

describe('settings', () => {
  it('default to the production URL, no itemMap and closedMeansCompleted: true', () => {
    expect(settings).toMatchObject({
      baseUrl: 'https://api.deliverect.com',
      itemMap: {},
      closedMeansCompleted: true,
      pauseMinutes: 240,
    });
  });
});

describe('an order for Deliverect', () => {
  it('has all documented fields for a pickup', () => {
    const callOutCode = 'K472';
    const order = orderOf({
      serviceOrderId: 'order-2026-000628',
      callOutCode,
      placedAt: '2026-01-31T19:29:59.5+01:00',
    });
    expect(written(order)).toEqual({
      channelOrderId: 'order-2026-000628',
      channelOrderDisplayId: callOutCode,
      orderType: 1,
      deliveryIsAsap: true,
      pickupTime: '2026-01-31T18:30:00Z',
      placedTime: '2026-01-31T18:29:59Z',
      courier: 'restaurant',
      ageCheck: true,
      decimalDigits: 2,
      payment: { amount: 4834, type: 0, due: 0 },
      orderIsAlreadyPaid: true,
      serviceCharge: 0,
      tip: 300,
      taxes: [{ name: 'Tax', total: 724 }],
      items: [
        {
          plu: 'burger-classic',
          name: 'Classic Burger',
          price: 1290,
          quantity: 2,
          remark: 'One of them well done',
          subItems: [
            { plu: 'cheddar', name: 'Extra cheddar', price: 150, quantity: 1, subItems: [] },
            { plu: 'no-onions', name: 'No onions', price: 0, quantity: 1, subItems: [] },
          ],
        },
        { plu: 'fries-sweet-potato', name: 'Sweet Potato Fries', price: 450, quantity: 1, subItems: [] },
        { plu: 'beer-pale-ale', name: 'Pale Ale 0.33 l', price: 480, quantity: 1, subItems: [] },
      ],
      note: 'AGE CHECK: Pale Ale 0.33 l\nTable by the terrace, if there is one',
      customer: { name: 'Ada Lovelace', phoneNumber: '+493012345678', email: 'ada@example.com' },
    });
  });

  it.each([
    ['delivery', 'restaurant', { courier: 'restaurant', tip: 300 }],
    ['delivery', 'vendor', { courier: 'restaurant', tip: 0, driverTip: 300 }],
    ['delivery', 'platform', { courier: 'club', tip: 0, driverTip: 300 }],
    ['pickup', 'platform', { courier: 'restaurant', tip: 300 }],
  ] as const)(
    'names the courier and gives the tip to the one who delivers: a %s delivered by %s',
    (type, deliveredBy, named) => {
      const { courier, tip, driverTip } = written(orderOf({ type }), { deliveredBy, channelName: 'club' });
      expect({ courier, tip, driverTip }).toEqual(named);
    },
  );

  it('has the address, delivery cost and times of a delivery', () => {
    const order = orderOf({ type: 'delivery' });
    order.fulfillment.requestedAt = '2026-01-31T21:00:00+01:00';
    const { serviceCharge, ...body } = written(order);
    expect(serviceCharge).toBeUndefined();
    expect(body).toMatchObject({
      orderType: 2,
      deliveryIsAsap: false,
      pickupTime: '2026-01-31T20:00:00Z',
      deliveryTime: '2026-01-31T20:00:00Z',
      deliveryCost: 350,
      payment: { amount: 5184 },
    });
    expect(body['deliveryAddress']).toEqual({
      street: 'Lindenstraße',
      streetNumber: '14',
      postalCode: '10969',
      city: 'Berlin',
      country: 'DE',
      extraAddressInfo: '3. OG, Ring twice',
      coordinates: { latitude: 52.5044, longitude: 13.3946 },
    });
  });

  it.each([
    ['Straße des 17. Juni 135', 'DE', 'Straße des 17. Juni', '135'],
    ['350 5th Avenue', 'US', '5th Avenue', '350'],
    ['12 Main St Apt 4', 'US', 'Main St Apt 4', '12'],
    ['12 rue du 8 Mai 1945', 'FR', 'rue du 8 Mai 1945', '12'],
    ['14, rue de la Paix', 'FR', 'rue de la Paix', '14'],
    ['Lindenstraße 14, 3. OG', 'DE', 'Lindenstraße', '14', '3. OG'],
    ['Lindenstraße 14, Apt 4', 'DE', 'Lindenstraße', '14', 'Apt 4'],
    ['Calle Mayor, 5, 3º B', 'ES', 'Calle Mayor', '5', '3º B'],
    ['Flat 4, 12 High Street', 'GB', 'High Street', '12', 'Flat 4'],
    ['Flat 4, 12, High Street', 'GB', 'High Street', '12', 'Flat 4'],
    ['12bis rue de la Paix', 'FR', 'rue de la Paix', '12bis'],
    ['12 ter rue de la Paix', 'FR', 'rue de la Paix', '12 ter'],
    ['Via Roma 12-A2', 'IT', 'Via Roma', '12-A2'],
    ['Marszałkowska 5/12', 'PL', 'Marszałkowska', '5/12'],
    ['Ginza 1-2-3', 'JP', 'Ginza', '1-2-3'],
    ['Calle Mayor s/n', 'ES', 'Calle Mayor', 's/n'],
    // No number is found: the courier reads the whole line.
    ['Rue du 8 Mai 1945', 'FR', 'Rue du 8 Mai 1945', '-'],
    ['5th Avenue', 'US', '5th Avenue', '-'],
    ['Schloss Sanssouci, Raum 5', 'DE', 'Schloss Sanssouci, Raum 5', '-'],
    ['Lindenstraße 14 Hinterhaus', 'DE', 'Lindenstraße 14 Hinterhaus', '-'],
    ['The Manor House', 'GB', 'The Manor House', '-'],
  ])(
    'has street and street number in separate fields for the address %j in %s',
    (line1, country, street, streetNumber, more?: string) => {
      const order = orderOf({ fulfillment: { type: 'delivery', destination: { ...PLACE, line1, country } } });
      expect(written(order)['deliveryAddress']).toEqual({
        street,
        streetNumber,
        postalCode: '10969',
        city: 'Berlin',
        country,
        ...(more !== undefined && { extraAddressInfo: more }),
      });
      expect(checkDeliverectOrder(written(order))).toBeUndefined();
    },
  );

  it.each([
    ['postalCode', 'a postal code'],
    ['city', 'a city'],
    ['country', 'a country'],
  ])('fails with GiveUp before any request if a delivery has no %s', async (field, words) => {
    for (const nothing of [undefined, '', ' ']) {
      const error = await unsent({ ...PLACE, [field]: nothing });
      expect(error).toMatchObject({
        name: 'GiveUp',
        message: `fulfillment.destination.${field} is missing, and Deliverect requires ${words} for a delivery`,
        reason: `The restaurant could not take this order: its address needs ${words}.`,
        reasonCode: 'invalid_address',
      });
    }
  });

  it('has no deliveryAddress for a pickup', () => {
    const order = orderOf({ fulfillment: { type: 'pickup', destination: { line1: 'The Manor House' } } });
    expect(written(order)).not.toHaveProperty('deliveryAddress');
  });

  it('has the region in extraAddressInfo, and no coordinates without a longitude', () => {
    const destination = { ...PLACE, line1: '1 Main St', region: 'IL', country: 'US', latitude: 39.8 };
    expect(written(orderOf({ fulfillment: { type: 'delivery', destination } }))['deliveryAddress']).toEqual({
      street: 'Main St',
      streetNumber: '1',
      postalCode: '10969',
      city: 'Berlin',
      country: 'US',
      extraAddressInfo: 'IL',
    });
  });

  it.each([
    ['nothing', undefined, true, '2026-01-31T18:30:00Z'],
    ['the past', '2026-01-31T18:00:00Z', true, '2026-01-31T18:30:00Z'],
    ['half an hour ahead', '2026-01-31T19:00:00.25Z', true, '2026-01-31T19:00:00Z'],
    ['a bit more', '2026-01-31T19:00:01Z', false, '2026-01-31T19:00:01Z'],
  ])(
    'is ASAP only if it is requested within 30 minutes, and never has a pickupTime in the past: requested for %s',
    (_name, at, isAsap, time) => {
      const order = orderOf({ fulfillment: { type: 'pickup', ...(at !== undefined && { requestedAt: at }) } });
      const { deliveryIsAsap, pickupTime, deliveryTime } = written(order);
      expect({ deliveryIsAsap, pickupTime, deliveryTime }).toEqual({ deliveryIsAsap: isAsap, pickupTime: time });
    },
  );

  it.each([
    ['as soon as possible', undefined, '2026-01-31T18:50:00Z'],
    ['sooner', '2026-01-31T18:40:00Z', '2026-01-31T18:50:00Z'],
    ['later', '2026-01-31T18:55:00Z', '2026-01-31T18:55:00Z'],
  ])(
    "is not ASAP in a busy kitchen, and is not due before the kitchen's delay has passed: requested for %s",
    (_name, at, time) => {
      const requestedAt = at === undefined ? {} : { requestedAt: at };
      const { fulfillment } = orderOf({ type: 'delivery' });
      const pickup = orderOf({ fulfillment: { type: 'pickup', ...requestedAt } });
      const delivery = orderOf({ fulfillment: { ...fulfillment, ...requestedAt } });
      const moved = { deliveryIsAsap: false, pickupTime: time };
      expect(written({ ...pickup, extraMinutes: 20 })).toMatchObject(moved);
      expect(written({ ...pickup, extraMinutes: 20 })).not.toHaveProperty('deliveryTime');
      expect(written({ ...delivery, extraMinutes: 20 })).toMatchObject({ ...moved, deliveryTime: time });
    },
  );

  it('has no deliveryTime for a delivery as soon as possible', () => {
    expect(written(orderOf({ type: 'delivery' }))).not.toHaveProperty('deliveryTime');
  });

  it.each([
    ['EUR', 2],
    ['JPY', 0],
    ['KWD', 3],
  ])('has amounts in minor units of %s with %i decimalDigits', (currency, digits) => {
    const { money } = sampleOrder();
    const body = written(orderOf({ money: { ...money, currency } }));
    expect(body).toMatchObject({ decimalDigits: digits, payment: { amount: 4834 } });
  });

  it('has no tax if the prices include it, or if there is none', () => {
    const { money } = sampleOrder();
    expect(written(orderOf({ money: { ...money, total: money.total - money.tax } }))['taxes']).toEqual([]);
    expect(written(orderOf({ money: { ...money, tax: 0, total: money.total - money.tax } }))['taxes']).toEqual([]);
    const taxes = [
      { name: 'GST', amount: 24, rate: 5 },
      { name: 'PST', amount: 700, rate: 7 },
    ];
    expect(written(orderOf({ taxes }))['taxes']).toEqual([
      { name: 'GST', total: 24 },
      { name: 'PST', total: 700 },
    ]);
    // What the platform says counts, and not the sums.
    expect(written(orderOf({ taxes, money: { ...money, pricesIncludeTax: true } }))['taxes']).toEqual([]);
  });

  it('has each discount with its name, and their negative sum as discountTotal', () => {
    const { money } = sampleOrder();
    const cheaper = { ...money, discount: 500, total: money.total - 500 };
    const discounts = [
      { name: 'Club: 4 off', amount: 400 },
      { name: 'Nothing', amount: 0 },
      { name: 'Birthday', amount: 100 },
    ];
    const body = written(orderOf({ money: cheaper, discounts }));
    const discount = { type: 'order_flat_off', provider: 'restaurant', channelDiscountCode: '' };
    expect(body).toMatchObject({
      payment: { amount: money.total - 500 },
      taxes: [{ total: money.tax }],
      discountTotal: -500,
      discounts: [
        { ...discount, name: 'Club: 4 off', referenceId: 1, value: 400, amount: 400 },
        { ...discount, name: 'Birthday', referenceId: 2, value: 100, amount: 100 },
      ],
    });
    expect(checkDeliverectOrder(body)).toBeUndefined();
    expect(written(orderOf())).not.toHaveProperty('discountTotal');
  });

  it('has the PLUs of itemMap, and our own ids for items that are not in it', () => {
    const items = ['burger', 'constructor', '__proto__'].map((serviceItemId) => ({
      ...anItem,
      serviceItemId,
      modifiers: [{ serviceModifierId: 'cheddar', name: 'Cheddar', quantity: 2 }],
    }));
    const itemMap = { burger: 'P-1', cheddar: 'M-1' };
    expect(written(orderOf({ items }), { itemMap })['items']).toMatchObject([
      { plu: 'P-1', subItems: [{ plu: 'M-1', quantity: 2 }] },
      { plu: 'constructor' },
      { plu: '__proto__' },
    ]);
  });

  it('fails with GiveUp that names an item without a price by its id', () => {
    const { unitPrice: _none, ...priceless } = anItem;
    const order = orderOf({ items: [anItem, priceless] });
    const error = errorOf(() => written(order));
    expect(error).toBeInstanceOf(GiveUp);
    expect(errorOf(() => deliverect.checkOrder?.(order))).toEqual(error);
    expect(error).toMatchObject({
      message: 'items.1.unitPrice is missing, and Deliverect requires a price',
      reason: 'The restaurant could not take this order: an item has no price.',
      reasonCode: 'technical',
      itemIds: ['pizza'],
    });
  });

  it('has no note if there is nothing to say, and a long note in full', () => {
    const order = orderOf({ member: { id: 'm-1', name: 'Ada' }, items: [anItem], notes: 'x'.repeat(5000) });
    expect(written(order)).toMatchObject({ ageCheck: false, note: 'x'.repeat(5000), customer: { name: 'Ada' } });
    const { notes: _none, ...quiet } = order;
    expect(written(quiet)).not.toHaveProperty('note');
  });
});

describe('createOrder', () => {
  it('requests a token and posts the order to the URL of the channel link', async () => {
    const { url, seen } = await serve([201, {}]);
    expect(await deliverect.createOrder(orderOf(), contextOf(url))).toEqual({});
    expect(seen).toMatchObject([
      {
        path: '/oauth/token',
        body: {
          client_id: 'client-1',
          client_secret: 'hidden-client',
          audience: url,
          grant_type: 'client_credentials',
        },
      },
      { path: `/clubplatform/order/${LINK}`, authorization: 'Bearer hidden-token-1' },
    ]);
  });

  it.each([
    ['with only expires_at is stored', { access_token: 'hidden-token', expires_at: NOW.getTime() / 1000 + 60 }, 1],
    ['without an expiry is requested again', { access_token: 'hidden-token' }, 2],
  ])('a token %s', async (_name, grant, asked) => {
    const { url, seen } = await serve([201, {}], [200, grant]);
    const context = contextOf(url);
    await deliverect.createOrder(orderOf(), context);
    await deliverect.createOrder(orderOf(), context);
    expect(seen.filter(({ path }) => path === '/oauth/token')).toHaveLength(asked);
  });

  it('is undone by cancelOrder, which sends the same order with status 100 and the reason', async () => {
    const { url, seen } = await serve([201, {}]);
    const order = orderOf({ serviceOrderId: 'order-1', callOutCode: 'K472' });
    const context = contextOf(url);
    await deliverect.createOrder(order, context);
    expect(await deliverect.cancelOrder?.({}, { ...order, cancelReason: 'Rain' }, context)).toBe('requested');
    expect(await deliverect.cancelOrder?.({}, order, context)).toBe('requested');
    const [placed, cancelled, silently] = seen.filter(({ path }) => path !== '/oauth/token').map(({ body }) => body);
    const why = { cancellationReason: 'Cancelled on the ordering platform' };
    expect(cancelled).toEqual({ ...(placed as object), status: 100, note: 'Rain', cancellationReason: 'Rain' });
    expect(silently).toEqual({ ...(placed as object), status: 100, ...why });
  });

  it.each([400, 401, 403, 404])('throws NeedsOperator if the token request is refused with %i', async (status) => {
    const { url } = await serve([201, {}], [status, { code: 'access_denied' }]);
    expect(await failureOf(url)).toBeInstanceOf(NeedsOperator);
  });

  it("throws TryAgain with sent: false if the token's answer cannot be read", async () => {
    const { url } = await serve([201, {}], [200, { access_token: '' }]);
    expect(await failureOf(url)).toMatchObject({ name: 'TryAgain', sent: false });
  });

  it('requests one fresh token if the first is refused, and throws NeedsOperator if the fresh token is refused too', async () => {
    const { url, seen } = await serve([401, { code: 'token_expired', description: 'token is expired' }]);
    expect(await failureOf(url)).toMatchObject({
      name: 'NeedsOperator',
      httpStatus: 401,
      message:
        'Deliverect refuses the order with 401: channelName, channelLinkId or baseUrl is wrong, or the client has ' +
        'no rights to this channel',
    });
    expect(seen.map(({ path }) => path.split('/')[2])).toEqual(['token', 'order', 'token', 'order']);
  });

  it.each([
    ['an unknown channel link', 404, { message: 'The requested URL was not found on the server.' }],
    ['an unknown path', 405, {}],
    ['a missing scope', 400, { code: 'Authorization error', description: "you're not allowed to send in" }],
  ])('throws NeedsOperator that names channelLinkId after %s', async (_name, status, body) => {
    expect(await refusalOf(status, body)).toMatchObject({
      name: 'NeedsOperator',
      message: `Deliverect does not know this channel link (${status}): check channelName, channelLinkId and baseUrl`,
    });
  });

  it('fails for a wrong channelName or channelLinkId, with an error that names both', async () => {
    const pos = stopAtEnd(await startDeliverect());
    for (const wrong of [{ channelName: 'other' }, { channelLinkId: 'feedbeef' }]) {
      const context = contextOf(pos.url, { ...pos.settings, ...wrong });
      await expect(deliverect.createOrder(orderOf(), context)).rejects.toThrow(
        /channelName, channelLinkId or baseUrl is wrong, or the client has no rights/,
      );
    }
    expect(pos.tickets).toEqual([]);
  });

  it.each([
    [
      400,
      {
        orderFieldsErrors: { channelOrderId: 'Missing from the payload.', 'Ada Lovelace': 'secret' },
        orderPaymentErrors: { amount: 'secret' },
      },
      'Deliverect refused the order with 400 for channelOrderId, payment.amount',
    ],
    [400, { orderFieldsErrors: { items: 'secret' } }, 'Deliverect refused the order with 400 for items'],
    [400, { orderFieldsErrors: ['secret'] }, 'Deliverect refused the order with 400'],
    [417, {}, 'Deliverect refused the order with 417'],
  ])('throws GiveUp with the field names and no values after %i %j', async (status, body, message) => {
    const reason = 'The restaurant could not take this order.';
    expect(await refusalOf(status, body)).toMatchObject({ name: 'GiveUp', message, reason, httpStatus: status });
  });

  it.each([
    [422, 'Ada Lovelace'],
    [400, { message: 'Ada Lovelace' }],
  ])("throws NeedsOperator without the answer's text after %i %j", async (status, body) => {
    expect(await refusalOf(status, body)).toMatchObject({ name: 'NeedsOperator', httpStatus: status });
  });

  async function refusalOf(status: number, body: unknown): Promise<Error> {
    return failureOf((await serve([status, body])).url);
  }

  async function failureOf(url: string): Promise<Error> {
    const error = await rejectionOf(deliverect.createOrder(orderOf(), contextOf(url)));
    expect(error.message).not.toMatch(/hidden|secret|Ada/);
    return error;
  }

  type Answer = [status: number, body: unknown];
  type Seen = { path: string; authorization: string | undefined; body: unknown };

  /** A Deliverect that answers each order so. Each token that it grants is another. */
  async function serve(answer: Answer, granted?: Answer): Promise<{ url: string; seen: Seen[] }> {
    const seen: Seen[] = [];
    const server = await serveHttp(async (request, response) => {
      const { url: path = '' } = request;
      const { authorization } = request.headers;
      seen.push({ path, authorization, body: JSON.parse((await readBody(request)).toString()) as unknown });
      const grant = { access_token: `hidden-token-${seen.length}`, expires_in: 3600, expires_at: 1 };
      const answered: Answer = path === '/oauth/token' ? (granted ?? [200, grant]) : answer;
      sendJson(response, ...answered);
    });
    return { url: stopAtEnd(server).url, seen };
  }

  function contextOf(baseUrl: string, overrides: object = {}): PosContext<Settings> {
    return contextAt(NOW, Settings.parse({ ...settings, baseUrl, ...overrides }));
  }
});

describe('translateWebhook', () => {
  const accepted = {
    reason: '',
    status: 20,
    orderId: '61bcc34f657cc48c23eb60b4',
    location: '61bcc34f657cc48c23eb60b5',
    receiptId: '',
    timeStamp: '2026-01-31T18:30:00.123456Z',
    channelLink: LINK,
    channelOrderId: 'order-1',
  };

  it('reads every field of the sample that Deliverect publishes', () => {
    expect(translate(accepted)).toEqual([
      {
        status: 'received',
        serviceOrderId: 'order-1',
        providerOrderId: '61bcc34f657cc48c23eb60b4',
        occurredAt: '2026-01-31T18:30:00.123456Z',
        nativeStatus: '20',
      },
    ]);
  });

  it('accepts a signature in hex of any case over the raw bytes, as openssl makes it', () => {
    // Before Deliverect has assigned a secret, it is the channel link's id.
    const body = Buffer.from('{"status":20,"channelOrderId":"TEST628"}');
    // printf %s "$body" | openssl dgst -sha256 -hmac 61bcc34f657cc48c23eb60d5
    const signature = '07767f9116525ac3081d42766d6530c444d208215bb81d27244f6a9f5d51807a';
    for (const given of [signature, signature.toUpperCase()]) {
      const webhook = webhookAt(NOW, body, { [HEADER]: given });
      expect(deliverect.translateWebhook(webhook, { ...settings, hmacSecret: LINK })).toHaveLength(1);
      expect(() => deliverect.translateWebhook(webhook, settings)).toThrow(NotAuthentic);
    }
  });

  it("reads the status of a courier's update, which has no channelLink", () => {
    const { channelLink: _none, ...update } = { ...accepted, status: 87 };
    expect(translate(update)).toMatchObject([{ status: 'en_route', nativeStatus: '87' }]);
  });

  const { timeStamp: _at, channelLink: _link, ...prepared } = accepted;
  const { location: _location, ...courier } = prepared;
  const [early, late] = ['2026-01-31T18:55:00.131438Z', '2026-01-31T19:20:00Z'];

  it('reads the pickup time of a preparation update as estimatedReadyAt', () => {
    const [event] = translate({ ...prepared, status: '20', pickupTime: early });
    expect(event).toMatchObject({ status: 'received', estimatedReadyAt: early });
    expect(event).not.toHaveProperty('occurredAt', expect.anything());
    // Before it is accepted, no status of ours is true.
    expect(translate({ ...prepared, status: '6', pickupTime: early })).toEqual([]);
  });

  it("reads the courier's delivery time as an estimate, but not the time of arrival at the restaurant", () => {
    const onTheWay = { ...courier, status: 87, pickupTime: early, deliveryTime: late };
    for (const [update, status] of [
      [onTheWay, 'en_route'],
      [{ ...onTheWay, status: 83 }, 'received'],
    ] as const) {
      const [event] = translate(update);
      expect(event).toMatchObject({ status, estimatedDeliveryAt: late });
      expect(event).not.toHaveProperty('estimatedReadyAt', expect.anything());
    }
    expect(translate({ ...courier, status: 83, pickupTime: early })).toEqual([]);
    expect(translate({ ...courier, status: 115, deliveryTime: late })).toEqual([]);
  });

  it.each([80, 81])('returns no event for an assigned courier (status %i)', (status) => {
    expect(translate({ ...courier, status, deliveryTime: late })).toEqual([]);
  });

  it.each(['soon', null, 7])('leaves out the invalid estimate %j and reads the status', (time) => {
    expect(translate({ ...accepted, pickupTime: time, deliveryTime: time })).toEqual(translate(accepted));
  });

  it('names items with an unknown PLU by our ids', () => {
    const itemMap = { burger: 'P-1', burger2: 'P-1', cheddar: 'M-1', constructor: 'P-2' };
    const reason =
      'InvalidProduct: Invalid PLU: P-1, InvalidProduct: Invalid PLU: P-9 InvalidModifier: Invalid PLU: M-1';
    const webhook = webhookOf({ ...accepted, status: 120, reason });
    expect(deliverect.translateWebhook(webhook, { ...settings, itemMap })).toMatchObject([
      { reasonCode: 'item_unavailable', itemIds: ['burger', 'burger2', 'P-9'] },
    ]);
    expect(translate({ ...accepted, status: 20, reason })[0]).not.toHaveProperty('reasonCode');
    const endless = 'InvalidProduct: Invalid PLU: x'.repeat(20_000);
    expect(translate({ ...accepted, status: 120, reason: endless })[0]?.itemIds?.length ?? 0).toBeLessThan(101);
  });

  it("gives the restaurant's own reason for a cancellation to the member", () => {
    const cancelled = { ...accepted, status: 110, reason: ' Item out of stock ' };
    expect(translate(cancelled)).toMatchObject([{ status: 'cancelled', reason: 'Item out of stock' }]);
    for (const reason of ['', '  ', null, undefined]) {
      expect(translate({ ...cancelled, reason })[0]).not.toHaveProperty('reason', expect.anything());
    }
  });

  it.each([120, 121, 124])(
    "gives the member a reason with the failure's code %i and without technical text",
    (status) => {
      expect(translate({ ...accepted, status, reason: '68e7f01c94e78a7fe9b1: document not found' })).toMatchObject([
        {
          status: 'failed',
          reason: `The restaurant could not take this order (Deliverect ${status}).`,
          nativeStatus: String(status),
        },
      ]);
    },
  );

  it('gives no reason to the member if the order continues', () => {
    const reason = '68e7f01c94e78a7fe9b1: document not found';
    expect(translate({ ...accepted, reason })[0]).not.toHaveProperty('reason', expect.anything());
  });

  it('reads a status that is a text of digits', () => {
    expect(translate({ ...accepted, status: '20' })).toEqual(translate(accepted));
    expect(translate({ ...accepted, status: '110' })).toMatchObject([{ status: 'cancelled', nativeStatus: '110' }]);
    expect(translate({ ...accepted, status: '1' })).toEqual([]);
  });

  it('returns no event for a finalized order if closedMeansCompleted is false', () => {
    const wary = { ...settings, closedMeansCompleted: false };
    for (const status of [90, 95]) {
      expect(deliverect.translateWebhook(webhookOf({ ...accepted, status }), wary)).toEqual([]);
    }
    expect(deliverect.translateWebhook(webhookOf({ ...accepted, status: 70 }), wary)).toHaveLength(1);
  });

  it.each([null, '', 'yesterday', '2026-01-31T18:30:00', 7, undefined])(
    'returns an event without a time if timeStamp is %j',
    (timeStamp) => {
      expect(translate({ ...accepted, timeStamp })[0]).not.toHaveProperty('occurredAt', expect.anything());
    },
  );

  it.each([null, '', undefined])('reads an order with only one of the two ids if the other is %j', (none) => {
    expect(translate({ ...accepted, orderId: none })).toMatchObject([{ serviceOrderId: 'order-1' }]);
    expect(translate({ ...accepted, channelOrderId: none })).toMatchObject([{ providerOrderId: accepted.orderId }]);
  });

  it.each([
    ['a pause', { channelLinkId: LINK, status: 'PAUSED' }],
    ['amendments', { channelOrderId: 'order-1', channelLink: LINK, itemAmendments: [{ finalQuantity: 0 }] }],
    ['a menu', [{ menu: 'Lunch', channelLinkId: LINK }]],
    ['a registration', { status: 'register', channelLinkId: LINK }],
    ['a payment', { paymentId: 'p-1', status: 'authorized' }],
    ['null', null],
  ])('returns no event for %s', (_name, body) => {
    expect(translate(body)).toEqual([]);
  });

  it("reads a kitchen as busy until pauseMinutes have passed, with the kitchen's delay, and answers with the status", () => {
    const read = (more: object) =>
      deliverect.readKitchen?.(webhookOf({ channelLinkId: LINK, status: 'BUSY', ...more }), settings);
    const until = new Date(NOW.getTime() + settings.pauseMinutes * 60_000);
    const report = { state: 'busy', until, answer: { status: 'BUSY' } };
    expect(read({ delay: 30 })).toEqual({ ...report, extraMinutes: 30 });
    for (const delay of [undefined, null, 0, 'soon']) expect(read({ delay })).toEqual(report);
    expect(read({ status: 'SNOOZED' })).toBeUndefined();
  });

  it.each([
    ['a status in letters', { status: 'ACCEPTED secret' }, 'status: Invalid input: expected number'],
    ['a text instead of a status', { status: '' }, 'status: Invalid input: expected number'],
    ['a status with more than digits', { status: ' 20' }, 'status: Invalid input: expected number'],
    ['a status in hex', { status: '0x14' }, 'status: Invalid input: expected number'],
    ['a status of endless digits', { status: '9'.repeat(400) }, 'status: Invalid input: expected number'],
    ['a status with a fraction', { status: 20.5 }, 'status: Invalid input: expected int'],
    ['no status', { status: undefined }, 'status: Invalid input: expected number'],
    [
      'ids of a wrong type',
      { channelOrderId: 'secret'.repeat(50), orderId: ['secret'] },
      'orderId: Invalid input: expected string',
    ],
    ['no id at all', { channelOrderId: '', orderId: null }, 'channelOrderId and orderId are missing'],
  ])('throws Poison that names the field and no value: %s', (_name, part, message) => {
    const error = errorOf(() => translate({ ...accepted, ...part }));
    expectError(error, Poison, message);
    expect(error.message).not.toContain('secret');
  });

  function translate(body: unknown) {
    return deliverect.translateWebhook(webhookOf(body), settings);
  }

  function webhookOf(said: unknown): Webhook {
    const body = JSON.stringify(said);
    return webhookAt(NOW, body, { [HEADER]: createHmac('sha256', settings.hmacSecret).update(body).digest('hex') });
  }
});

describe('connect', () => {
  const webhookUrl = 'https://expediter.example.com/webhook/deliverect/club-1?token=t-1';

  it('says which URLs to give Deliverect, and shows no secret', async () => {
    const { done, todo } = await connectWith(settings);
    expect(done).toEqual([]);
    expect(todo).toHaveLength(3);
    expect(JSON.parse(/\{.*\}/.exec(todo[0] ?? '')?.[0] ?? '')).toEqual({
      statusUpdateURL: webhookUrl,
      menuUpdateURL: webhookUrl,
      snoozeUnsnoozeURL: webhookUrl,
      busyModeURL: webhookUrl,
      updatePrepTimeURL: webhookUrl,
      courierUpdateURL: webhookUrl,
      paymentUpdateURL: webhookUrl,
    });
    // On staging the link's id is the secret of webhooks.
    for (const secret of [LINK, 'hidden']) expect(todo.join()).not.toContain(secret);
  });

  it('warns if hmacSecret is still the channelLinkId', async () => {
    const { todo } = await connectWith({ ...settings, hmacSecret: LINK });
    expect(todo).toHaveLength(4);
    expect(todo[3]).toMatch(/^hmacSecret is still the channelLinkId/);
  });

  function connectWith(settings: Settings) {
    const context = { ...contextAt(NOW, settings), webhookUrl, locations: 1 };
    return deliverect.connect?.(context) ?? expect.unreachable('cannot connect');
  }
});

describe('the simulator', () => {
  const STREET = { street: 'Lindenstraße', streetNumber: '14', postalCode: '10969', city: 'Berlin', country: 'DE' };

  it('accepts the sample that Deliverect publishes, and refuses the sample with a wrong sum', () => {
    const sate = { plu: 'P-SATE', name: 'Chicken Sate', price: 450, quantity: 1, remark: 'well done' };
    const rice = { plu: 'RICE-01', name: 'White Rice', price: 450, quantity: 1 };
    const sauce = { plu: 'SAUCE-01', name: 'Sate Sauce', price: 50, quantity: 2, subItems: [] };
    const discount = {
      type: 'order_flat_off',
      provider: 'channel',
      name: 'Test',
      referenceId: 1,
      value: 100,
      amount: 100,
    };
    const now = '2026-01-31T18:30:00.000000Z';
    const sample = {
      channelOrderId: 'TEST0628',
      channelOrderDisplayId: 'T628',
      orderType: 1,
      deliveryIsAsap: true,
      pickupTime: now,
      deliveryTime: now,
      placedTime: now,
      courier: 'restaurant',
      decimalDigits: 2,
      payment: { amount: 1800, type: 0, due: 0 },
      taxes: [],
      items: [{ ...sate, subItems: [{ ...rice, subItems: [sauce] }] }],
      deliveryCost: 300,
      serviceCharge: 400,
      tip: 200,
      discountTotal: -100,
      discounts: [discount],
    };
    expect(checkDeliverectOrder(sample)).toBeUndefined();
    for (const wrong of [{ tip: 0 }, { discountTotal: -200 }, { discounts: [{ ...discount, amount: 200 }] }]) {
      expect(checkDeliverectOrder({ ...sample, ...wrong }), JSON.stringify(wrong)).toBeDefined();
    }
  });

  it.each([
    ['channelOrderId', { channelOrderId: undefined }],
    ['channelOrderDisplayId', { channelOrderDisplayId: 'x'.repeat(13) }],
    ['orderType', { orderType: '1' }],
    ['deliveryIsAsap', { deliveryIsAsap: undefined }],
    ['pickupTime', { pickupTime: '2026-01-31T18:30:00+01:00' }],
    ['courier', { courier: undefined }],
    ['decimalDigits', { decimalDigits: undefined }],
    ['items', { items: [] }],
    ['items', { items: [{ plu: 'P-1', name: 'Pizza', price: 9.5, quantity: 1 }] }],
    ['items', { items: [{ plu: 'P-1', name: 'Pizza', quantity: 1 }] }],
    ['deliveryAddress', { orderType: 2, deliveryAddress: undefined }],
    ['deliveryAddress', { deliveryAddress: { ...STREET, streetNumber: undefined } }],
    ['deliveryAddress', { deliveryAddress: { ...STREET, postalCode: undefined } }],
    ['deliveryTime', { orderType: 2, deliveryIsAsap: false, deliveryTime: undefined }],
    ['tip', { tip: 1.5 }],
  ])('names the field %s if it refuses an order with %j', (field, part) => {
    const body = { ...written(orderOf({ type: 'delivery' })), ...part };
    expect(Object.keys(checkDeliverectOrder(body)?.orderFieldsErrors ?? {})).toEqual([field]);
  });

  it('refuses a payment without amount', () => {
    const body = { ...written(orderOf()), payment: { type: 0 } };
    expect(checkDeliverectOrder(body)?.orderPaymentErrors).toEqual({ amount: 'Missing from the payload.' });
  });
});

const PLACE = { line1: 'Lindenstraße 14', postalCode: '10969', city: 'Berlin', country: 'DE' };

/** What createOrder throws for a delivery there without having asked Deliverect, and `checkOrder` likewise. */
async function unsent(destination: object): Promise<Error> {
  const order = { ...orderOf(), fulfillment: { type: 'delivery', destination } } as KitchenOrder;
  const context = contextAt(NOW, settings, { fetch: () => expect.unreachable('Deliverect was asked') });
  const error = await rejectionOf(deliverect.createOrder(order, context));
  expect(errorOf(() => deliverect.checkOrder?.(order))).toEqual(error);
  return error;
}

const anItem = {
  serviceItemId: 'pizza',
  name: 'Pizza',
  quantity: 1,
  unitPrice: 900,
  ageRestricted: false,
  modifiers: [],
};

function orderOf(options: SampleOptions = {}): KitchenOrder {
  return KitchenOrder.parse({ callOutCode: 'K472', ...sampleOrder(options) });
}

/** As it travels. */
function written(order: KitchenOrder, overrides: Partial<Settings> = {}): Record<string, unknown> {
  return JSON.parse(JSON.stringify(writeOrder(order, { ...settings, ...overrides }, NOW))) as Record<string, unknown>;
}
