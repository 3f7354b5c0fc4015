import { createHmac, randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { GiveUp, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../src/core/domain/order.ts';
import type { PosContext, Webhook } from '../../src/core/domain/provider.ts';
import { perhapsTaken } from '../../src/core/domain/classify-error.ts';
import { hubrise } from '../../src/providers/hubrise/index.ts';
import { Settings } from '../../src/providers/hubrise/payloads.ts';
import { writeMoney, writeOrder } from '../../src/providers/hubrise/write-order.ts';
import { startHubrise, type HubriseSimulator } from '../../world/pos/hubrise/start-hubrise.ts';
import { readBody, sendJson, serveHttp } from '../../world/network/serve-http.ts';
import { errorOf, providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { burgerWith, contextAt, expectError, first, orderOf, stopAtEnd, webhookAt } from './stage-parts.ts';

const NOW = new Date('2026-01-31T18:30:15Z');
const SECRET = 'client-secret';
const WEBHOOK_URL = 'https://expediter.example.com/webhook/hubrise/club-1?token=t-1';
const TAKEN = { id: '5dpm9', status: 'new' };

providerContract(hubrise, {
  start: startHubrise,
  wrongSettings: {
    accessToken: [undefined, '', ' token', 7],
    // A code needs the client, and attached customers their list.
    clientId: ['', 7],
    authorizationCode: ['', ' code'],
    customers: ['yes', true],
    customerListId: [''],
    oauthUrl: ['manager.hubrise.com', 'ftp://manager.hubrise.com'],
    pauseMinutes: [0, 1.5, 1441, '240'],
    clientSecret: [undefined, '', 'secret\n', null],
    baseUrl: ['api.hubrise.com/v1', 'ftp://api.hubrise.com/v1', 'https://user:word@api.hubrise.com/v1'],
    itemMap: [
      [],
      { cheddar: '' },
      { cheddar: {} },
      { cheddar: { ref: 'CHED', optionListName: '' } },
      { cheddar: { ref: 'CHED', list: 'Extras' } },
    ],
  },
  secretSettings: ['accessToken', 'clientSecret'],
  provenSettings: ['accessToken'],
  identity: ['accessToken'],
  lacks: ['nesting'],
  refusal: (words) => {
    const errors = [{ field: 'customer.email', message: words }];
    return { status: 422, body: { message: words, errors, error_type: 'unprocessable_entity' } };
  },
  kitchen: ['open', 'busy', 'closed'],
  statuses: {
    new: null,
    received: 'received',
    accepted: 'received',
    in_preparation: 'in_progress',
    awaiting_collection: 'ready',
    awaiting_shipment: 'ready',
    in_delivery: 'en_route',
    completed: 'completed',
    rejected: 'failed',
    cancelled: 'cancelled',
    delivery_failed: 'failed',
    // Of a courier's delivery, within the order's update:
    pending: null,
    pickup_enroute: null,
    pickup_approaching: null,
    pickup_waiting: null,
    dropoff_enroute: 'en_route',
    dropoff_approaching: 'en_route',
    dropoff_waiting: 'en_route',
    delivered: 'completed',
  },
  unwritable: ['KWD'],
  cancels: { answer: 'cancelled', tooLate: 'awaiting_collection' },
  // A failed delivery is no rejection: the food was made.
  rejections: {
    rejected: { by: 'rejected', reasonCode: 'technical' },
    'rejected, for a reason': { by: 'rejected An item is out of stock.', reasonCode: 'item_unavailable' },
    'rejected, for another': { by: 'rejected The restaurant is closed', reasonCode: 'closed' },
    cancelled: { by: 'cancelled', reasonCode: 'restaurant_cancelled' },
    ...Object.fromEntries(
      [400, 415, 422].map((status) => [
        status,
        { by: { status, body: { error_type: 'unprocessable_entity' } }, reasonCode: 'technical' },
      ]),
    ),
  },
  estimates: { native: 'accepted', pickup: ['estimatedReadyAt'], delivery: ['estimatedDeliveryAt'] },
});

afterEach(() => void vi.useRealTimers());

describe('settings', () => {
  it('default to HubRise’s own host', () => {
    expect(settingsOf()).toMatchObject({ baseUrl: 'https://api.hubrise.com/v1', itemMap: {} });
  });
});

describe('incomplete settings', () => {
  it.each([
    [{ customers: 'attach' }, 'customerListId'],
    [{ authorizationCode: 'c-1' }, 'clientId'],
    [{ accessToken: undefined }, 'accessToken'],
  ])('are refused with the name of the missing field: %j', (change, field) => {
    const result = Settings.safeParse({ accessToken: 'token', clientSecret: SECRET, ...change });
    expect(result.error?.issues.map(({ path }) => path[0])).toEqual([field]);
  });
});

describe('the customer of an order', () => {
  const attached = async () => {
    const { pos, context } = await stage();
    return { pos, context: attaching(context, pos.list.listId) };
  };
  const attaching = (context: PosContext<Settings>, customerListId: string): PosContext<Settings> => {
    return { ...context, settings: { ...context.settings, customers: 'attach', customerListId } };
  };
  const customerOf = async (pos: HubriseSimulator, nth: number): Promise<unknown> =>
    ((await list(pos)) as { customer: unknown }[])[nth]?.customer;
  const destination = (line1: string, more: object = {}) => ({
    type: 'delivery' as const,
    destination: { line1, ...more },
  });

  it('is created once for a member and updated by each order', async () => {
    const { pos, context } = await attached();
    const [one, other] = [
      orderOf({ fulfillment: destination('Lindenstraße 14', { line2: '3. OG', instructions: 'Ring twice' }) }),
      orderOf({ fulfillment: destination('Domplatz 1', { city: 'Köln' }) }),
    ];
    for (const order of [one, one, other]) await hubrise.createOrder(order, context);
    expect(pos.refusals).toEqual([]);
    expect(pos.list.customers).toHaveLength(1);
    expect(pos.list.customers[0]).toMatchObject({
      private_ref: one.member.id,
      first_name: 'Ada',
      email: 'ada@example.com',
    });
    expect(await customerOf(pos, 0)).toMatchObject({
      address_1: 'Lindenstraße 14',
      address_2: '3. OG',
      delivery_notes: 'Ring twice',
    });
    // Of the address before nothing is left.
    expect(await customerOf(pos, 2)).toMatchObject({
      address_1: 'Domplatz 1',
      address_2: null,
      city: 'Köln',
      delivery_notes: null,
    });
  });

  it("is not another member's customer, even if HubRise ignores the filter", async () => {
    const { pos, context } = await attached();
    await hubrise.createOrder(orderOf(), context);
    await hubrise.createOrder(orderOf({ member: { id: 'm-2&email=*', name: 'Grace Hopper' } }), context);
    expect(pos.list.customers.map((each) => each.private_ref)).toEqual([orderOf().member.id, 'm-2&email=*']);
    const { context: loose, requests } = await hubriseThat(({ method }) =>
      method === 'GET'
        ? { body: [{ id: 'c-1', private_ref: 'm-9' }] }
        : { status: 422, body: { error_type: 'unprocessable_entity' } },
    );
    await expect(hubrise.createOrder(orderOf(), attaching(loose, 'l-1'))).rejects.toBeInstanceOf(GiveUp);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST']);
  });

  it('is looked up in the list only if another process created it, because calls for the list are limited', async () => {
    const { pos, context } = await attached();
    const memberOf = (nth: number) => ({ id: `m-${nth}`, name: 'Ada Lovelace' });
    // Of twelve members each, twice: their ids are kept.
    for (const nth of [...Array(12).keys(), ...Array(12).keys()]) {
      await hubrise.createOrder(orderOf({ member: memberOf(nth) }), context);
    }
    expect(pos.refusals).toEqual([]);

    const path = `/${pos.list.listId}/customers`;
    for (let nth = 20; nth < 31; nth += 1) {
      pos.list.answer('POST', path, new URLSearchParams(), { private_ref: `m-${nth}` });
    }
    for (let nth = 20; nth < 30; nth += 1) await hubrise.createOrder(orderOf({ member: memberOf(nth) }), context);
    const eleventh = hubrise.createOrder(orderOf({ member: memberOf(30) }), context);
    await expect(eleventh).rejects.toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: expect.any(Number) });
    await hubrise.createOrder(orderOf({ member: memberOf(0) }), context);
    expect(pos.requests, 'all but the eleventh, and no connection waits').toBe(35);
  });

  it('is created once for two simultaneous orders of a member', async () => {
    const { pos, context } = await attached();
    await Promise.all([orderOf(), orderOf()].map((order) => hubrise.createOrder(order, context)));
    expect(pos.list.customers).toHaveLength(1);
    expect(pos.tickets).toHaveLength(2);
  });

  it('is a new customer if HubRise anonymised the old one', async () => {
    const { pos, context } = await attached();
    await hubrise.createOrder(orderOf(), context);
    pos.list.anonymise(first(pos.list.customers));
    await hubrise.createOrder(orderOf(), context);
    expect(pos.list.customers).toMatchObject([{ private_ref: null, first_name: null }, { first_name: 'Ada' }]);
    expect(await customerOf(pos, 1)).toMatchObject({ first_name: 'Ada' });
  });

  it.each([
    ['GET', 500, { name: 'TryAgain', sent: false }],
    ['POST', 502, { name: 'TryAgain', sent: false }],
    ['GET', 429, { name: 'TryAgain', sent: false, httpStatus: 429 }],
    ['GET', 404, { name: 'NeedsOperator', httpStatus: 404 }],
    ['POST', 422, { name: 'NeedsOperator', httpStatus: 422 }],
  ])(
    'stops the order before it is sent if the customer cannot be read or stored: %s answered %i',
    async (method, status, error) => {
      const { pos, context } = await attached();
      // A 422 says that the customer is in the list.
      pos.failCustomers = (call) => (call.startsWith(method) ? status : 422);
      const failure = await rejectionOf(hubrise.createOrder(orderOf(), context));
      expect(failure).toMatchObject(error);
      expect(perhapsTaken(failure)).toBe(false);
      expect(failure.message).not.toMatch(/Ada|example/);
      expect(pos.requests).toBe(0);
    },
  );

  it('is not created if an item of the order has no price', async () => {
    const { pos, context } = await attached();
    const { unitPrice: _left, ...unpriced } = burgerWith({});
    await expect(hubrise.createOrder(orderOf({ items: [unpriced] }), context)).rejects.toBeInstanceOf(GiveUp);
    expect(pos.list.customers).toEqual([]);
  });

  it('must be in a list of the connection: check fails for another customerListId', async () => {
    const { context } = await attached();
    await hubrise.check?.(context);
    await expect(hubrise.check?.(attaching(context, 'another'))).rejects.toThrow(/customerListId/);
  });
});

describe('a connection by an authorization code', () => {
  const page = (todo: readonly string[]): string => /https?:\/\/\S+/.exec(todo[0] ?? '')?.[0] ?? '';
  const begin = async (more: object = {}) => {
    const { pos, context } = await stage();
    const { clientSecret, baseUrl, oauthUrl } = context.settings;
    const settings = Settings.parse({ clientId: pos.oauth.clientId, clientSecret, baseUrl, oauthUrl, ...more });
    return { pos, context: { ...context, settings }, token: String(pos.settings['accessToken']) };
  };
  /** With the code that the owner's consent brought. */
  const authorised = async (more: object = {}) => {
    const { pos, context, token } = await begin(more);
    const authorizationCode = pos.oauth.authorise(page((await connect(context)).todo));
    const settings = { ...context.settings, authorizationCode };
    return { pos, context: { ...context, settings }, token, authorizationCode };
  };

  it.each([
    ['guest', 'location[orders.write]', {}],
    ['attach', 'location[orders.write,customer_list.write]', { customerListId: expect.any(String) as string }],
  ] as const)(
    'requests the scope for customers: %s (%s), and gets a token for the code',
    async (customers, scope, more) => {
      const { pos, context, token } = await begin({ customers });
      const asked = await connect(context);
      expect(asked).toMatchObject({ done: [], unused: true });
      expect(new URL(page(asked.todo)).searchParams.get('scope')).toBe(scope);
      expect(asked.todo.join()).not.toContain(context.settings.clientSecret);

      const authorizationCode = pos.oauth.authorise(page(asked.todo));
      const connected = await connect({ ...context, settings: { ...context.settings, authorizationCode } });
      expect(connected.settings).toEqual({ accessToken: token, authorizationCode: undefined, ...more });
      expect(pos.callback.url).toBe(WEBHOOK_URL);
      expect([...connected.done, ...connected.todo].join()).not.toContain(token);
      const settings = Settings.parse({ ...context.settings, ...connected.settings });
      await hubrise.check?.({ ...context, settings });
      await hubrise.createOrder(orderOf(), { ...context, settings });
      expect(pos.list.customers).toHaveLength(customers === 'attach' ? 1 : 0);
      expect(pos.refusals).toEqual([]);
    },
  );

  it('fails for attached customers if it was made for guests, and the error names the missing scope', async () => {
    const { pos, context, token } = await authorised();
    await connect(context);
    const { listId: customerListId } = pos.list;
    const settings = { ...context.settings, accessToken: token, customers: 'attach', customerListId } as Settings;
    await expect(hubrise.createOrder(orderOf(), { ...context, settings })).rejects.toThrow(/customer_list\.write/);
  });

  it.each([
    ['a code that was used', {}, /authorizationCode may be used already.*from http/],
    ['another client’s secret', { clientSecret: 'another' }, /check clientId and clientSecret/],
  ])('fails with NeedsOperator for %s', async (_name, change, words) => {
    const { context, authorizationCode } = await authorised();
    if (!('clientSecret' in change)) await connect(context);
    const error = await rejectionOf(connect({ ...context, settings: { ...context.settings, ...change } }));
    expectError(error, NeedsOperator, words);
    expect(error.message).not.toContain(authorizationCode);
  });

  it('returns the token even if the callback could not be set', async () => {
    const { pos, context, token } = await authorised();
    pos.takesButAnswers = 500;
    const { settings, todo, unused } = await connect(context);
    expect(settings).toEqual({ accessToken: token, authorizationCode: undefined });
    expect(todo[0]).toMatch(/^The rest failed: .*500\. Run expediter provider connect again\.$/);
    expect(unused).toBe(false);
  });

  it('that does not exist yet holds orders with NeedsOperator and reconnect_needed', async () => {
    const { context } = await begin();
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toMatchObject({
      name: 'NeedsOperator',
      cause: { code: 'reconnect_needed' },
    });
  });
});

describe('an order for HubRise', () => {
  it('has all documented fields for a delivery', () => {
    const order = orderOf({ type: 'delivery', serviceOrderId: 'order-1', callOutCode: 'K472' });
    expect(written(order)).toEqual({
      status: 'new',
      ref: 'order-1',
      private_ref: 'order-1',
      service_type: 'delivery',
      collection_code: 'K472',
      customer_notes: 'AGE CHECK: Pale Ale 0.33 l\nTable by the terrace, if there is one',
      items: [
        {
          product_name: 'Classic Burger',
          sku_ref: 'burger-classic',
          price: '12.90 EUR',
          quantity: '2',
          customer_notes: 'One of them well done',
          options: [
            { option_list_name: 'Options', name: 'Extra cheddar', ref: 'cheddar', price: '1.50 EUR', quantity: 1 },
            { option_list_name: 'Options', name: 'No onions', ref: 'no-onions', quantity: 1 },
          ],
        },
        {
          product_name: 'Sweet Potato Fries',
          sku_ref: 'fries-sweet-potato',
          price: '4.50 EUR',
          quantity: '1',
          options: [],
        },
        { product_name: 'Pale Ale 0.33 l', sku_ref: 'beer-pale-ale', price: '4.80 EUR', quantity: '1', options: [] },
      ],
      charges: [
        { name: 'Delivery fee', ref: 'DELIVERY_FEE', price: '3.50 EUR' },
        { name: 'Tip', ref: 'TIP', price: '3.00 EUR' },
        { name: 'Tax', ref: 'TAX', price: '7.24 EUR' },
      ],
      discounts: [],
      payments: [{ name: 'Paid online', ref: 'ONLINE', amount: '51.84 EUR' }],
      customer: {
        first_name: 'Ada',
        last_name: 'Lovelace',
        email: 'ada@example.com',
        phone: '+493012345678',
        address_1: 'Lindenstraße 14',
        address_2: '3. OG',
        postal_code: '10969',
        city: 'Berlin',
        country: 'DE',
        latitude: '52.5044000',
        longitude: '13.3946000',
        delivery_notes: 'Ring twice',
      },
    });
  });

  it('is a collection without an address if it is a pickup', () => {
    const body = written(orderOf());
    expect(body).toMatchObject({ service_type: 'collection' });
    expect(body.customer).toEqual({
      first_name: 'Ada',
      last_name: 'Lovelace',
      email: 'ada@example.com',
      phone: '+493012345678',
    });
  });

  it('has each discount with its name and a ref code, which itemMap can change', () => {
    const { money } = orderOf();
    const discounted = { ...money, discount: 561, total: money.total - 561 };
    const discounts = [
      { name: 'Club: 5 off', amount: 500 },
      { name: 'Free dip', amount: 0 },
      { name: 'Birthday', amount: 61 },
    ];
    expect(written(orderOf({ money: discounted, discounts }), { DISCOUNT: 'DSC' })).toMatchObject({
      discounts: [
        { name: 'Club: 5 off', ref: 'DSC', price_off: '5.00 EUR' },
        { name: 'Birthday', ref: 'DSC', price_off: '0.61 EUR' },
      ],
      charges: [{ ref: 'TIP' }, { ref: 'TAX' }],
    });
    expect(written(orderOf({ money: discounted }))).toMatchObject({
      discounts: [{ name: 'Discount', ref: 'DISCOUNT', price_off: '5.61 EUR' }],
    });
  });

  it('has no charge for a tax that is included in the prices', () => {
    const { money } = orderOf();
    const order = orderOf({ money: { ...money, total: money.total - money.tax } });
    expect(written(order).charges).toEqual([{ name: 'Tip', ref: 'TIP', price: '3.00 EUR' }]);
  });

  it('has each fee and each tax on top as a charge with its name', () => {
    const { money } = orderOf();
    const fees = [
      { name: 'Bag', amount: 20 },
      { name: 'Minimum order', amount: 80 },
    ];
    const taxes = [
      { name: 'VAT 7 %', amount: 324, rate: 7 },
      { name: 'VAT 19 %', amount: 400, rate: 19 },
    ];
    const order = orderOf({ money: { ...money, fee: 100, total: money.total + 100 }, fees, taxes });
    const charges = [
      { name: 'Bag', ref: 'SERVICE_FEE', price: '0.20 EUR' },
      { name: 'Minimum order', ref: 'SERVICE_FEE', price: '0.80 EUR' },
      { name: 'Tip', ref: 'TIP', price: '3.00 EUR' },
    ];
    expect(written(order).charges).toEqual([
      ...charges,
      { name: 'VAT 7 %', ref: 'TAX', price: '3.24 EUR' },
      { name: 'VAT 19 %', ref: 'TAX', price: '4.00 EUR' },
    ]);
    order.money.pricesIncludeTax = true;
    expect(written(order).charges).toEqual(charges);
  });

  it('has the fee of a pickup as a service fee', () => {
    const { money } = orderOf();
    expect(written(orderOf({ money: { ...money, fee: 100 } })).charges[0]).toEqual({
      name: 'Service fee',
      ref: 'SERVICE_FEE',
      price: '1.00 EUR',
    });
  });

  it('has three identical options as three separate objects', () => {
    const body = written(withModifier({ serviceModifierId: 'cheddar', name: 'Cheddar', quantity: 3, unitPrice: 150 }));
    const option = { option_list_name: 'Options', name: 'Cheddar', ref: 'cheddar', price: '1.50 EUR', quantity: 1 };
    expect(body.items[0]?.options).toEqual([option, option, option]);
  });

  it('has one object with a quantity for 9999 identical options', () => {
    const body = written(withModifier({ serviceModifierId: 'cheddar', name: 'Cheddar', quantity: 9999 }));
    expect(body.items[0]?.options).toEqual([
      { option_list_name: 'Options', name: 'Cheddar', ref: 'cheddar', quantity: 9999 },
    ]);
  });

  it('uses the ref codes and option lists of itemMap', () => {
    const itemMap = {
      'burger-classic': 'BRG',
      cheddar: { ref: 'CHED', optionListName: 'Extras' },
      'no-onions': { ref: 'NO-ON' },
      TIP: 'TIPS',
      ONLINE: 'CB',
    };
    const body = written(orderOf(), itemMap);
    expect(body.items[0]).toMatchObject({
      sku_ref: 'BRG',
      options: [
        { ref: 'CHED', option_list_name: 'Extras' },
        { ref: 'NO-ON', option_list_name: 'Options' },
      ],
    });
    expect(body.charges[0]).toMatchObject({ ref: 'TIPS' });
    expect(body.payments[0]).toMatchObject({ ref: 'CB' });
  });

  it("uses the item's id unchanged if only the prototype of itemMap has it", () => {
    const items = [burgerWith({ serviceItemId: 'constructor' })];
    expect(written(orderOf({ items })).items[0]).toMatchObject({ sku_ref: 'constructor' });
  });

  it.each([
    ['2026-01-31T19:45:00+01:00', '2026-01-31T19:45:00+01:00'],
    ['2026-01-31T18:31:15Z', '2026-01-31T18:31:15Z'],
    ['2026-01-31T18:31:14.999Z', 'none'],
    ['2026-01-31T18:30:15Z', 'none'],
    ['2026-01-31T19:00:00+01:00', 'none'],
  ])(
    'has an expected_time only if it is requested for at least a minute ahead: for %s it has %s',
    (requestedAt, expected) => {
      const { expected_time: time = 'none' } = written(orderOf({ fulfillment: { type: 'pickup', requestedAt } }));
      expect(time).toBe(expected);
    },
  );

  it('has names cut to 255 characters and notes cut to 2000, with a mark at the cut', () => {
    const destination = { line1: 'z'.repeat(300), instructions: 'i'.repeat(3000) };
    const body = written(
      orderOf({
        items: [burgerWith({ name: 'x'.repeat(300), notes: 'y'.repeat(3000) })],
        fulfillment: { type: 'delivery', destination },
        notes: 'n'.repeat(3000),
      }),
    );
    for (const [text, length] of [
      [body.items[0]?.product_name, 255],
      [body.items[0]?.customer_notes, 2000],
      [body.customer['address_1'], 255],
      [body.customer['delivery_notes'], 2000],
      [body.customer_notes, 2000],
    ] as const) {
      expect(text).toHaveLength(length);
      expect(text).toMatch(/ \[…\]$/);
    }
  });

  it.each([
    ['de', 'the code DE', 'DE'],
    ['Germany', 'no code', undefined],
  ])('names the country %s with %s, because only codes of two letters are sent', (country, _how, code) => {
    const destination = { line1: 'Lindenstraße 14', country };
    expect(written(orderOf({ fulfillment: { type: 'delivery', destination } })).customer['country']).toBe(code);
  });

  it("has only a first name if the member's name is one word", () => {
    const body = written(orderOf({ member: { id: 'm-1', name: 'Ada' } }));
    expect(body.customer).toEqual({ first_name: 'Ada' });
  });

  it('fails with GiveUp if an item has no price', () => {
    const { unitPrice: _left, ...unpriced } = burgerWith({});
    const order = orderOf({ items: [burgerWith({}), unpriced] });
    expect(() => written(order)).toThrow('items.1.unitPrice is missing: HubRise requires the price of every item');
    expect(() => written(order)).toThrow(GiveUp);
    expect(() => hubrise.checkOrder?.(order)).toThrow('items.1.unitPrice is missing');
  });
});

describe('money', () => {
  it.each([
    [900, 'EUR', '9.00 EUR'],
    [-5, 'GBP', '-0.05 GBP'],
    [0, 'EUR', '0.00 EUR'],
    [900, 'JPY', '900.00 JPY'],
    [1290, 'KWD', '1.29 KWD'],
    [5180, 'KWD', '5.18 KWD'],
    [10_000, 'CLF', '1.00 CLF'],
  ])('%i minor units of %s become %s', (minorUnits, currency, text) => {
    expect(writeMoney(minorUnits, currency)).toBe(text);
  });

  it.each([
    [1295, 'KWD'],
    [-1, 'KWD'],
    [10, 'CLF'],
  ])('that needs more than two decimals is refused with GiveUp: %i %s', (minorUnits, currency) => {
    expect(() => writeMoney(minorUnits, currency)).toThrow(GiveUp);
    expect(() => writeMoney(minorUnits, currency)).toThrow(/^an amount in \w+ needs [34] decimals/);
  });

  it('is accepted in KWD if every amount needs only two decimals', async () => {
    const { pos, context } = await stage('KWD');
    const { money } = orderOf();
    const order = orderOf({ money: { ...money, tax: 720, total: money.total - 4, currency: 'KWD' } });
    await hubrise.createOrder(order, context);
    expect(pos.tickets.map((ticket) => ticket.paid)).toEqual([order.money.total]);
  });
});

describe('createOrder', () => {
  it('sends the token and JSON to the connection’s own location', async () => {
    const { requests, context } = await hubriseThat(() => ({ body: TAKEN }));
    expect(await hubrise.createOrder(orderOf(), context)).toEqual({ providerOrderId: '5dpm9' });
    expect(requests).toEqual([
      expect.objectContaining({
        method: 'POST',
        url: '/v1/location/orders',
        headers: expect.objectContaining({
          'x-access-token': context.settings.accessToken,
          'content-type': 'application/json',
        }),
      }),
    ]);
  });

  it.each([[{}], ['ok'], [{ id: 7 }]])(
    'returns no POS id after 200 with %j, and counts the order as accepted',
    async (body) => {
      const { context } = await hubriseThat(() => ({ body }));
      expect(await hubrise.createOrder(orderOf(), context)).toEqual({});
    },
  );

  it('throws GiveUp with the field names and no values after 422', async () => {
    const errors = [
      { field: 'customer.phone', message: "'+49301' is no phone number" },
      { field: 'Ada Lovelace', message: 'no' },
    ];
    const body = { message: 'Validation failed', errors, error_type: 'unprocessable_entity' };
    const { context } = await hubriseThat(() => ({ status: 422, body }));
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toMatchObject({
      name: 'GiveUp',
      httpStatus: 422,
      message: 'HubRise refused the order with 422 unprocessable_entity (customer.phone)',
      reason: 'The restaurant could not take this order.',
    });
  });

  it('throws NeedsOperator after 404', async () => {
    const { context } = await hubriseThat(() => ({ status: 404, body: { error_type: 'routing_error' } }));
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toBeInstanceOf(NeedsOperator);
  });

  it('fails if the currency is not the account’s', async () => {
    const { pos, context } = await stage('GBP');
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toThrow(/422 unprocessable_entity \(items\.0\.price/);
    expect(pos.tickets).toEqual([]);
  });

  it.each([500, 501, 503])('throws TryAgain after %i, because HubRise may have the order', async (status) => {
    const { context } = await hubriseThat(() => ({ status, headers: { 'retry-after': '7' } }));
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toSatisfy((error) => perhapsTaken(error));
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toMatchObject({
      name: 'TryAgain',
      retryAfterMs: 7000,
      httpStatus: status,
    });
  });

  it('throws TryAgain until the next full minute after a 429 without Retry-After', async () => {
    const { context, requests } = await hubriseThat(() => ({ status: 429, body: { error_type: 'too_many_requests' } }));
    const expected = { name: 'TryAgain', sent: false, retryAfterMs: 45_000 };
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toMatchObject(expected);
    await expect(hubrise.createOrder(orderOf(), context)).rejects.toMatchObject(expected);
    expect(requests).toHaveLength(1);
  });

  it('sends at most 500 requests a minute for each connection', async () => {
    const { context, requests } = await hubriseThat(() => ({ body: TAKEN }));
    const order = orderOf({ items: orderOf().items.slice(1) });
    for (let nth = 0; nth < 500; nth += 1) await hubrise.createOrder(order, context);
    await expect(hubrise.createOrder(order, context)).rejects.toMatchObject({
      name: 'TryAgain',
      sent: false,
      retryAfterMs: 45_000,
    });
    expect(requests).toHaveLength(500);
    const other = { ...context, settings: { ...context.settings, accessToken: randomUUID() } };
    await hubrise.createOrder(order, other);
    expect(requests).toHaveLength(501);
  });
});

describe('findOrder', () => {
  it('finds an order by our id, with any characters', async () => {
    const { pos, context } = await stage();
    const order = orderOf({ serviceOrderId: '注文 1&status=new#+%' });
    const ref = await hubrise.createOrder(order, context);
    await hubrise.createOrder(orderOf(), context);
    expect(await hubrise.findOrder?.(order.serviceOrderId, context)).toEqual(ref);
    expect(pos.refusals).toEqual([]);
  });

  it('returns undefined if HubRise answers with other orders', async () => {
    const { context } = await hubriseThat(() => ({
      body: [
        { id: 'x', private_ref: null },
        { id: 'y', private_ref: 'o-2' },
      ],
    }));
    expect(await hubrise.findOrder?.('o-1', context)).toBeUndefined();
  });

  it.each([
    ['is not a list', { body: {} }],
    ['cannot be read', { body: '<html>' }],
    ['has more pages', { body: [{ id: 'y', private_ref: 'o-2' }], headers: { 'x-cursor-next': 'cjkl44' } }],
  ])('throws TryAgain if the answer %s', async (_name, answer) => {
    const { context } = await hubriseThat(() => answer);
    await expect(hubrise.findOrder?.('o-1', context)).rejects.toMatchObject({ name: 'TryAgain', sent: false });
  });

  it.each([400, 404, 422])('throws NeedsOperator after %i', async (status) => {
    const { context } = await hubriseThat(() => ({ status, body: {} }));
    await expect(hubrise.findOrder?.('o-1', context)).rejects.toBeInstanceOf(NeedsOperator);
  });

  it('throws TryAgain after ten calls in a minute, and createOrder still works', async () => {
    const { pos, context } = await stage();
    for (let nth = 0; nth < 10; nth += 1) await hubrise.findOrder?.('o-1', context);
    await expect(hubrise.findOrder?.('o-1', context)).rejects.toMatchObject({ name: 'TryAgain', retryAfterMs: 45_000 });
    await hubrise.createOrder(orderOf(), context);
    expect(pos.refusals).toEqual([]);
    const later = { ...context, now: new Date(NOW.getTime() + 45_000) };
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
    expect(await hubrise.findOrder?.('o-1', later)).toBeUndefined();
    expect(pos.refusals).toEqual([]);
  });
});

describe('cancelOrder', () => {
  const ID = { providerOrderId: '5dpm9' };
  const cancel = (context: PosContext<Settings>, ref: OrderRef = ID) =>
    hubrise.cancelOrder?.(ref, orderOf({ serviceOrderId: 'o-1' }), context) ?? expect.unreachable();

  /** An order in this status, which becomes what it is told to. */
  const orderIn = (status: string | null) =>
    hubriseThat(({ method, url }) => {
      const order = { id: '5dpm9', private_ref: 'o-1', status: method === 'PATCH' ? 'cancelled' : status };
      return { body: url.includes('?') ? [order] : order };
    });

  it.each(['new', 'received', 'accepted', 'in_preparation', null])('cancels an order in status %j', async (status) => {
    const { requests, context } = await orderIn(status);
    expect(await cancel(context)).toBe('cancelled');
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /v1/location/orders/5dpm9',
      'PATCH /v1/location/orders/5dpm9',
    ]);
  });

  it.each(['awaiting_shipment', 'awaiting_collection', 'in_delivery', 'completed', 'delivery_failed'])(
    'throws GiveUp in status %s without changing the order',
    async (status) => {
      const { requests, context } = await orderIn(status);
      await expect(cancel(context)).rejects.toMatchObject({ name: 'GiveUp', reasonCode: 'other' });
      expect(requests).toHaveLength(1);
    },
  );

  it.each([
    ['cancelled', 'cancelled'],
    ['rejected', 'absent'],
  ])('sends no change if the order is already %s', async (status, answer) => {
    const { requests, context } = await orderIn(status);
    expect(await cancel(context)).toBe(answer);
    expect(requests).toHaveLength(1);
  });

  it('looks the order up by our id if HubRise’s id is unknown', async () => {
    const { requests, context } = await orderIn('new');
    expect(await cancel(context, {})).toBe('cancelled');
    expect(requests[0]?.url).toBe('/v1/location/orders?private_ref=o-1');
  });

  it('throws TryAgain if HubRise answers with a status other than cancelled', async () => {
    const { context } = await hubriseThat(() => ({ body: { id: '5dpm9', status: 'accepted' } }));
    await expect(cancel(context)).rejects.toMatchObject({ name: 'TryAgain', sent: true });
  });

  it('returns absent if the order disappeared between the two requests', async () => {
    const { context } = await hubriseThat(({ method }) =>
      method === 'GET' ? { body: { id: '5dpm9', status: 'new' } } : { status: 404 },
    );
    expect(await cancel(context)).toBe('absent');
  });
});

describe('readStatus', () => {
  it('reads the status of the order and of its delivery, with both ids and without a time', async () => {
    const { pos, context } = await stage();
    const order = orderOf({ type: 'delivery' });
    const ref = await hubrise.createOrder(order, context);
    const ticket = first(pos.tickets);
    pos.become?.(ticket, 'in_delivery');
    pos.become?.(ticket, 'dropoff_waiting');
    const ids = { ...ref, serviceOrderId: order.serviceOrderId };
    expect(await hubrise.readStatus?.(ref, order, context)).toEqual([
      { status: 'en_route', nativeStatus: 'in_delivery', ...ids },
      { status: 'en_route', nativeStatus: 'dropoff_waiting', ...ids },
    ]);
    expect(pos.reads).toBe(1);
    expect(pos.refusals).toEqual([]);
  });

  it('looks the order up by our id if HubRise’s id is unknown', async () => {
    const { pos, context } = await stage();
    const order = orderOf();
    await hubrise.createOrder(order, context);
    pos.become?.(first(pos.tickets), 'accepted');
    expect(await hubrise.readStatus?.({}, order, context)).toMatchObject([{ nativeStatus: 'accepted' }]);
    expect(await hubrise.readStatus?.({}, orderOf(), context)).toEqual([]);
  });

  it('throws TryAgain if the answer has another private_ref or another id', async () => {
    let [id, private_ref]: [string, string | null] = ['5dpm9', null];
    const { context } = await hubriseThat(() => ({ body: { id, status: 'received', private_ref } }));
    const read = () => hubrise.readStatus?.({ providerOrderId: '5dpm9' }, orderOf(), context);
    expect(await read()).toEqual([{ status: 'received', nativeStatus: 'received', providerOrderId: '5dpm9' }]);
    private_ref = 'o-2';
    await expect(read()).rejects.toBeInstanceOf(TryAgain);
    [id, private_ref] = ['other', null];
    await expect(read()).rejects.toBeInstanceOf(TryAgain);
  });

  it('reads no status from a completed order with closedMeansCompleted: false', async () => {
    const { context } = await hubriseThat(() => ({ body: { id: '5dpm9', status: 'completed' } }));
    const settings = { ...context.settings, closedMeansCompleted: false };
    expect(await hubrise.readStatus?.({ providerOrderId: '5dpm9' }, orderOf(), { ...context, settings })).toEqual([]);
  });
});

describe('translateWebhook', () => {
  const event = {
    id: 'ks8f6',
    resource_type: 'order',
    event_type: 'update',
    created_at: '2026-01-31T19:30:00+01:00',
    order_id: '5dpm9',
    location_id: '3r4s3-1',
    previous_state: { id: '5dpm9', ref: 'o-1', private_ref: 'o-1', status: 'new' },
    new_state: { id: '5dpm9', ref: 'o-1', private_ref: 'o-1', status: 'accepted' },
  };
  const { previous_state: before, new_state: now } = event;

  it('reads status, ids and time from the update of an order', () => {
    expect(translate(event)).toEqual([
      {
        status: 'received',
        serviceOrderId: 'o-1',
        providerOrderId: '5dpm9',
        occurredAt: '2026-01-31T19:30:00+01:00',
        nativeStatus: 'accepted',
      },
    ]);
  });

  it('accepts a signature in hex of either case', () => {
    const webhook = signed(event);
    const header = 'x-hubrise-hmac-sha256';
    const upper = { ...webhook, headers: { [header]: webhook.headers[header]?.toUpperCase() ?? '' } };
    expect(hubrise.translateWebhook(upper, settingsOf())).toHaveLength(1);
  });

  it.each([
    ['another field', { ...now, status: 'new', confirmed_time: '2026-01-31T20:00:00+01:00' }],
    ['an anonymised customer', { ...now, status: 'new', customer: { anonymised: true } }],
    ['no status at all', { ...now, status: null }],
    ['a status that is a property of Object.prototype', { ...now, status: 'constructor' }],
  ])('returns no event for an update of %s', (_name, new_state) => {
    expect(translate({ ...event, new_state })).toEqual([]);
  });

  it('returns a new estimate only once, with the unchanged status', () => {
    const confirmed_time = '2026-01-31T20:00:00+01:00';
    const later = '2026-01-31T20:10:00+01:00';
    const was = { ...now, confirmed_time, service_type: 'collection' };
    const changed = { ...event, previous_state: was, new_state: { ...was, confirmed_time: later } };
    expect(translate(changed)).toMatchObject([
      { status: 'received', nativeStatus: 'accepted', estimatedReadyAt: later, occurredAt: event.created_at },
    ]);
    expect(translate({ ...changed, new_state: was })).toEqual([]);
    expect(translate({ ...changed, new_state: { ...was, confirmed_time: null } })).toEqual([]);
    const delivery = { ...was, service_type: 'delivery', confirmed_time: later };
    expect(translate({ ...changed, new_state: delivery })).toMatchObject([{ estimatedDeliveryAt: later }]);
  });

  it('reads a status as changed if the webhook has no previous status', () => {
    for (const previous_state of [undefined, null, {}, { status: null }]) {
      expect(translate({ ...event, previous_state })).toHaveLength(1);
    }
  });

  it.each([[undefined], [null], ['']])('does not read `ref` as our id if private_ref is %j', (private_ref) => {
    const [status] = translate({ ...event, new_state: { ...now, private_ref } });
    expect(status).toMatchObject({ providerOrderId: '5dpm9' });
    expect(status?.serviceOrderId).toBeUndefined();
  });

  it.each([['x'.repeat(300)], [7], [''], [null]])('returns an event although `ref` is %j', (ref) => {
    const { private_ref: _left, ...new_state } = now;
    expect(translate({ ...event, new_state: { ...new_state, ref } })).toMatchObject([{ providerOrderId: '5dpm9' }]);
  });

  it.each([[undefined], [null], ['']])('reads HubRise’s id from new_state if order_id is %j', (order_id) => {
    expect(translate({ ...event, order_id })).toMatchObject([{ providerOrderId: '5dpm9' }]);
  });

  it.each([['yesterday'], ['2026-01-31T19:30:00'], [1_769_884_200], [undefined]])(
    'returns an event without a time if created_at is %j',
    (created_at) => {
      const [status] = translate({ ...event, created_at });
      expect(status).toMatchObject({ status: 'received' });
      expect(status?.occurredAt).toBeUndefined();
    },
  );

  it.each([
    [{ info: { reason: 'ITEM_NOT_FOUND' } }],
    [{ cause: 'The order could not be sent', info: { reason: 'Sku 12 is not attached to a menu' } }],
    [{ cause: 'Could not add item 1001 (not found)', info: 7 }],
  ])('reads a rejection as item_unavailable: %j', (rejection) => {
    const new_state = { ...now, status: 'rejected', custom_fields: { epos: { rejection } } };
    expect(translate({ ...event, new_state })).toMatchObject([{ status: 'failed', reasonCode: 'item_unavailable' }]);
  });

  it.each([[{ epos: { rejection: { cause: 7 } } }], [{ epos: null }], [[]], ['closed'], [null]])(
    'reads a rejection as technical if its custom fields are unknown: %j',
    (custom_fields) => {
      const new_state = { ...now, status: 'rejected', custom_fields };
      expect(translate({ ...event, new_state })).toMatchObject([{ status: 'failed', reasonCode: 'technical' }]);
    },
  );

  it('returns an event although service_type is invalid', () => {
    expect(translate({ ...event, new_state: { ...now, service_type: 7 } })).toMatchObject([{ status: 'received' }]);
  });

  it('reads the status of a delivery within an order, also when order and delivery both change', () => {
    const delivery = { ref: '1Z12345E0291980793', status: 'dropoff_enroute' };
    const under = { ...now, status: 'new', delivery };
    expect(translate({ ...event, new_state: under })).toMatchObject([
      { status: 'en_route', nativeStatus: 'dropoff_enroute', serviceOrderId: 'o-1', providerOrderId: '5dpm9' },
    ]);
    const end = { ...now, status: 'completed', delivery: { ...delivery, status: 'delivered' } };
    expect(translate({ ...event, previous_state: under, new_state: end }).map((status) => status.nativeStatus)).toEqual(
      ['completed', 'delivered'],
    );
    const moved = { ...under, delivery: { ...delivery, driver_name: 'John' } };
    expect(translate({ ...event, previous_state: under, new_state: moved })).toEqual([]);
  });

  it('reads an arrived delivery, but not a completed order, as completed with closedMeansCompleted: false', () => {
    const settings = settingsOf({ closedMeansCompleted: false });
    const closed = { ...event, new_state: { ...now, status: 'completed' } };
    expect(translate(closed)).toMatchObject([{ status: 'completed' }]);
    expect(hubrise.translateWebhook(signed(closed), settings)).toEqual([]);
    const delivered = { ...event, new_state: { ...closed.new_state, delivery: { status: 'delivered' } } };
    expect(hubrise.translateWebhook(signed(delivered), settings)).toMatchObject([{ nativeStatus: 'delivered' }]);
  });

  it("reads the courier's pickup and delivery times as estimates", () => {
    const [pickup, dropoff] = ['2026-01-31T19:00:00+01:00', '2026-01-31T19:20:00+01:00'];
    const delivery = { status: 'pickup_enroute', estimated_pickup_at: pickup, estimated_dropoff_at: dropoff };
    const under = { ...before, delivery };
    const said = { status: 'received', estimatedReadyAt: pickup, estimatedDeliveryAt: dropoff };
    expect(translate({ ...event, new_state: under })).toMatchObject([said]);
    expect(translate({ ...event, previous_state: under, new_state: under })).toEqual([]);
    const later = { ...delivery, estimated_dropoff_at: '2026-01-31T19:30:00+01:00' };
    expect(translate({ ...event, previous_state: under, new_state: { ...under, delivery: later } })).toMatchObject([
      { ...said, estimatedDeliveryAt: later.estimated_dropoff_at },
    ]);
    const alone = { ...event, resource_type: 'delivery', order_id: 'o-1', previous_state: null, new_state: delivery };
    expect(translate(alone)).toMatchObject([{ ...said, providerOrderId: 'o-1' }]);
    const unassigned = { ...under, delivery: { ...delivery, status: 'pending' } };
    expect(translate({ ...event, new_state: unassigned })).toEqual([]);
  });

  it('returns the tracking link once, with the status of the order or of its delivery', () => {
    const trackingUrl = 'https://courier.example/1';
    const pending = { status: 'pending', tracking_url: trackingUrl };
    const order = { ...now, status: 'awaiting_shipment', delivery: pending };
    expect(translate({ ...event, new_state: order })).toMatchObject([{ status: 'ready', trackingUrl }]);
    const under = { ...before, delivery: { status: 'pickup_enroute', tracking_url: null } };
    const known = { ...under, delivery: { ...under.delivery, tracking_url: trackingUrl } };
    const changed = { ...event, previous_state: under, new_state: known };
    expect(translate(changed)).toMatchObject([{ status: 'received', nativeStatus: 'pickup_enroute', trackingUrl }]);
    expect(translate({ ...changed, previous_state: known })).toEqual([]);
    const delivery = { status: 'dropoff_enroute', tracking_url: trackingUrl };
    const alone = {
      ...event,
      resource_type: 'delivery',
      order_id: 'o-1',
      previous_state: pending,
      new_state: delivery,
    };
    expect(translate(alone)).toMatchObject([{ status: 'en_route', trackingUrl, occurredAt: event.created_at }]);
  });

  it.each(['javascript:alert(1)', 7, ''])(
    'returns an event without a tracking link if the link is invalid: %j',
    (tracking_url) => {
      const new_state = { ...before, delivery: { status: 'dropoff_enroute', tracking_url } };
      const [said] = translate({ ...event, new_state });
      expect([said?.status, said?.trackingUrl]).toEqual(['en_route', undefined]);
    },
  );

  it('does not read a cancelled delivery as a cancelled order', () => {
    expect(translate({ ...event, new_state: { ...before, delivery: { status: 'cancelled' } } })).toEqual([]);
  });

  it("reads the event of a delivery with its order's id, and not with the tracking number", () => {
    const delivered = {
      ...event,
      resource_type: 'delivery',
      previous_state: { id: 'ez351', status: 'dropoff_waiting' },
      new_state: { id: 'ez351', ref: '1Z12345E0291980793', order_id: '5dpm9', status: 'delivered' },
    };
    const [status] = translate(delivered);
    expect(status).toMatchObject({ status: 'completed', providerOrderId: '5dpm9', nativeStatus: 'delivered' });
    expect(status?.serviceOrderId).toBeUndefined();
    expect(translate({ ...delivered, order_id: undefined })).toHaveLength(1);
    const { order_id: _left, ...unnamed } = delivered.new_state;
    expect(translate({ ...delivered, order_id: undefined, new_state: unnamed })).toEqual([]);
    expect(translate({ ...delivered, previous_state: { status: 'delivered' } })).toEqual([]);
  });

  it.each(['customer', 'catalog', 'inventory', 'location', 'coupon', 'constructor'])(
    'returns no event for the resource type %s',
    (resource) => {
      expect(translate({ ...event, resource_type: resource })).toEqual([]);
    },
  );

  it.each(['delete', 'patch', 'archive'])('returns no event for the event type %s of an order', (type) => {
    expect(translate({ ...event, event_type: type, new_state: undefined })).toEqual([]);
  });

  it.each([
    ['no JSON', '{', 'an object with resource_type and event_type is required'],
    ['no resource', { ...event, resource_type: undefined }, 'resource_type: '],
    ['no event type', { ...event, event_type: 7 }, 'event_type: '],
    ['no new state', { ...event, new_state: undefined }, 'new_state: '],
    [
      'ids of a wrong type',
      { ...event, order_id: 'secret'.repeat(50), new_state: { ...now, id: ['secret'], private_ref: 'secret\0' } },
      'new_state.private_ref: contains a NUL',
    ],
    ['no id at all', { ...event, order_id: null, new_state: { ref: 'secret', status: 'accepted' } }, 'are missing'],
  ])('throws Poison, whose message quotes nothing of the event, for an event with %s', (_name, body, message) => {
    const error = errorOf(() => translate(body));
    expectError(error, Poison, message);
    expect(error.message).not.toContain('secret');
  });
});

describe('check', () => {
  it.each([
    ['a token of a whole account', { status: 404 }, /accessToken belongs to a location/],
    ['an undocumented refusal', { status: 422, body: { error_type: 'odd' } }, /422 odd: check baseUrl/],
    ['an answer from another service', { body: { hello: 'world' } }, /not a HubRise location: check baseUrl/],
  ])('throws NeedsOperator that says what to check after %s', async (_name, answer, words) => {
    const { context } = await hubriseThat(() => answer);
    expectError(await rejectionOf(hubrise.check?.(context)), NeedsOperator, words);
  });

  it('sends no request until the Retry-After of a 429 is over', async () => {
    const { context, requests } = await hubriseThat(() => ({ status: 429, headers: { 'retry-after': '30' } }));
    expect(await rejectionOf(hubrise.check?.(context))).toMatchObject({ name: 'TryAgain', retryAfterMs: 30_000 });
    expect(await rejectionOf(hubrise.check?.(context))).toMatchObject({ name: 'TryAgain', retryAfterMs: 30_000 });
    expect(requests).toHaveLength(1);
  });
});

describe('readKitchen', () => {
  const read = (new_state: object, resource_type = 'location') =>
    hubrise.readKitchen?.(signed({ resource_type, event_type: 'update', new_state }), settingsOf());

  it.each([null, 'soon', undefined])('reads a pause with the end %j as one of 240 minutes', (resume_at) => {
    const until = new Date(NOW.getTime() + 240 * 60_000);
    const paused = { mode: 'paused', resume_at, reason: 'Oven' };
    expect(read({ order_acceptance: paused })).toEqual({ state: 'closed', until });
  });

  it.each([{}, { opening_hours: {} }, { order_acceptance: { mode: 'holiday' } }])(
    'returns undefined for the location %j',
    (state) => {
      expect(read(state)).toBeUndefined();
      expect(read({ order_acceptance: { mode: 'online' } }, 'account')).toBeUndefined();
    },
  );
});

describe('connect', () => {
  it("sets the connection’s callback, and names the connection's location", async () => {
    const { pos, context } = await stage();
    const { done, todo } = await connect(context);
    expect(pos.callback).toEqual({ url: WEBHOOK_URL, events: { order: ['update'], location: ['update'] } });
    expect(todo).toEqual([]);
    expect(done).toEqual([
      expect.stringMatching(/^The access token belongs to Paris \(\w+-1\) of Bella Pizza, in EUR\.$/),
      'HubRise now calls this webhook for updates of orders and of the location.',
    ]);
  });

  it('replaces its own callback when repeated, because each run has a new token', async () => {
    const { pos, context } = await stage();
    await connect(context);
    const again = WEBHOOK_URL.replace('t-1', 't-2');
    const { done } = await connect(context, again);
    expect(pos.callback.url).toBe(again);
    expect(done.slice(1)).toEqual([
      'HubRise now calls this webhook for updates of orders and of the location.',
      'It replaced an earlier URL of this webhook.',
    ]);
  });

  it('reports that it replaced another location’s callback', async () => {
    const { context } = await stage();
    await connect(context, WEBHOOK_URL.replace('club-1', 'club-2'));
    const { done } = await connect(context);
    expect(done[2]).toMatch(/^It replaced the connection's earlier callback/);
  });

  it('throws an error after a 500, and the error says that the callback may be set', async () => {
    const { pos, context } = await stage();
    pos.takesButAnswers = 500;
    await expect(connect(context)).rejects.toSatisfy((error) => perhapsTaken(error));
    expect(pos.callback.url).toBe(WEBHOOK_URL);
  });

  it('replaces an earlier callback, and shows no secret of its URL', async () => {
    const { pos, context } = await stage();
    await connect(context, 'https://old.example/hook?token=hidden');
    const { done } = await connect(context);
    expect(pos.callback.url).toBe(WEBHOOK_URL);
    expect(done[2]).toBe("It replaced the connection's earlier callback at https://old.example.");
    expect(done.join()).not.toMatch(/hidden|token=/);
  });

  it("sets the callback if HubRise's answer cannot be read", async () => {
    const { context, requests } = await hubriseThat(() => ({ body: {} }));
    expect(await connect(context)).toEqual({
      done: ['HubRise now calls this webhook for updates of orders and of the location.'],
      todo: [],
    });
    expect(requests.at(-1)).toMatchObject({ method: 'POST', url: '/v1/callback' });
  });

  it('throws NeedsOperator if HubRise refuses the callback', async () => {
    const { context } = await hubriseThat(({ method }) => (method === 'POST' ? { status: 422 } : { body: {} }));
    await expect(connect(context)).rejects.toMatchObject({
      name: 'NeedsOperator',
      message: 'HubRise refused POST /callback with 422',
    });
  });

  it('throws an error that names accessToken if the token belongs to no location', async () => {
    const { context } = await hubriseThat(() => ({ status: 404 }));
    await expect(connect(context)).rejects.toThrow('accessToken belongs to a location');
  });
});

describe('the simulator', () => {
  it('repeats an event up to six times until it gets an answer other than 500', async () => {
    const { pos, context } = await stage('EUR', 1_000_000);
    await hubrise.createOrder(orderOf(), context);
    const ticket = first(pos.tickets);
    const bodies: string[] = [];
    const server = await serveHttp(async (request, response) => {
      bodies.push((await readBody(request)).toString());
      sendJson(response, bodies.length < 8 ? 500 : 404, {});
    });
    stopAtEnd(server);
    expect(await pos.report(server.url, ticket, 'received')).toMatchObject({ status: 500 });
    expect(bodies).toHaveLength(7);
    expect(new Set(bodies).size, 'the very same event').toBe(1);
    await pos.report(server.url, ticket, 'accepted');
    expect(bodies, '404 is an acknowledgement').toHaveLength(8);
    expect(JSON.parse(bodies[7] ?? '')).toMatchObject({
      previous_state: { status: 'received' },
      new_state: { status: 'accepted' },
    });
  });

  it.each<[number, string, object | string, Record<string, string>?]>([
    [401, 'another token', {}, { 'x-access-token': 'another' }],
    [415, 'another content type', {}, { 'content-type': 'text/plain' }],
    [400, 'no JSON', '{'],
    [422, 'no status', { status: undefined }],
    [422, 'an unknown status', { status: 'ready' }],
    [422, 'a time in the past', { expected_time: '2021-06-24T11:30:00+02:00' }],
    [422, 'no payment', { payments: [] }],
    [422, 'an amount without decimals', { payments: [{ amount: '9 EUR' }] }],
    [422, 'an amount with three decimals', { payments: [{ amount: '9.000 EUR' }] }],
    [422, 'another currency', { payments: [{ amount: '9.00 GBP' }] }],
    [422, 'a number for a quantity', { items: [{ product_name: 'Coke', price: '1.00 EUR', quantity: 1 }] }],
    [422, 'an item without a price', { items: [{ product_name: 'Coke', quantity: '1' }] }],
    [422, 'a private ref too long', { private_ref: 'x'.repeat(256) }],
    [422, 'an undocumented field', { total_price: '9.00 EUR' }],
  ])('answers %i to a request with %s and makes no ticket', async (status, _name, change, headers = {}) => {
    const { pos } = await stage();
    const order = { status: 'new', payments: [{ amount: '9.00 EUR' }] };
    const post = (body: unknown, more: object) =>
      fetch(`${String(pos.settings['baseUrl'])}/location/orders`, {
        method: 'POST',
        headers: { 'x-access-token': String(pos.settings['accessToken']), 'content-type': 'application/json', ...more },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
    const answer = await post(typeof change === 'string' ? change : { ...order, ...change }, headers);
    expect(answer.status).toBe(status);
    expect(pos.refusals).toHaveLength(1);
    expect(pos.tickets).toEqual([]);
    expect((await post(order, {})).status).toBe(200);
  });

  it('refuses the eleventh list of orders within a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW });
    const { pos } = await stage();
    for (let nth = 0; nth < 10; nth += 1) expect(await list(pos)).toEqual([]);
    expect(await list(pos)).toEqual({ error_type: 'too_many_requests' });
  });

  it('makes a ticket for every request, as HubRise does', async () => {
    const { pos, context } = await stage();
    const order = orderOf();
    await hubrise.createOrder(order, context);
    await hubrise.createOrder(order, context);
    expect(pos.tickets).toHaveLength(2);
  });
});

type Body = {
  expected_time?: string;
  customer_notes: string;
  items: { product_name: string; customer_notes?: string; options: object[] }[];
  charges: object[];
  payments: object[];
  customer: Record<string, string | undefined>;
};

/** What goes over the wire. */
function written(order: KitchenOrder, itemMap: Settings['itemMap'] = {}): Body {
  return JSON.parse(JSON.stringify(writeOrder(order, itemMap, NOW))) as Body;
}

function withModifier(modifier: KitchenOrder['items'][number]['modifiers'][number]): KitchenOrder {
  return orderOf({ items: [burgerWith({ modifiers: [modifier] })] });
}

function settingsOf(overrides: object = {}): Settings {
  return Settings.parse({ accessToken: 'token', clientSecret: SECRET, ...overrides });
}

async function stage(currency = 'EUR', hurry = 1): Promise<{ pos: HubriseSimulator; context: PosContext<Settings> }> {
  const pos = stopAtEnd(await startHubrise({ currency, hurry }));
  return { pos, context: contextAt(NOW, Settings.parse(pos.settings)) };
}

async function list({ settings }: HubriseSimulator): Promise<unknown> {
  const headers = { 'x-access-token': String(settings['accessToken']) };
  return (await fetch(`${String(settings['baseUrl'])}/location/orders`, { headers })).json();
}

type Answer = { status?: number; headers?: Record<string, string>; body?: unknown };
type Asked = { method: string; url: string; headers: Record<string, unknown> };

/** A HubRise that answers as it is told. A token of its own, since limits are kept per token. */
async function hubriseThat(answers: (request: Asked) => Answer) {
  const requests: Asked[] = [];
  const answer: typeof fetch = async (input, init) => {
    const { method, url, headers, signal } = new Request(input, init);
    signal.throwIfAborted();
    const { pathname, search } = new URL(url);
    const asked = { method, url: pathname + search, headers: Object.fromEntries(headers) };
    requests.push(asked);
    const { status = 200, headers: more, body = {} } = answers(asked);
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), {
      status,
      ...(more && { headers: more }),
    });
  };
  const settings = settingsOf({ accessToken: randomUUID(), baseUrl: 'https://hubrise.example.com/v1/' });
  return { requests, context: contextAt(NOW, settings, { fetch: answer }) };
}

function signed(event: unknown): Webhook {
  const body = typeof event === 'string' ? event : JSON.stringify(event);
  return webhookAt(NOW, body, { 'x-hubrise-hmac-sha256': createHmac('sha256', SECRET).update(body).digest('hex') });
}

function translate(event: unknown) {
  return hubrise.translateWebhook(signed(event), settingsOf());
}

function connect(context: PosContext<Settings>, webhookUrl = WEBHOOK_URL) {
  const connection = hubrise.connect?.({ ...context, webhookUrl, locations: 1 });
  return connection ?? expect.unreachable('it cannot connect');
}
