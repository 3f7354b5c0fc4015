import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { GiveUp, NotAuthentic, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import type { Grant, PosContext } from '../../src/core/domain/provider.ts';
import { lightspeedK } from '../../src/providers/lightspeed-k/index.ts';
import { tokenOf } from '../../src/providers/lightspeed-k/call-lightspeed.ts';
import { Settings } from '../../src/providers/lightspeed-k/payloads.ts';
import { writeOrder } from '../../src/providers/lightspeed-k/write-order.ts';
import { checkToGoOrder, readToGoOrder } from '../../world/pos/lightspeed-k/check-lightspeed-k-order.ts';
import { startLightspeedK } from '../../world/pos/lightspeed-k/start-lightspeed-k.ts';
import { sendJson, serveHttp } from '../../world/network/serve-http.ts';
import { providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { burgerWith, contextAt, expectError, first, orderOf, stopAtEnd, webhookAt } from './stage-parts.ts';

const NOW = new Date('2026-01-31T18:30:00.250Z');
const HERE = 'https://expediter.example.com/webhook/lightspeed-k/club-1?token=t-1';
const LOCATION = '45454565682155';
const INT64 = '9223372036854775807';
const PLAIN = {
  clientId: 'client-1',
  clientSecret: 'hidden-client',
  refreshToken: 'hidden-refresh',
  businessLocationId: LOCATION,
  endpointId: 'expediter-club-1',
  webhookUsername: 'lightspeed',
  webhookPassword: 'hidden-password',
  paymentMethod: 'OOPAYMENT',
};
const MAPS = { itemMap: { cheddar: '17', 'no-onions': '18' } };
const settings = settingsOf();

providerContract(lightspeedK, {
  start: startLightspeedK,
  wrongSettings: {
    clientId: [undefined, '', ' padded', 7],
    clientSecret: [undefined, '', 'padded '],
    refreshToken: [undefined, '', ' padded'],
    businessLocationId: [undefined, '', '-1', 0, 1.5, 2 ** 53, '012', '12 ', 'club', '9223372036854775808', null],
    endpointId: [undefined, '', 'a/b', '..', 'two words', 'é', 'x'.repeat(101)],
    webhookUsername: [undefined, '', ' padded', 'with:colon', 'zoë'],
    webhookPassword: [undefined, '', 'padded ', 'zoë'],
    paymentMethod: [undefined, '', 7],
    accountProfileCodes: ['TAKEAWAY', { pickup: '' }, { dineIn: 'TABLE' }],
    baseUrl: ['api.lsk.lightspeed.app', 'ftp://pos.example', 'https://user:word@pos.example'],
    tokenUrl: ['', 'auth.lsk-prod.app', 'https://user:word@pos.example'],
    itemMap: [[], { burger: 7 }, { burger: '' }],
    subItemMap: [[], { cheddar: '' }, { cheddar: 'x'.repeat(26) }],
    feeSku: ['', 'x'.repeat(26), 7],
    discountCode: ['', 7],
    preparationMinutes: [-1, 0.5, '30', 1441],
    sendCustomerEmail: ['yes', 1],
    closedMeansCompleted: ['yes', 1],
    pauseMinutes: [0, 1.5, 1441, '240'],
  },
  secretSettings: ['clientSecret', 'refreshToken', 'webhookPassword'],
  provenSettings: ['clientId', 'clientSecret', 'refreshToken', 'businessLocationId', 'endpointId'],
  // A new secret of the same client must not lose the refresh token, which is stored nowhere else.
  unseeded: ['clientSecret'],
  lacks: ['itemNames', 'prices', 'email', 'fee', 'discount', 'total'],
  refusal: (words) => {
    const errors = [{ field: 'orderNote', code: 'Size', defaultMessage: words }];
    return { status: 400, body: { message: words, errors } };
  },
  kitchen: ['open', 'closed'],
  statuses: {
    SUCCESS: 'received',
    READY_FOR_PICKUP: 'ready',
    IN_DELIVERY: 'en_route',
    DELIVERED: 'completed',
    CANCELLED: 'cancelled',
    ABANDONED: 'cancelled',
    FAILURE: 'failed',
    CLOSED: null,
    CHECK_WAS_UPDATED: null,
    READY: null,
  },
  // A check says that a till took the order, and of a failed one there is none.
  reads: {
    ...Object.fromEntries(
      'READY_FOR_PICKUP IN_DELIVERY DELIVERED CANCELLED ABANDONED CLOSED CHECK_WAS_UPDATED READY'
        .split(' ')
        .map((native) => [native, [['received', 'SUCCESS'] as const]]),
    ),
    FAILURE: [],
  },
  paid: ({ money }) => money.total - money.fee || undefined,
  rejections: {
    'a cancelled order': { by: 'CANCELLED', reasonCode: 'restaurant_cancelled' },
    'an abandoned order': { by: 'ABANDONED', reasonCode: 'restaurant_cancelled' },
    'a till that was not there': { by: 'FAILURE', reasonCode: 'no_answer' },
    'no till': {
      by: 'FAILURE: No devices available to handle the task, the task has been rejected.',
      reasonCode: 'no_answer',
    },
    'a till that takes none': {
      by: "FAILURE: The specified business location doesn't accept online orders at the moment.",
      reasonCode: 'paused',
    },
    'an item that is restricted': {
      by: 'FAILURE: Could not add item Topping 1 (check sales restrictions)',
      reasonCode: 'item_unavailable',
    },
    'an item that is not found': {
      by: 'FAILURE: Could not add item beer-pale-ale (not found)',
      reasonCode: 'item_unavailable',
      itemIds: ['beer-pale-ale'],
    },
    'an unknown SKU': {
      by: 'FAILURE: No such item id: 6644662335523, sku: 1001, blId: 52000111222',
      reasonCode: 'item_unavailable',
      itemIds: ['burger-classic'],
    },
    'an unknown SKU of a modifier': {
      by: 'FAILURE: No such item id: 6644662335523, sku: 35, blId: 52000111222',
      reasonCode: 'item_unavailable',
    },
    'a payment of too much': {
      by: 'FAILURE: the payment amount is greater than the amount due',
      reasonCode: 'price_changed',
    },
    'a payment': { by: 'FAILURE: Unknown payment method', reasonCode: 'payment' },
    'a customer who is known': {
      by: 'FAILURE: A consumer already exists for this email address with a different external reference.',
      reasonCode: 'technical',
    },
    'a wrong form': {
      by: { status: 400, body: { errors: [{ field: 'orderNote', code: 'Size' }] } },
      reasonCode: 'technical',
    },
    'an address': {
      by: { status: 400, body: { errors: [{ field: 'deliveryAddress.zip', code: 'NotNull' }] } },
      reasonCode: 'invalid_address',
    },
  },
});

describe('settings', () => {
  it('default to the production URL, empty maps and closedMeansCompleted: false', () => {
    expect(settings).toEqual({
      ...PLAIN,
      accountProfileCodes: {},
      baseUrl: 'https://api.lsk.lightspeed.app',
      itemMap: {},
      subItemMap: {},
      pauseMinutes: 240,
      preparationMinutes: 0,
      sendCustomerEmail: false,
      closedMeansCompleted: false,
    });
  });

  it.each([
    [LOCATION, LOCATION],
    [45454565682155, LOCATION],
    [INT64, INT64],
  ])('accept the businessLocationId %s as %s', (businessLocationId, digits) => {
    expect(settingsOf({ businessLocationId }).businessLocationId).toBe(digits);
  });
});

describe('an order for Lightspeed', () => {
  it('has all documented fields for a pickup', () => {
    expect(written(orderOf({ serviceOrderId: 'order-2026-000628', callOutCode: 'K472' }))).toEqual({
      businessLocationId: 45454565682155,
      thirdPartyReference: 'order-2026-000628',
      endpointId: 'expediter-club-1',
      customerInfo: { firstName: 'Ada', lastName: 'Lovelace', contactNumberAsE164: '+493012345678' },
      orderNote:
        'AGE CHECK: Pale Ale 0.33 l\nClassic Burger: One of them well done\nTable by the terrace, if there is one',
      collectionCode: 'K472',
      maxTimeToAttemptOrderDeliverToPos: 600_000,
      payment: { paymentMethod: 'OOPAYMENT', paymentAmount: 48.34, tipAmount: 3 },
      items: [
        { quantity: 2, sku: 'burger-classic', modifiers: [{ modifierId: 'cheddar' }, { modifierId: 'no-onions' }] },
        { quantity: 1, sku: 'fries-sweet-potato' },
        { quantity: 1, sku: 'beer-pale-ale' },
      ],
    });
  });

  it('has the address and order profile of a delivery, but not its fee', () => {
    const body = written(orderOf({ type: 'delivery' }), { accountProfileCodes: { delivery: 'HOMEDELIVERY' } });
    expect(body).toMatchObject({
      accountProfileCode: 'HOMEDELIVERY',
      deliveryAddress: { addressLine1: 'Lindenstraße 14', addressLine2: '3. OG', zip: '10969', city: 'Berlin' },
      payment: { paymentMethod: 'OOPAYMENT', paymentAmount: 48.34, tipAmount: 3 },
    });
    expect(body['orderNote']).toMatch(/^AGE CHECK.*\nClassic Burger: .*\nDelivery: Ring twice\nTable by/);
  });

  it('has no accountProfileCode for a pickup if only the code for deliveries is set', () => {
    const codes = { accountProfileCodes: { delivery: 'HOMEDELIVERY' } };
    expect(written(orderOf(), codes)['accountProfileCode']).toBeUndefined();
  });

  it('has the fee as an item with a custom price if feeSku is set', () => {
    const { items, payment } = written(orderOf({ type: 'delivery' }), { feeSku: 'FEE' });
    expect((items as unknown[]).at(-1)).toEqual({ quantity: 1, sku: 'FEE', customItemPrice: 3.5 });
    expect(payment).toMatchObject({ paymentAmount: 51.84 });
    expect(written(orderOf(), { feeSku: 'FEE' })['items']).toHaveLength(3);
  });

  it.each([
    ['EUR', '48.34', '3.00'],
    ['JPY', '4834', '300'],
    ['KWD', '4.834', '0.300'],
  ])('has amounts in %s as exact decimals: %s and tip %s', (currency, amount, tip) => {
    const order = orderOf();
    expect(text({ ...order, money: { ...order.money, currency } })).toContain(
      `"paymentAmount":${amount},"tipAmount":${tip}}`,
    );
  });

  it('has amounts and ids beyond 2^53 without rounding', () => {
    const order = orderOf();
    const total = Number.MAX_SAFE_INTEGER;
    const body = text({ ...order, money: { ...order.money, total } }, { businessLocationId: INT64 });
    expect(body).toContain('"paymentAmount":90071992547409.91');
    expect(body).toContain(`"businessLocationId":${INT64},`);
  });

  it('has no payment if nothing was paid, and no tipAmount without a tip', () => {
    const order = orderOf();
    expect(written({ ...order, money: { ...order.money, total: 0 } })['payment']).toBeUndefined();
    expect(written({ ...order, money: { ...order.money, tip: 0 } })['payment']).not.toHaveProperty('tipAmount');
  });

  it.each([
    ['EUR', 12.9, 10.1],
    ['JPY', 1290, 1010],
    ['KWD', 1.29, 1.01],
  ])('has each discounted piece as a separate line: %s', (currency, whole, rest) => {
    const order = discounted(2300, currency);
    const body = readToGoOrder(text(order, { discountCode: 'PLATFORM', ...MAPS }, new Date()));
    expect(checkToGoOrder(body, { JPY: 0, KWD: 3 }[currency] ?? 2)).toEqual([]);
    const { items, orderNote } = written(order, { discountCode: 'PLATFORM' });
    const modifiers = [{ modifierId: 'cheddar' }, { modifierId: 'no-onions' }];
    const burger = { quantity: 1, sku: 'burger-classic', modifiers, discountCode: 'PLATFORM' };
    expect(items).toEqual([
      { ...burger, discountAmountOverride: whole },
      { ...burger, discountAmountOverride: rest },
      { quantity: 1, sku: 'fries-sweet-potato' },
      { quantity: 1, sku: 'beer-pale-ale' },
    ]);
    expect(orderNote).not.toContain('TAKE OFF');
  });

  it('has no discountCode on the pieces that are not discounted', () => {
    const { items } = written(discounted(500), { discountCode: 'PLATFORM' });
    expect(items).toMatchObject([{ quantity: 1, discountAmountOverride: 5 }, { quantity: 1 }, {}, {}]);
    expect((items as object[])[1]).not.toHaveProperty('discountCode');
  });

  it.each([
    ['there is no discountCode', discounted(500), {}],
    ['the items are worth less than the discount', discounted(3511), { discountCode: 'PLATFORM' }],
    [
      'it would take more than 20 lines',
      { ...discounted(500), items: [{ ...orderOf().items[2], quantity: 1000, unitPrice: 20 }] },
      { discountCode: 'PLATFORM' },
    ],
  ])('asks staff in the note to take the discount off if %s', (_name, order, more) => {
    const { items, orderNote } = written(order as KitchenOrder, more);
    expect(JSON.stringify(items)).not.toContain('discount');
    expect(orderNote).toMatch(/^AGE CHECK: .*\nTAKE OFF: Club \d+\.\d\d EUR\n/);
  });

  it('has modifiers as instructions or sub-items, as itemMap and subItemMap say', () => {
    const modifiers = [
      { serviceModifierId: 'cheddar', name: 'Extra cheddar', quantity: 2, unitPrice: 150 },
      { serviceModifierId: 'no-onions', name: 'No onions', quantity: 1 },
      { serviceModifierId: 'constructor', name: 'Tower', quantity: 2 },
    ];
    const maps = {
      itemMap: { 'burger-classic': '1001', 'no-onions': '236025632784492', cheddar: 'not this one' },
      subItemMap: { cheddar: '35' },
    };
    const body = written(orderOf({ items: [burgerWith({ modifiers })] }), maps);
    expect(body['orderNote'], 'a group may permit no instruction twice').toMatch(/^Classic Burger: 2 × Tower\n/);
    expect(body['items']).toEqual([
      {
        quantity: 2,
        sku: '1001',
        modifiers: [{ modifierId: '236025632784492' }, { modifierId: 'constructor' }],
        subItems: [{ quantity: 2, sku: '35' }],
      },
    ]);
  });

  it('fails with GiveUp if a SKU is over 25 characters or the order id over 48', () => {
    const order = orderOf();
    const item = (length: number) => [burgerWith({ serviceItemId: 'x'.repeat(length) })];
    expect(() => text({ ...order, items: item(25) })).not.toThrow();
    expect(() => text({ ...order, items: item(26) })).toThrow(GiveUp);
    expect(() => text({ ...order, serviceOrderId: 'x'.repeat(48) })).not.toThrow();
    expect(() => text({ ...order, serviceOrderId: 'x'.repeat(49) })).toThrow(GiveUp);
    expect(() => lightspeedK.checkOrder?.({ ...order, items: item(26) })).not.toThrow();
  });

  it('has a repeated modifier once, and its total quantity in the note', async () => {
    const at = await stage();
    const noOnions = { serviceModifierId: 'no-onions', name: 'No onions', quantity: 1 };
    const modifiers = [noOnions, { ...noOnions, quantity: 2, modifiers: [{ ...noOnions, quantity: 3 }] }];
    await lightspeedK.createOrder(orderOf({ items: [burgerWith({ modifiers })] }), at.context);
    expect(at.pos.refusals).toEqual([]);
    expect(at.pos.orders).toMatchObject([{ items: [{ modifiers: [{ modifierId: '236025632784492' }] }] }]);
    expect(at.pos.tickets[0]?.note).toMatch(/^Classic Burger: 9 × No onions\n/);
  });

  it("has the member's e-mail and reference only with sendCustomerEmail", () => {
    const order = orderOf();
    expect(text(order)).not.toMatch(/ada@example|member-42/);
    expect(written(order, { sendCustomerEmail: true })['customerInfo']).toMatchObject({
      email: 'ada@example.com',
      thirdPartyReference: 'member-42',
    });
  });

  it('has no customer reference without an e-mail', () => {
    const { email: _left, ...member } = orderOf().member;
    for (const one of [member, { ...member, email: '' }]) {
      expect(text(orderOf({ member: one }), { sendCustomerEmail: true })).not.toMatch(/member-42|email/);
    }
  });

  it('has first and last names cut to 128 characters', () => {
    const named = (name: string) => written(orderOf({ member: { id: 'm-1', name } }))['customerInfo'];
    expect(named('Prince')).toEqual({ firstName: 'Prince' });
    const long = named(`${'a'.repeat(200)} ${'b'.repeat(200)}`) as Record<string, string>;
    expect([long['firstName'], long['lastName']].map((part) => part?.length)).toEqual([128, 128]);
  });

  it('has a note cut to 255 characters', () => {
    const order = orderOf({ notes: 'x'.repeat(300) });
    const note = String(written(order)['orderNote']);
    expect(note).toHaveLength(255);
    expect(note).toMatch(/^AGE CHECK: .*\nClassic Burger: One of them well done\nx+ \[…\]$/);
    const { notes: _left, ...quiet } = orderOf({ items: order.items.slice(1, 2) });
    expect(written(quiet)).not.toHaveProperty('orderNote');
  });

  it.each([
    ['later', '2026-01-31T21:00:00+01:00', 0, '2026-01-31T20:00:00.000+00:00', '2026-01-31T20:00:00.000+00:00'],
    [
      'early enough to be prepared',
      '2026-01-31T20:00:00Z',
      25,
      '2026-01-31T19:35:00.000+00:00',
      '2026-01-31T20:00:00.000+00:00',
    ],
    [
      'at once if there is just time to prepare it',
      '2026-01-31T18:50:00Z',
      25,
      undefined,
      '2026-01-31T18:50:00.000+00:00',
    ],
    ['at once if it is requested in a minute', '2026-01-31T18:31:00Z', 0, undefined, undefined],
    ['at once for a time that has passed', '2026-01-31T18:00:00Z', 0, undefined, undefined],
  ])('is scheduled for the kitchen %s', (_name, requestedAt, preparationMinutes, scheduled, collected) => {
    const body = written(orderOf({ fulfillment: { type: 'pickup', requestedAt } }), { preparationMinutes });
    expect(body['scheduledTimeForOrderAsIso8601']).toBe(scheduled);
    expect(body['orderCollectionTimeAsIso8601']).toBe(collected);
  });

  it.each([
    { feeSku: 'FEE', sendCustomerEmail: true },
    { businessLocationId: INT64, preparationMinutes: 30 },
  ])('matches the documented schema with %j', (more) => {
    const requestedAt = new Date(Date.now() + 7_200_000).toISOString();
    const { fulfillment } = orderOf({ type: 'delivery' });
    const order = orderOf({ fulfillment: { ...fulfillment, requestedAt } });
    expect(checkToGoOrder(readToGoOrder(text(order, { ...MAPS, ...more }, new Date())), 2)).toEqual([]);
  });
});

describe('an answer of Lightspeed', () => {
  it.each([
    ['409 with a used reference', 409, { status: 'fail', msg: 'reference has already been used order-1' }],
    ['400 with a used reference, as for payments', 400, { message: 'reference has already been used order-1' }],
  ])('lets createOrder succeed if it means that Lightspeed has the order: %s', async (_name, status, body) => {
    const at = await stage();
    at.pos.behave = () => ({ status, body });
    expect(await at.create()).toEqual({});
  });

  it('causes TryAgain with sent: true if it is 409 without a body', async () => {
    const at = await stage();
    at.pos.behave = () => ({ status: 409, body: '' });
    expect(await at.failure()).toMatchObject({ name: 'TryAgain', sent: true });
  });

  it.each([
    ['409 with other words', 409, { status: 'fail', msg: 'the location is busy' }],
    ['422', 422, { message: 'reference has already been used order-1' }],
    ['400 with a field of the order', 400, refusal('items[0].quantity', 'Min')],
    ['400 with a text like a secret', 400, refusal('ada@example.com', 'hidden phrase')],
  ])("causes GiveUp without the answer's text: %s", async (_name, status, body) => {
    const at = await stage();
    at.pos.behave = () => ({ status, body });
    const error = await at.failure();
    const reason = 'The restaurant could not take this order.';
    expect(error).toMatchObject({ name: 'GiveUp', httpStatus: status, reason });
    expect(error.message).not.toMatch(/ada@|hidden|busy|order-1/);
  });

  it('is reported with the field and the rule that the field broke if it is 400', async () => {
    const at = await stage();
    at.pos.behave = () => ({ status: 400, body: refusal('customerInfo.firstName', 'Size') });
    expect((await at.failure()).message).toBe(
      'Lightspeed refused the order with 400 for customerInfo.firstName (Size)',
    );
  });

  it.each(['businessLocationId', 'endpointId', 'accountProfileCode', 'payment.paymentMethod'])(
    'causes NeedsOperator if it is 400 about the field %s',
    async (field) => {
      const at = await stage();
      at.pos.behave = () => ({ status: 400, body: refusal(field, 'NotFound') });
      expectError(await at.failure(), NeedsOperator, field);
    },
  );

  it.each([404, 405])('causes NeedsOperator if it is %i', async (status) => {
    const at = await stage();
    at.pos.behave = () => ({ status });
    expect(await at.failure()).toBeInstanceOf(NeedsOperator);
  });

  it.each([
    { endpointId: 'never-registered' },
    { paymentMethod: 'CASH' },
    { businessLocationId: '1' },
    { accountProfileCodes: { pickup: 'TABLE' } },
  ])('causes NeedsOperator for the wrong settings %j', async (wrong) => {
    const at = await stage(wrong);
    expect(await at.failure()).toBeInstanceOf(NeedsOperator);
  });
});

describe('the token', () => {
  it('depends only on clientId, refreshToken and baseUrl, which are its seed', () => {
    const seedOf = (more: object) => tokenOf(contextOf(settingsOf(more))).seed;
    const { clientId, refreshToken } = PLAIN;
    const seed = { baseUrl: 'https://api.lsk.lightspeed.app', clientId, refreshToken };
    expect(seedOf({})).toEqual(seed);
    expect(seedOf({ clientSecret: 'another', tokenUrl: 'https://auth.example.com/token' })).toEqual(seed);
  });

  it('is renewed with the current refresh token after clientSecret and tokenUrl changed', async () => {
    const at = await stage();
    await at.create();
    at.pos.expireTokens();
    const tokenUrl = `${at.pos.url}/oauth/token`;
    const wrong = { ...at.context, settings: { ...at.settings, clientSecret: 'another', tokenUrl } };
    expect(await rejectionOf(lightspeedK.createOrder(orderOf(), wrong))).toBeInstanceOf(NeedsOperator);
    const right = { ...at.context, settings: { ...at.settings, tokenUrl } };
    expect(await lightspeedK.createOrder(orderOf(), right)).toEqual({});
    expect(at.pos.grants).toBe(2);
  });

  it('is renewed each time with the newest refresh token', async () => {
    const at = await stage();
    for (let round = 1; round <= 3; round += 1) {
      await at.create();
      expect(at.pos.grants).toBe(round);
      at.pos.expireTokens();
    }
    expect(at.pos.refusals).toEqual(Array.from({ length: 2 }, () => 'the access token has expired'));
  });

  it('cannot be renewed with a spent or unknown refresh token: the error is NeedsOperator with reconnect_needed', async () => {
    const at = await stage();
    await at.create();
    const anew = contextOf(at.settings);
    const spent = await rejectionOf(lightspeedK.createOrder(orderOf(), anew));
    expectError(spent, NeedsOperator, /^reconnect needed: /);
    expect(spent.cause).toEqual({ code: 'reconnect_needed', httpStatus: 400 });
    expect(at.pos.refusals).toEqual(['the refresh token is spent']);
    expect((await (await stage({ refreshToken: 'unknown' })).failure()).message).toMatch(/^reconnect needed: /);
  });

  it.each([
    [400, { error: 'unauthorized_client' }, /400, unauthorized_client.*clientId/],
    [400, { error: 'Hidden phrase' }, /\(400\)/],
    [401, '', /401: either clientId and clientSecret are wrong, or reconnect needed/],
    [404, '', /\(404\).*tokenUrl/],
  ])('cannot be obtained after %i %j: the request throws NeedsOperator', async (status, body, words) => {
    const error = await obtainFrom(status, body);
    expectError(error, NeedsOperator, words);
    expect(error.message).not.toContain('Hidden');
  });

  it.each([
    [200, {}],
    [200, { access_token: 'a', expires_in: 0 }],
    [503, {}],
  ])('cannot be obtained after %i %j: the request throws TryAgain', async (status, body) => {
    expect(await obtainFrom(status, body)).toBeInstanceOf(TryAgain);
  });

  it('is requested from tokenUrl if it is set', async () => {
    const url = await serve(({ url }) => [
      200,
      { access_token: url, expires_in: 1500, refresh_token: 'next', token_type: 'x' },
    ]);
    const grant = await obtainWith({ tokenUrl: `${url}/realms/k/token` });
    // A refresh token lives for 14 days.
    const lastsS = 1_209_600;
    expect(grant).toEqual({ accessToken: '/realms/k/token', expiresIn: 1500, refreshToken: 'next', lastsS });
  });

  async function obtainFrom(status: number, body: unknown): Promise<Error> {
    return rejectionOf(obtainWith({ baseUrl: await serve(() => [404, {}], [status, body]) }));
  }

  function obtainWith(more: object): Promise<Grant> {
    return tokenOf(contextOf(settingsOf(more))).obtain(undefined, AbortSignal.timeout(5000));
  }
});

describe('a webhook of Lightspeed', () => {
  it('is read with our id and the id of the check', () => {
    const said = {
      status: 'READY_FOR_PICKUP',
      type: 'ORDER',
      thirdPartyReference: 'order-1',
      businessLocationId: Number(LOCATION),
      ikentooAccountIdentifier: 'A17700.3',
      ikentooAccountId: 304087979524124,
    };
    expect(translate(said)).toEqual([
      { status: 'ready', serviceOrderId: 'order-1', providerOrderId: 'A17700.3', nativeStatus: 'READY_FOR_PICKUP' },
    ]);
  });

  it.each([undefined, null, '', 'ORDER'])('is read as a webhook about an order if its type is %s', (type) => {
    expect(translate({ status: 'SUCCESS', thirdPartyReference: 'order-1', type })).toHaveLength(1);
  });

  it.each([
    ['a READY of the whole location', { type: 'ORDER_API', status: 'READY', thirdPartyReference: 'order-1' }],
    ['a successful payment', { type: 'PAYMENT', status: 'SUCCESS', thirdPartyReference: 'order-1' }],
    ['a failed payment', { type: 'PAYMENT', status: 'FAILURE', thirdPartyReference: 'order-1' }],
    ['an item', { type: 'ITEM', status: 'RESTRICTED', sku: '1001' }],
    ['a wrapped payment', { type: 'PAYMENT', eventType: 'x', order: { status: 'READY', thirdPartyReference: 'o-1' } }],
    ['an order of type PAYMENT in a wrapper', wrapped({ type: 'PAYMENT' })],
    ['an order of type ORDER_API in a wrapper', wrapped({ type: 'ORDER_API' })],
    ['an order in a wrapper of type ORDER_API', wrapped({}, { type: 'ORDER_API' })],
    ['a wrapped list of payments', { type: 'PAYMENT', eventType: 'x', order: [] }],
  ])('gives no event for %s', (_name, said) => {
    expect(translate(said)).toEqual([]);
  });

  it('that wraps the order may have the status READY, which means ready', () => {
    const order = { thirdPartyReference: 'order-1', status: 'READY' };
    expect(translate({ eventType: 'order.updated', order })).toEqual([
      { status: 'ready', serviceOrderId: 'order-1', nativeStatus: 'READY' },
    ]);
    expect(translate({ eventType: 'order.updated', order: { ...order, status: 'CANCELLED' } })).toMatchObject([
      { status: 'cancelled' },
    ]);
    expect(translate(order), 'flat, READY is no word for an order').toEqual([]);
  });

  it.each([{ order: { thirdPartyReference: 'o', status: 'READY' } }, { eventType: 'x', order: 'o' }])(
    'that wraps only half of an order is refused for its missing status: %j',
    (said) => {
      expect(() => translate(said)).toThrow('status');
    },
  );

  it.each([undefined, null, '', 'ORDER'])(
    'that wraps an order is read with the type %j inside or outside the order',
    (type) => {
      expect(translate(wrapped({ type }))).toHaveLength(1);
      expect(translate(wrapped({}, { type }))).toHaveLength(1);
    },
  );

  it('is read as completed if its check is closed, but only with closedMeansCompleted', () => {
    const said = { status: 'CLOSED', thirdPartyReference: 'order-1' };
    expect(translate(said)).toEqual([]);
    expect(translate(said, { closedMeansCompleted: true })).toMatchObject([{ status: 'completed' }]);
  });

  it.each([
    ["The specified business location doesn't accept online orders at the moment.", /no online orders/],
    ['Not processed before validity ended', /could not be reached/],
    ['No devices available to handle the task, the task has been rejected.', /could not be reached/],
    ['Could not add item 17 (not found)', /not on the menu/],
    ['No such item id: 1, sku: 17, blId: 3', /not on the menu/],
    ['Could not add item Burger (check sales restrictions)', /not available/],
    ['the payment amount is greater than the amount due', /could not take/],
    ['A consumer already exists for this email address with a different external reference.', /could not take/],
    [undefined, /could not take/],
  ])("gives the member a reason for a failure without the POS's text: %s", (reason, words) => {
    const [event] = translate({ status: 'FAILURE', reason, thirdPartyReference: 'order-1' });
    expect(event).toMatchObject({ status: 'failed', nativeStatus: 'FAILURE' });
    expect(event?.reason).toMatch(words);
    expect(event?.reason).not.toContain('17');
  });

  it.each([
    ['a SKU', 'No such item id: 1, sku: 1001, blId: 3', ['burger-small', 'burger-big']],
    ['the fee', 'No such item id: 1, sku: FEE, blId: 3', undefined],
    ['a modifier', 'No such item id: 1, sku: 35, blId: 3', undefined],
    ['an id that we cannot store', 'Could not add item a\0b (not found)', undefined],
    ['an item by its name', 'Could not add item Burger (check sales restrictions)', undefined],
  ])(
    'is read with our ids of the failed item only if the failure names the item by its SKU: %s',
    (_name, reason, itemIds) => {
      const more = { itemMap: { 'burger-small': '1001', 'burger-big': '1001' }, subItemMap: { cheddar: '35' } };
      const said = { status: 'FAILURE', reason, thirdPartyReference: 'order-1' };
      const [event] = translate(said, { ...more, feeSku: 'FEE' });
      expect(event).toMatchObject({ reasonCode: 'item_unavailable' });
      expect(event?.itemIds).toEqual(itemIds);
    },
  );

  it.each([
    ['ITEM_NOT_ADDED', 'Task failed', 'item_unavailable'],
    ['OVERPAID', 'Task failed', 'price_changed'],
    ['PAYMENT_METHOD_NOT_FOUND', 'Payment method not found', 'payment'],
    ['STAFF_NOT_FOUND', 'Staff not found', 'technical'],
    ['ACCOUNT_NOT_FOUND', 'Account not found', 'technical'],
    ['UNKNOWN', 'No devices available', 'no_answer'],
    ['A_NEW_ONE', 'Could not add item 7 (not found)', 'item_unavailable'],
  ])(
    "is read with the reasonCode of the failure's type %s, or with that of its text if the type is unknown",
    (type, reason, reasonCode) => {
      const failure = { status: 'FAILURE', thirdPartyReference: 'order-1', reason, errors: { account: { type } } };
      expect(translate(failure)).toMatchObject([{ status: 'failed', reasonCode }]);
      expect(translate({ ...failure, errors: [type] })).toMatchObject([{ status: 'failed' }]);
    },
  );

  it('is read without its reason if the order is cancelled', () => {
    const said = { status: 'CANCELLED', reason: 'table 4', thirdPartyReference: 'order-1' };
    expect(translate(said)[0]).not.toHaveProperty('reason');
  });

  it.each([1, '45454565682156', 45454565682156])(
    'gives no event if its business location %s is not ours',
    (businessLocationId) => {
      expect(translate({ status: 'SUCCESS', thirdPartyReference: 'order-1', businessLocationId })).toEqual([]);
      expect(translate(wrapped({ businessLocationId })), 'inside').toEqual([]);
      expect(translate(wrapped({}, { businessLocationId })), 'beside').toEqual([]);
      expect(translate(wrapped({ businessLocationId }, { businessLocationId: LOCATION })), 'both, inside').toEqual([]);
      expect(translate(wrapped({ businessLocationId: LOCATION }, { businessLocationId })), 'both, beside').toEqual([]);
    },
  );

  it.each([undefined, null, '', LOCATION, Number(LOCATION)])(
    'is read as a webhook of our location if its business location is %s',
    (id) => {
      const ours = { businessLocationId: id };
      expect(translate({ status: 'SUCCESS', thirdPartyReference: 'order-1', ...ours })).toHaveLength(1);
      expect(translate(wrapped(ours, ours))).toHaveLength(1);
    },
  );

  it('is assigned to exactly the right location by an id beyond 2^53', () => {
    const bodyOf = (id: string) => `{"status":"SUCCESS","thirdPartyReference":"o","businessLocationId":${id}}`;
    const here = { businessLocationId: INT64 };
    expect(translateText(bodyOf(INT64), here)).toHaveLength(1);
    expect(translateText(bodyOf('9223372036854775806'), here)).toEqual([]);
    expect(translateText(`\ufeff${bodyOf(INT64)}`, here), 'with a byte order mark').toHaveLength(1);
  });

  it('that wraps an order gives an event only if both business location ids in it are ours', () => {
    const bodyOf = (inside: string, beside: string) =>
      `{"eventType":"x","order":{"status":"READY","thirdPartyReference":"o","businessLocationId":${inside},` +
      `"sender":{"businessLocationId":9223372036854775805}},"businessLocationId":${beside}}`;
    const here = { businessLocationId: INT64 };
    expect(translateText(bodyOf(INT64, INT64), here)).toHaveLength(1);
    expect(translateText(bodyOf(INT64, '9223372036854775806'), here)).toEqual([]);
    expect(translateText(bodyOf('9223372036854775806', INT64), here)).toEqual([]);
  });

  it('is refused with Poison if it has no id of an order', () => {
    for (const ids of [{}, { thirdPartyReference: null, ikentooAccountIdentifier: '' }]) {
      expect(() => translate({ status: 'SUCCESS', ...ids })).toThrow(Poison);
    }
    expect(translate({ status: 'SUCCESS', ikentooAccountIdentifier: 'A1.2' })).toMatchObject([
      { providerOrderId: 'A1.2' },
    ]);
  });

  it('is refused with Poison if it has no status, and the error shows no value', () => {
    expect(() => translate({ thirdPartyReference: 'secret-order' })).toThrow(/^status: (?!.*secret)/);
    expect(() => translate({ status: { deep: 1 } })).toThrow(Poison);
  });

  it.each([
    ['accepted', 'the right user and password', basic('lightspeed:hidden-password')],
    ['accepted', 'the scheme in small letters', basic('lightspeed:hidden-password').replace('Basic', 'basic')],
    ['refused', 'another password', basic('lightspeed:hidden-passwore')],
    ['refused', 'another user', basic('lightspeec:hidden-password')],
    ['refused', 'the colon at another place', basic('lightspee:dhidden-password')],
    ['refused', 'no password', basic('lightspeed')],
    ['refused', 'another scheme', basic('lightspeed:hidden-password').replace('Basic', 'Bearer')],
    ['refused', 'no scheme', basic('lightspeed:hidden-password').slice(6)],
    ['refused', 'extra text at its end', `${basic('lightspeed:hidden-password')} x`],
  ])('is %s with %s', (result, _name, authorization) => {
    const body = JSON.stringify({ status: 'SUCCESS', thirdPartyReference: 'order-1' });
    const translated = () => lightspeedK.translateWebhook(webhookAt(NOW, body, { authorization }), settings);
    if (result === 'accepted') expect(translated()).toHaveLength(1);
    else expect(translated).toThrow(NotAuthentic);
  });

  it('that is not JSON is refused with NotAuthentic if the password is wrong', () => {
    const webhook = webhookAt(NOW, '{', { authorization: 'Basic eA==' });
    expect(() => lightspeedK.translateWebhook(webhook, settings)).toThrow(NotAuthentic);
  });
});

describe('readStatus', () => {
  it('reads an order as received once a till took it, and as completed once its check is closed', async () => {
    const { pos, context, create } = await stage();
    await create();
    const ticket = first(pos.tickets);
    const { providerOrderId } = ticket;
    const read = (closedMeansCompleted: boolean) =>
      lightspeedK.readStatus?.({ providerOrderId }, orderOf(), {
        ...context,
        settings: { ...context.settings, closedMeansCompleted },
      });
    expect(await read(true)).toEqual([]);
    pos.become?.(ticket, 'SUCCESS');
    const occurredAt = expect.stringMatching(/\+00:00$/) as string;
    const taken = { status: 'received', nativeStatus: 'SUCCESS', providerOrderId, occurredAt };
    expect(await read(true)).toEqual([taken]);
    pos.become?.(ticket, 'CLOSED');
    expect(await read(true)).toEqual([{ ...taken, status: 'completed', nativeStatus: 'CLOSED' }]);
    expect(await read(false)).toEqual([taken]);
    expect(pos.reads).toBe(4);
  });

  it('sends no request and returns undefined without the id of the check', async () => {
    const { pos, context, create } = await stage();
    await create();
    expect(await lightspeedK.readStatus?.({}, orderOf(), context)).toBeUndefined();
    expect(pos.reads).toBe(0);
  });
});

describe('check', () => {
  const READY = {
    status: 'READY',
    onlineOrderingApiConfiguration: { enabled: true },
    posStatus: { salesPeriod: 'OPENED', acceptingOnlineOrders: true, availableDevices: true },
  };

  it('requests one token for two checks and an order', async () => {
    const at = await stage();
    await at.connect(HERE);
    await at.check();
    await at.check();
    await at.create();
    expect(at.pos.grants).toBe(1);
  });

  it('fails until the webhook is registered by connect', async () => {
    const at = await stage();
    const error = await rejectionOf(at.check());
    expectError(error, NeedsOperator, `endpointId "${at.settings.endpointId}" is not registered`);
    await at.connect(HERE);
    await at.check();
  });

  it.each(['pickup', 'delivery'])('fails if the location lacks the order profile for %s', async (which) => {
    const at = await stage({ accountProfileCodes: { [which]: 'DINE-IN' } });
    await at.connect(HERE);
    const error = await rejectionOf(at.check());
    expectError(error, NeedsOperator, `accountProfileCodes.${which} is not an active order profile`);
  });

  it('fails for an unknown discountCode, and lists the SKUs that are in no menu', async () => {
    const wrong = await stage({ discountCode: 'STAFF' });
    await wrong.connect(HERE);
    const error = await rejectionOf(wrong.check());
    expectError(error, NeedsOperator, 'discountCode is not a discount of the location');
    const at = await stage();
    await at.connect(HERE);
    const itemMap = { ...at.settings.itemMap, soup: 'S-1' };
    const settings = { ...at.settings, itemMap, subItemMap: { dip: 'D-1' }, feeSku: 'FEE' };
    expect(await checkWith({ ...at.context, settings })).toBe(
      'its tills take online orders now; no menu contains S-1, D-1, FEE',
    );
    expect(at.pos.refusals).toEqual([]);
  });

  it('passes without order profiles', async () => {
    const at = await stage({ accountProfileCodes: {} });
    await at.connect(HERE);
    await at.check();
    expect(at.pos.refusals).toEqual([]);
  });

  it.each([
    ['lacks the scope', 403, {}, NeedsOperator, /check that it has the scope orders-api/],
    ['goes to the wrong host', 404, {}, NeedsOperator, /404: check baseUrl and clientId/],
    ['gets an answer that is no list', 200, {}, NeedsOperator, /check baseUrl/],
    ['finds no locations', 200, [], NeedsOperator, /not among the 0 locations/],
    ['is answered 429', 429, {}, TryAgain, /429/],
  ])('throws an error that says why if its request %s', async (_name, status, body, type, words) => {
    const baseUrl = await serve(() => [status, body]);
    expectError(await rejectionOf(checkWith(contextOf(settingsOf({ baseUrl })))), type, words);
  });

  it('passes and says whether tills take online orders now', async () => {
    const at = await stage();
    await at.connect(HERE);
    expect(await at.check()).toBe('its tills take online orders now');
    const not = 'no till takes online orders now: ';
    Object.assign(at.pos.tills, { salesPeriod: 'CLOSED' });
    expect(await at.check()).toBe(`${not}the sales period is closed`);
    Object.assign(at.pos.tills, { acceptingOnlineOrders: false, availableDevices: false });
    expect(await at.check()).toBe(
      `${not}the sales period is closed, online orders are switched off at the POS, no device is online with the app open`,
    );
    expect(at.pos.refusals).toEqual([]);
  });

  it('fails if the Online Ordering API is switched off for the location', async () => {
    const at = await stage();
    await at.connect(HERE);
    at.pos.tills.enabled = false;
    const error = await rejectionOf(at.check());
    expectError(error, NeedsOperator, "switched off for the business location in Lightspeed's Back Office");
  });

  it.each([
    ['refused', 403, {}, NeedsOperator, /403/],
    ['refused by its form', 400, refusal('businessLocationId', 'NotNull'), NeedsOperator, /NotNull/],
    ['answered with an empty body', 200, {}, NeedsOperator, /about its tills cannot be read/],
    ['answered with 429', 429, {}, TryAgain, /429/],
  ])('throws an error that says why if the request for the tills is %s', async (_name, status, body, type, words) => {
    const baseUrl = await serve(connected([status, body]));
    const settings = settingsOf({ baseUrl, accountProfileCodes: {} });
    expectError(await rejectionOf(checkWith(contextOf(settings))), type, words);
  });

  it('finds a business location with an id beyond 2^53', async () => {
    const baseUrl = await serve(connected([200, READY], INT64));
    await checkWith(contextOf(settingsOf({ baseUrl, businessLocationId: INT64 })));
  });

  /** A Lightspeed where this location is connected, and whose tills are so. */
  const connected =
    (tills: Answer, location = LOCATION) =>
    ({ url = '' }: IncomingMessage): Answer => {
      if (url.startsWith('/o/wh/')) return [200, { url: HERE }];
      return url.includes('Readiness') ? tills : [200, `[{"businessLocations":[{"id":${location}}]}]`];
    };
});

describe('connect', () => {
  it('registers the webhook, and updates its URL when repeated', async () => {
    const at = await stage();
    const first = await at.connect(HERE);
    expect(first.done[0]).toMatch(/^Registered/);
    expect([...at.pos.endpoints.values()]).toEqual([
      {
        endpointId: at.settings.endpointId,
        url: HERE,
        withBasicAuth: true,
        username: at.settings.webhookUsername,
        password: at.settings.webhookPassword,
        provideAccount: false,
        expandTransactions: false,
        expandPayments: false,
        subscribeTo: [
          { name: 'DELIVERED', resource: 'order' },
          { name: 'ONLINE_ORDER_READINESS', resource: 'order_api' },
        ],
      },
    ]);
    expect(first.todo).toHaveLength(1);
    expect([...at.pos.linkedEndpoints], 'the location is added').toEqual([at.settings.endpointId]);
    const moved = 'https://new.example.com/webhook/lightspeed-k/club-1?token=t-2';
    const second = await at.connect(moved);
    expect(second.done[0]).toMatch(/^Updated/);
    expect([...at.pos.endpoints.values()]).toMatchObject([{ url: moved, withBasicAuth: true }]);
    const said = JSON.stringify([first, second]);
    for (const secret of ['t-1', 't-2', at.settings.webhookPassword]) expect(said).not.toContain(secret);
    expect(at.pos.refusals).toEqual([]);
  });

  it('says what to ask Lightspeed if its API no longer registers webhooks', async () => {
    const at = await stage();
    const gone: typeof fetch = async (input, init) => {
      return (input as Request).url.includes('/o/wh/')
        ? new Response('{}', { status: 404 })
        : at.context.fetch(input, init);
    };
    const context = { ...at.context, fetch: gone };
    const { done, todo } = await connectTo({ ...context, webhookUrl: HERE, locations: 1 });
    expect(done).toEqual([]);
    expect(todo[0]).toContain(`registers no webhooks (404). Ask Lightspeed to register ${at.settings.endpointId}`);
    expect(todo[0]).toContain(HERE);
    expect(todo[0]).not.toContain(at.settings.webhookPassword);
    expect(await checkWith(context)).toBe(
      "its tills take online orders now; the webhook's registration cannot be checked (404)",
    );
  });

  it.each([404, 403, 429])(
    'registers the webhook even if Lightspeed refuses kitchen reports with %i',
    async (status) => {
      const at = await stage();
      const refused: typeof fetch = async (input, init) => {
        const isLink = (input as Request).url.includes('/business-locations/');
        return isLink ? new Response('{}', { status }) : at.context.fetch(input, init);
      };
      const { done, todo } = await connectTo({ ...at.context, fetch: refused, webhookUrl: HERE, locations: 1 });
      expect(done[0]).toMatch(/^Registered/);
      expect(todo[0]).toMatch(
        new RegExp(`^Lightspeed does not report when tills stop .*${status}.*ask Lightspeed to add`),
      );
    },
  );

  it('throws NeedsOperator if another location has the endpoint', async () => {
    const at = await stage();
    const theirs = 'https://expediter.example.com/webhook/lightspeed-k/club-2?token=hidden';
    await at.connect(theirs);
    const error = await rejectionOf(at.connect(HERE));
    expectError(error, NeedsOperator, /another URL. Choose another endpointId for this location/);
    expect(error.message).not.toContain('hidden');
    expect([...at.pos.endpoints.values()]).toMatchObject([{ url: theirs }]);
  });

  it.each([
    ['the registration', 200, { url: HERE }, 400, refusal('url', 'URL'), /400 for url \(URL\)/],
    ['the look-up', 400, {}, 200, {}, /400/],
    ['the look-up without a URL', 200, {}, 200, {}, /about the webhook cannot be read/],
  ])('throws NeedsOperator with the fault of %s', async (_name, found, foundBody, status, body, words) => {
    const baseUrl = await serve(({ method }) => (method === 'GET' ? [found, foundBody] : [status, body]));
    const context = contextOf(settingsOf({ baseUrl }));
    expectError(await rejectionOf(connectTo({ ...context, webhookUrl: HERE, locations: 1 })), NeedsOperator, words);
  });
});

function settingsOf(more: object = {}): Settings {
  return Settings.parse({ ...PLAIN, ...more });
}

function text(order: KitchenOrder, more: object = {}, now = NOW): string {
  return JSON.stringify(writeOrder(order, settingsOf(more), now));
}

function written(order: KitchenOrder, more: object = {}): Record<string, unknown> {
  return JSON.parse(text(order, more)) as Record<string, unknown>;
}

function contextOf(settings: Settings): PosContext<Settings> {
  return contextAt(new Date(), settings);
}

type Answer = [status: number, body: unknown];

/** A Lightspeed that grants a token at `/oauth/token`, and otherwise answers so. @returns its URL */
async function serve(answers: (request: IncomingMessage) => Answer, granted?: Answer): Promise<string> {
  const server = await serveHttp((request, response) => {
    const isToken = request.url === '/oauth/token';
    const [status, body] = isToken ? (granted ?? [200, { access_token: 'a', expires_in: 60 }]) : answers(request);
    if (typeof body === 'string') response.writeHead(status).end(body);
    else sendJson(response, status, body);
  });
  return stopAtEnd(server).url;
}

function checkWith(context: PosContext<Settings>): Promise<string | void> {
  return lightspeedK.check?.(context) ?? expect.unreachable('no check');
}

function connectTo(context: PosContext<Settings> & { webhookUrl: string; locations: number }) {
  return lightspeedK.connect?.(context) ?? expect.unreachable('there is no connect');
}

/** A POS, and a location whose settings differ from what it knows as told. */
async function stage(more: object = {}) {
  const pos = stopAtEnd(await startLightspeedK());
  const settings = Settings.parse({ ...pos.settings, ...more });
  const context = contextOf(settings);
  const create = () => lightspeedK.createOrder(orderOf(), context);
  return {
    pos,
    settings,
    context,
    create,
    failure: () => rejectionOf(create()),
    check: () => checkWith(context),
    connect: (webhookUrl: string) => connectTo({ ...context, webhookUrl, locations: 2 }),
  };
}

/** The payment is the same in each currency: the platform's. */
function discounted(discount: number, currency = 'EUR'): KitchenOrder {
  const { money } = orderOf();
  const discounts = [{ name: 'Club', amount: discount }];
  return orderOf({ money: { ...money, currency, discount, total: money.total - discount }, discounts });
}

/** A 400 in Spring's form. */
function refusal(field: string, code: string): object {
  const words = `hidden phrase about ada@example.com`;
  return { status: 400, error: 'Bad Request', message: words, errors: [{ field, code, defaultMessage: words }] };
}

function basic(words: string): string {
  return `Basic ${Buffer.from(words).toString('base64')}`;
}

/** An order as the wrapped form has it, with more inside it and next to it. */
function wrapped(inside: object, beside: object = {}): object {
  return {
    eventType: 'order.updated',
    order: { thirdPartyReference: 'order-1', status: 'READY', ...inside },
    ...beside,
  };
}

describe('readKitchen', () => {
  const read = (status: string, location: string) =>
    lightspeedK.readKitchen?.(
      webhookAt(NOW, `{"type":"ORDER_API","status":"${status}","businessLocationId":${location}}`),
      settingsOf({ businessLocationId: INT64 }),
    );

  it('reads NOT_READY of its own location as closed until pauseMinutes have passed, and READY as open', () => {
    const until = new Date(NOW.getTime() + 240 * 60_000);
    expect(read('NOT_READY', INT64)).toEqual({ state: 'closed', until });
    expect(read('READY', INT64)).toEqual({ state: 'open' });
    expect(read('NOT_READY', INT64.replace(/7$/, '6'))).toBeUndefined();
  });
});

function translateText(body: string, more: object = {}) {
  const webhook = webhookAt(NOW, body, { authorization: basic('lightspeed:hidden-password') });
  return lightspeedK.translateWebhook(webhook, settingsOf(more));
}

function translate(said: object, more: object = {}) {
  return translateText(JSON.stringify(said), more);
}
