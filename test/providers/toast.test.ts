import { createHmac, randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { GiveUp, NotAuthentic, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import type { PosContext, Webhook } from '../../src/core/domain/provider.ts';
import { sumItems } from '../../src/core/domain/money.ts';
import { toast } from '../../src/providers/toast/index.ts';
import { Settings } from '../../src/providers/toast/payloads.ts';
import { writeOrder } from '../../src/providers/toast/write-order.ts';
import { startToast } from '../../world/pos/toast/start-toast.ts';
import { sampleOrder, type SampleOptions } from '../../world/platform/sample-order.ts';
import { sendJson, serveHttp } from '../../world/network/serve-http.ts';
import { errorOf, providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { inMemoryCredentials } from '../../packages/provider-kit/contract/in-memory-credentials.ts';
import { burgerWith, contextAt, expectError, first, orderOf, stopAtEnd, webhookAt } from './stage-parts.ts';

const NOW = new Date('2026-01-31T18:30:15Z');
const WEBHOOK_URL = 'https://expediter.example.com/webhook/toast/club-1?token=t-1';
const RESTAURANT = 'f9b71aec-d452-4b35-927e-5e473161f10d';
const ORDER = '465cd280-6890-41f5-8576-c7619634c56f';
const GROUP = '881472e6-dd94-48c6-b5c6-25e51a864208';
const OPTIONS = '7d1bdd86-0c3e-48c5-936c-c28a6ff48345';
const BURGER = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';
const FRIES = '96edc6ab-3992-4665-a3d0-c5a9fffd81b7';
const BEER = 'e19e5a1c-2b52-42ad-935e-568cd2a333dc';
const CHEDDAR = 'b2755b69-2c99-4214-b74e-6b6a1467501f';
const NO_ONIONS = '70afec63-1919-4fe1-8c2d-3dfaa232c406';
const PAYMENT = '0dc19214-d29e-4ab9-a773-27e5812999c7';
const CHARGE = '92c6c470-74bb-4f84-b31f-2c144b70a285';
const DINING = { pickup: '7c6843f3-db7d-4096-bdd2-4eefd99b900f', delivery: 'b1b10604-a8f9-4a21-ae86-7db974ee9dbf' };

const GIVEN = {
  baseUrl: 'https://toast.example.com',
  clientId: 'client-1',
  clientSecret: 'client-secret',
  restaurantGuid: RESTAURANT,
  webhookSecret: 'guest-secret',
  diningOptionGuids: DINING,
  itemMap: {
    'burger-classic': { item: BURGER, itemGroup: GROUP },
    'fries-sweet-potato': { item: FRIES, itemGroup: GROUP },
    'beer-pale-ale': { item: BEER, itemGroup: GROUP },
    cheddar: { item: CHEDDAR, optionGroup: OPTIONS },
    'no-onions': { item: NO_ONIONS, optionGroup: OPTIONS },
  },
};

providerContract(toast, {
  start: startToast,
  wrongSettings: {
    baseUrl: [undefined, 'toast.example.com', 'ftp://toast.example.com', 'https://user:word@toast.example.com'],
    clientId: [undefined, '', ' id'],
    clientSecret: [undefined, '', 'secret\n'],
    restaurantGuid: [undefined, '', 'my-restaurant'],
    webhookSecret: [undefined, '', ' secret', [], ['right', ''], { order_updated: 'secret' }],
    diningOptionGuids: [undefined, {}, { pickup: DINING.pickup }, { pickup: 'Takeout', delivery: 'Delivery' }],
    alternatePaymentGuid: ['', 'cash'],
    feeServiceChargeGuid: ['', 'fee'],
    discountGuid: ['', 'off'],
    namingAuthority: ['', 'SEVENTEEN-LETTERS', 'A:B'],
    defaultState: ['', 'ma', 'Massachusetts'],
    itemMap: [
      [],
      { cheddar: CHEDDAR },
      { cheddar: { item: CHEDDAR } },
      { cheddar: { item: 'c', optionGroup: OPTIONS } },
      { cheddar: { item: CHEDDAR, optionGroup: 5000000082 } },
      { cheddar: { item: '5'.repeat(21), optionGroup: OPTIONS } },
    ],
    specialRequestItem: [
      'request',
      { item: BURGER, itemGroup: GROUP },
      { item: 'x', itemGroup: GROUP, optionGroup: GROUP },
    ],
    closedMeansCompleted: ['yes'],
    pauseMinutes: [0, 1.5, 1441, '240'],
    deliveredBy: ['', 'channel', true],
  },
  secretSettings: ['clientSecret', 'clientId'],
  provenSettings: ['clientId', 'clientSecret', 'restaurantGuid', 'diningOptionGuids'],
  lacks: ['prices'],
  // Toast's own tax of 19 %, after discounts.
  paid: ({ items, money: { discount = 0, fee, tip } }) => {
    const eaten = sumItems(items) - discount;
    return eaten + Math.round(eaten * 0.19) + fee + tip;
  },
  refusal: (words) => {
    return { status: 400, body: { status: 400, code: 10_022, message: words, developerMessage: words } };
  },
  kitchen: ['open', 'closed'],
  statuses: {
    RECEIVED: 'received',
    IN_PREPARATION: 'in_progress',
    READY_FOR_PICKUP: 'ready',
    CLOSED: 'completed',
    VOIDED: 'cancelled',
    // Of order_updated, which comes at every change of an order:
    voided: 'cancelled',
    NEEDS_APPROVAL: null,
    APPROVED: null,
    FUTURE: null,
    NOT_APPROVED: 'failed',
    PENDING: null,
    PICKED_UP: { pickup: null, delivery: 'en_route' },
    IN_PROGRESS: { pickup: null, delivery: 'en_route' },
    DELIVERED: { pickup: null, delivery: 'completed' },
  },
  // An order has no guest order status.
  reads: {
    IN_PREPARATION: [['in_progress', 'SENT']],
    READY_FOR_PICKUP: [['ready', 'READY']],
    RECEIVED: [],
    CLOSED: [],
    VOIDED: [['cancelled', 'voided']],
  },
  cancels: { answer: 'cancelled', tooLate: 'READY_FOR_PICKUP' },
  rejections: {
    'a voided order': { by: 'VOIDED', reasonCode: 'restaurant_cancelled' },
    'an updated order that is voided': { by: 'voided', reasonCode: 'restaurant_cancelled' },
    'an order that nobody approved': { by: 'NOT_APPROVED', reasonCode: 'no_answer' },
    'an item that is in another group': {
      by: refused('Item (9c59d4ab-8242-450f-8f36-b16e1b3ab802) does not belong to the group (GUID)'),
      reasonCode: 'item_unavailable',
    },
    'an order that cannot be parsed': { by: refused('Could not parse as Order object'), reasonCode: 'technical' },
    'an item without an id': {
      by: refused('Referenced entity (type=MenuItem) must contain either a GUID or MultiLocationId'),
      reasonCode: 'technical',
    },
    'a dining option without an id': {
      by: refused('Referenced entity (type=DiningOption) must contain a GUID'),
      reasonCode: 'technical',
    },
    'a payment': { by: refused('Unsupported payment type'), reasonCode: 'payment' },
    'a price': { by: refused('Negative price'), reasonCode: 'price_changed' },
    'an address': { by: refused('deliveryInfo is required for delivery'), reasonCode: 'invalid_address' },
    'too many checks': { by: { status: 413, body: { status: 413, code: 10_413 } }, reasonCode: 'technical' },
  },
  estimates: { native: 'APPROVED', pickup: ['estimatedReadyAt'], delivery: ['estimatedDeliveryAt'] },
});

function refused(message: string) {
  return { status: 400, body: { status: 400, code: 10_400, message } };
}

describe('an order for Toast', () => {
  it('has all documented fields for a pickup', () => {
    expect(written({ serviceOrderId: 'o-1', callOutCode: 'K472' })).toEqual({
      diningOption: { guid: DINING.pickup },
      checks: [
        {
          tabName: 'K472',
          customer: {
            firstName: 'Ada',
            lastName: 'Lovelace',
            email: 'ada@example.com',
            phone: '3012345678',
            phoneCountryCode: '49',
          },
          selections: [
            {
              item: { guid: BURGER },
              itemGroup: { guid: GROUP },
              quantity: 2,
              modifiers: [
                { item: { guid: CHEDDAR }, optionGroup: { guid: OPTIONS }, quantity: 2, modifiers: [] },
                { item: { guid: NO_ONIONS }, optionGroup: { guid: OPTIONS }, quantity: 2, modifiers: [] },
                { selectionType: 'SPECIAL_REQUEST', displayName: 'One of them well done', quantity: 2 },
              ],
            },
            { item: { guid: FRIES }, itemGroup: { guid: GROUP }, quantity: 1, modifiers: [] },
            {
              item: { guid: BEER },
              itemGroup: { guid: GROUP },
              quantity: 1,
              modifiers: [{ selectionType: 'SPECIAL_REQUEST', displayName: 'AGE CHECK', quantity: 1 }],
            },
            {
              selectionType: 'SPECIAL_REQUEST',
              displayName: 'AGE CHECK: Pale Ale 0.33 l\nTable by the terrace, if there is one',
              quantity: 1,
            },
          ],
        },
      ],
    });
  });

  it('has the address of a delivery, with the age check in its notes for the driver', () => {
    const order = written({ type: 'delivery' }, { defaultState: 'BE' });
    expect(order.diningOption).toEqual({ guid: DINING.delivery });
    expect(order).toHaveProperty('deliveryInfo', {
      address1: 'Lindenstraße 14',
      address2: '3. OG',
      city: 'Berlin',
      state: 'BE',
      zipCode: '10969',
      country: 'DE',
      latitude: 52.5044,
      longitude: 13.3946,
      notes: 'AGE CHECK: Pale Ale 0.33 l\nRing twice',
    });
  });

  it.each([
    ['MA', 'MA'],
    ['us-ma', 'MA'],
    [' ma ', 'MA'],
  ])('has the region %j as the state %s', (region, state) => {
    expect(written(deliveryTo({ region }))).toHaveProperty('deliveryInfo.state', state);
  });

  it('leaves out a country that is not a code, and a latitude without a longitude', () => {
    const { deliveryInfo } = written(deliveryTo({ country: 'Germany', longitude: undefined })) as never;
    expect(deliveryInfo).not.toHaveProperty('country');
    expect(deliveryInfo).not.toHaveProperty('latitude');
  });

  it.each([
    ['city', undefined, 'fulfillment.destination.city is missing'],
    ['postalCode', ' ', 'fulfillment.destination.postalCode is missing'],
    ['region', undefined, 'fulfillment.destination.region is missing, and defaultState is not set'],
    ['region', 'Massachusetts', 'fulfillment.destination.region is not an abbreviation such as MA or US-MA'],
  ])('fails with GiveUp if Toast would refuse the address: %s %j', (field, value, message) => {
    const error = errorOf(() => written(deliveryTo({ [field]: value })));
    expect(error).toMatchObject({ name: 'GiveUp', message: `Toast would refuse the delivery: ${message}` });
  });

  it('has promisedDate and openedDate only for a requested later time', () => {
    const at = (requestedAt: string) => written({ fulfillment: { type: 'pickup', requestedAt } });
    expect(at('2026-01-31T19:30:15+01:00')).not.toHaveProperty('promisedDate');
    expect(at('2026-01-31T20:00:00+01:00')).toMatchObject({
      promisedDate: '2026-01-31T19:00:00.000+0000',
      openedDate: '2026-01-31T19:00:00.000+0000',
    });
  });

  it("has a modifier two times if each item has two of it, because Toast multiplies by the item's quantity", () => {
    const cheddar = { serviceModifierId: 'cheddar', name: 'Extra cheddar', quantity: 2 };
    const { checks } = written({ items: [burgerWith({ notes: '', modifiers: [cheddar] })] });
    expect(checks[0]?.selections[0]).toMatchObject({
      quantity: 2,
      modifiers: [
        { item: { guid: CHEDDAR }, quantity: 2 },
        { item: { guid: CHEDDAR }, quantity: 2 },
      ],
    });
  });

  it('fails with GiveUp over 500 pieces of modifiers', () => {
    const twice = (quantity: number) => {
      const cheddar = { serviceModifierId: 'cheddar', name: 'Extra cheddar', quantity };
      return [itemOf('burger-classic', [cheddar]), itemOf('burger-classic', [cheddar])];
    };
    const { checks } = written({ items: twice(250) });
    expect(checks[0]?.selections[1]).toHaveProperty('modifiers.length', 250);
    // Not through KitchenOrder, which is stricter.
    const million = { ...orderOf(), items: twice(2 ** 40) };
    for (const order of [orderOf({ items: twice(251) }), million]) {
      const error = errorOf(() => writeOrder(order, settingsOf(), NOW));
      expect(errorOf(() => toast.checkOrder?.(order))).toEqual(error);
      expectError(error, GiveUp, /^the order has (502|2199023255552) pieces of modifiers: .* 500 /);
      expect((error as GiveUp).reason).toBe('The restaurant cannot take this many extras in one order.');
    }
  });

  it('splits our id `group/item` into itemGroup and item', () => {
    const modifier = { serviceModifierId: `${OPTIONS}/${CHEDDAR}`, name: 'Cheddar', quantity: 1 };
    const order = written({ items: [itemOf(`${GROUP}/${BURGER}`, [modifier])] });
    expect(order.checks[0]?.selections[0]).toMatchObject({
      item: { guid: BURGER },
      itemGroup: { guid: GROUP },
      modifiers: [{ item: { guid: CHEDDAR }, optionGroup: { guid: OPTIONS } }],
    });
  });

  it('names each item by its GUID or by its multiLocationId, never by both', () => {
    const [group, item] = ['500000008202847047', '500000008202871058'];
    const modifier = { serviceModifierId: `${OPTIONS}/${item}`, name: 'Cheddar', quantity: 1 };
    const { checks } = written(
      { items: [itemOf('burger-classic', [modifier]), itemOf(`${group}/${item}`)] },
      { itemMap: { 'burger-classic': { item, itemGroup: GROUP } } },
    );
    expect(checks[0]?.selections.slice(0, 2)).toEqual([
      {
        item: { multiLocationId: item },
        itemGroup: { guid: GROUP },
        quantity: 1,
        modifiers: [{ item: { multiLocationId: item }, optionGroup: { guid: OPTIONS }, quantity: 1, modifiers: [] }],
      },
      { item: { multiLocationId: item }, itemGroup: { multiLocationId: group }, quantity: 1, modifiers: [] },
    ]);
  });

  it.each([
    ['club-sandwich', 'itemMap["club-sandwich"] is missing'],
    ['constructor', 'itemMap["constructor"] is missing'],
    [BURGER, `itemMap["${BURGER}"] is missing`],
    ['cheddar', 'itemMap["cheddar"].itemGroup is missing'],
  ])('fails with NeedsOperator for an item that is not in itemMap: %s', (id, message) => {
    const error = errorOf(() => written({ items: [itemOf(id)] }));
    expectError(error, NeedsOperator, message);
  });

  it('fails with NeedsOperator for a modifier without an optionGroup in itemMap', () => {
    const modifier = { serviceModifierId: 'burger-classic', name: 'Burger', quantity: 1 };
    const error = errorOf(() => written({ items: [itemOf('burger-classic', [modifier])] }));
    expect(error).toMatchObject({ name: 'NeedsOperator', message: 'itemMap["burger-classic"].optionGroup is missing' });
  });

  it('has special requests cut to a thousand characters', () => {
    const { checks } = written({ notes: 'x'.repeat(2000), items: [itemOf('burger-classic', [], 'y'.repeat(2000))] });
    const [burger, note] = checks[0]?.selections ?? [];
    expect(note).toHaveProperty('displayName', `${'x'.repeat(996)} […]`);
    expect(burger).toHaveProperty('modifiers.0.displayName', `${'y'.repeat(996)} […]`);
  });

  it('has specialRequestItem as the item of each special request', () => {
    const specialRequestItem = { item: NO_ONIONS, itemGroup: GROUP, optionGroup: '500000008202847047' };
    const { checks } = written({ items: [itemOf('burger-classic', [], 'rare')] }, { specialRequestItem });
    const made = { selectionType: 'SPECIAL_REQUEST', quantity: 1, item: { guid: NO_ONIONS } };
    const [burger, note] = checks[0]?.selections ?? [];
    expect(burger).toHaveProperty('modifiers', [
      { ...made, optionGroup: { multiLocationId: '500000008202847047' }, displayName: 'rare' },
    ]);
    expect(note).toEqual({ ...made, itemGroup: { guid: GROUP }, displayName: 'Table by the terrace, if there is one' });
  });

  it('has no special request if there are no notes', () => {
    const { checks } = written({ notes: '', items: [itemOf('burger-classic')] });
    expect(checks[0]?.selections).toHaveLength(1);
  });

  it.each([
    ['EUR', 3.5],
    ['JPY', 350],
    ['KWD', 0.35],
  ])('has the fee as an open service charge: %s', (currency, chargeAmount) => {
    const { money } = sampleOrder({ type: 'delivery' });
    const order = { ...deliveryTo({}), money: { ...money, currency } };
    expect(written(order, { feeServiceChargeGuid: CHARGE }).checks[0]).toHaveProperty('appliedServiceCharges', [
      { serviceCharge: { guid: CHARGE }, chargeAmount },
    ]);
    expect(written(order).checks[0]).not.toHaveProperty('appliedServiceCharges');
    expect(written({}, { feeServiceChargeGuid: CHARGE }).checks[0]).not.toHaveProperty('appliedServiceCharges');
  });

  it.each([
    ['EUR', 6.11],
    ['JPY', 611],
    ['KWD', 0.611],
  ])('has the sum of the discounts as one open discount if discountGuid is set: %s', (currency, discountAmount) => {
    const options = discounted(currency);
    const order = written(options, { discountGuid: CHARGE });
    expect(order.checks[0]).toHaveProperty('appliedDiscounts', [{ discount: { guid: CHARGE }, discountAmount }]);
    expect(JSON.stringify(order)).not.toContain('TAKE OFF');
    expect(written(options).checks[0]).not.toHaveProperty('appliedDiscounts');
    expect(written({}, { discountGuid: CHARGE }).checks[0]).not.toHaveProperty('appliedDiscounts');
  });

  it.each([
    ['EUR', 45.34, 39.23, '5.00 EUR, Birthday 1.11 EUR'],
    ['JPY', 4534, 3923, '500 JPY, Birthday 111 JPY'],
    ['KWD', 4.534, 3.923, '0.500 KWD, Birthday 0.111 KWD'],
  ])(
    'has discounts in a note for the staff, and not in the payment, without discountGuid: %s',
    async (currency, due, paid, named) => {
      const { seen, create } = await toastThat({ 'POST /orders/v2/prices': [200, { checks: [{ totalAmount: due }] }] });
      await create(discounted(currency), PAID);
      expect(seen[2]).toHaveProperty('body.checks.0.payments.0.amount', paid);
      const note = new RegExp(`^AGE CHECK: .*\nTAKE OFF: Club ${named}\nTable by`);
      expect(seen[2]).toHaveProperty('body.checks.0.selections.3.displayName', expect.stringMatching(note));
    },
  );

  it.each([
    ['+15555550100', { phone: '5555550100' }],
    ['+447911123456', { phoneCountryCode: '44', phone: '7911123456' }],
    ['+353851234567', { phoneCountryCode: '353', phone: '851234567' }],
    ['+61412345678', { phoneCountryCode: '61', phone: '412345678' }],
    ['+79161234567', { phoneCountryCode: '7', phone: '9161234567' }],
  ])('has the telephone number %s as country code and number', (phone, parts) => {
    const { member } = sampleOrder();
    const named = { firstName: 'Ada', lastName: 'Lovelace', email: member.email };
    expect(customerOf({ phone })).toEqual({ ...named, ...parts });
  });

  it('has a name of one word as both first and last name', () => {
    expect(customerOf({ name: ' Cher ' })).toMatchObject({ firstName: 'Cher', lastName: 'Cher' });
  });

  it.each([
    [{ email: undefined }, 'member.email is missing', 'a valid e-mail address'],
    [{ email: `${'a'.repeat(50)}@b.c` }, 'member.email is not an address', 'a valid e-mail address'],
    [{ email: 'zoë@example.com' }, 'member.email is not an address', 'a valid e-mail address'],
    [{ email: 'ada@localhost' }, 'member.email is not an address', 'a valid e-mail address'],
    [{ phone: undefined }, 'member.phone is missing', 'a valid telephone number'],
    [{ phone: '+1555' }, 'member.phone has country code 1', 'a valid telephone number'],
  ])('fails with GiveUp if e-mail or telephone of the member is missing or invalid: %j', (member, message, reason) => {
    const error = errorOf(() => customerOf(member));
    expectError(error, GiveUp, message);
    expect((error as GiveUp).reason).toContain(reason);
  });
});

describe('a rate limit of Toast', () => {
  const LOGIN = 'POST /authentication/v1/authentication/login';
  const PRICES = 'POST /orders/v2/prices';
  const inSeconds = (seconds: number) => String(Math.floor(Date.now() / 1000) + seconds);
  const limited = (headers: Record<string, string>, status = 429): Answers[string] => [status, {}, headers];
  const waitOf = async (request: string, answer: Answers[string]) => {
    const { failure } = await toastThat({ [request]: answer });
    const error = await failure(PAID);
    expect(error).toBeInstanceOf(TryAgain);
    return (error as TryAgain).retryAfterMs;
  };

  it('ends at its reset time if there is no Retry-After', async () => {
    const { seen, failure } = await toastThat({ [PRICES]: limited({ 'x-toast-ratelimit-reset': inSeconds(70) }) });
    const error = (await failure(PAID)) as TryAgain;
    expect(error).toMatchObject({ name: 'TryAgain', sent: false });
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(68_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(71_000);
    answers = {};
    expect(await failure(PAID)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: error.retryAfterMs });
    expect(seen.filter(({ request }) => request === PRICES)).toHaveLength(1);
  });

  it("applies to the other restaurants of the account if it is the account's limit, and does not if it is the limit of an API", async () => {
    for (const [by, requests] of Object.entries({ ACCOUNT: 1, API: 2 })) {
      const { seen, failure, create } = await toastThat({
        [PRICES]: limited({ 'x-toast-ratelimit-by': by, 'retry-after': '70' }),
      });
      await failure(PAID);
      answers = {};
      const other = { ...PAID, restaurantGuid: randomUUID() };
      if (by === 'API') await create({}, other);
      else expect(await failure(other)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
      expect(seen.filter(({ request }) => request === PRICES)).toHaveLength(requests);
    }
  });

  it('ends at its reset time also if it is a limit of logins', async () => {
    expect(await waitOf(LOGIN, limited({ 'x-toast-ratelimit-reset': inSeconds(70) }))).toBeGreaterThan(60_000);
  });

  it('ends at Retry-After if there is also a reset time, but after at most an hour', async () => {
    const reset = { 'x-toast-ratelimit-reset': inSeconds(70) };
    expect(await waitOf(PRICES, limited({ ...reset, 'retry-after': '7' }))).toBe(7000);
    expect(await waitOf(PRICES, limited({ ...reset, 'retry-after': 'soon' }))).toBeGreaterThan(60_000);
    expect(await waitOf(PRICES, limited({ 'x-toast-ratelimit-reset': inSeconds(-70) }))).toBe(0);
    expect(await waitOf(PRICES, limited({ 'x-toast-ratelimit-reset': inSeconds(86_400) }))).toBe(3_600_000);
    expect(await waitOf(PRICES, limited({ 'x-toast-ratelimit-reset': 'soon' }))).toBeUndefined();
  });

  it('is not read from a 503 that has a reset time', async () => {
    expect(await waitOf(PRICES, limited({ 'x-toast-ratelimit-reset': inSeconds(70) }, 503))).toBeUndefined();
  });
});

describe('createOrder', () => {
  it('sends three requests: the login, the price and the order', async () => {
    const { seen, create } = await toastThat();
    expect(await create({ serviceOrderId: 'o-1', placedAt: '2026-01-31T19:30:00+01:00' }, PAID)).toEqual({
      providerOrderId: ORDER,
    });
    const [login, prices, orders] = seen;
    expect(seen).toHaveLength(3);
    expect(login).toMatchObject({
      request: 'POST /authentication/v1/authentication/login',
      body: { clientId: 'client-1', clientSecret: 'client-secret', userAccessType: 'TOAST_MACHINE_CLIENT' },
    });
    expect(login?.headers).not.toHaveProperty('authorization');
    expect(prices?.request).toBe('POST /orders/v2/prices');
    expect(prices?.body).not.toHaveProperty('externalId');
    expect(prices?.body).not.toHaveProperty('checks.0.payments');
    expect(orders).toMatchObject({
      request: 'POST /orders/v2/orders',
      headers: {
        authorization: 'Bearer token-1',
        'toast-restaurant-external-id': RESTAURANT,
        'content-type': 'application/json',
      },
      body: {
        externalId: 'CLUBS:o-1',
        checks: [
          {
            payments: [
              {
                type: 'OTHER',
                otherPayment: { guid: PAYMENT },
                amount: 45.34,
                tipAmount: 3,
                paidDate: '2026-01-31T18:30:00.000+0000',
              },
            ],
          },
        ],
      },
    });
  });

  it.each([
    ['platform', 0],
    ['restaurant', 3],
    ['vendor', 3],
  ])(
    "sends the tip of a delivery unless the platform's courier gets the tip: delivered by the %s",
    async (deliveredBy, tipAmount) => {
      const { seen, create } = await toastThat();
      await create(deliveryTo({}), { ...PAID, deliveredBy });
      await create({ type: 'pickup' }, { ...PAID, deliveredBy });
      const orders = seen.filter(({ request }) => request === 'POST /orders/v2/orders');
      expect(orders).toMatchObject(
        [tipAmount, 3].map((tipAmount) => ({ body: { checks: [{ payments: [{ tipAmount }] }] } })),
      );
    },
  );

  it("pays the amount that Toast's price says, not the platform's total", async () => {
    const { seen, create } = await toastThat({ 'POST /orders/v2/prices': [200, { checks: [{ totalAmount: 19.99 }] }] });
    await create({}, PAID);
    expect(seen[2]).toHaveProperty('body.checks.0.payments.0.amount', 19.99);
  });

  it('requests no price and sends no payment without alternatePaymentGuid', async () => {
    const { seen, create } = await toastThat();
    await create({ serviceOrderId: 'o-1' });
    expect(seen.map(({ request }) => request).slice(1)).toEqual(['POST /orders/v2/orders']);
    expect(seen[1]).toHaveProperty('body.externalId', 'o-1');
    expect(seen[1]).not.toHaveProperty('body.checks.0.payments');
  });

  it('makes the same ticket from GUIDs and from a mix with multiLocationIds', async () => {
    const { pos, contextOf } = await simulated();
    const byGuid = contextOf().settings;
    const otherId = (guid = ''): string => pos.multiLocationIds.get(guid) ?? expect.unreachable(guid);
    const itemMap = Object.fromEntries(
      Object.entries(byGuid.itemMap).map(([ours, { item, itemGroup, optionGroup }], nth) => [
        ours,
        {
          item: nth % 2 === 0 ? otherId(item) : item,
          ...(itemGroup && { itemGroup: otherId(itemGroup) }),
          ...(optionGroup && { optionGroup: otherId(optionGroup) }),
        },
      ]),
    );
    for (const changed of [{}, { itemMap }]) await toast.createOrder(orderOf(), contextOf(changed));
    expect(pos.refusals).toEqual([]);
    const [one, other] = pos.tickets;
    expect(one?.lines.map(({ name }) => name)).toEqual(['Classic Burger', 'Sweet Potato Fries', 'Pale Ale 0.33 l']);
    expect(other?.lines).toEqual(one?.lines);
  });

  it('reads the GUID of the order also from an answer with a list of orders', async () => {
    const { create } = await toastThat({ 'POST /orders/v2/orders': [200, { orders: [{ guid: ORDER }] }] });
    expect(await create()).toEqual({ providerOrderId: ORDER });
  });

  it.each([
    ['pickup', 'estimatedReadyAt', DINING.pickup],
    ['delivery', 'estimatedDeliveryAt', DINING.delivery],
  ] as const)('reads the estimate of a %s as %s', async (type, field, guid) => {
    const times = {
      estimatedFulfillmentDate: '2026-01-31T19:05:00.000+0000',
      modifiedDate: '2026-01-31T18:30:01.000+0000',
    };
    const taken = { guid: ORDER, diningOption: { guid }, ...times };
    const { create } = await toastThat({ 'POST /orders/v2/orders': [200, taken] });
    expect(await create(type === 'pickup' ? { type } : deliveryTo({}))).toEqual({
      providerOrderId: ORDER,
      [field]: '2026-01-31T19:05:00.000+00:00',
      occurredAt: '2026-01-31T18:30:01.000+00:00',
    });
  });

  it('throws TryAgain with sent: true if the answer has no GUID', async () => {
    const { failure } = await toastThat({ 'POST /orders/v2/orders': [200, {}] });
    expect(await failure()).toMatchObject({ name: 'TryAgain', sent: true });
  });

  it.each([
    [400, { message: 'An order with this externalId already exists' }],
    [409, {}],
    [422, ''],
  ])('succeeds after %i if Toast has the order already', async (status, body) => {
    const { seen, create } = await toastThat({
      'POST /orders/v2/orders': [status, body],
      'GET /orders/v2/orders/CLUBS%3Ao%2F1': [200, { guid: ORDER }],
    });
    expect(await create({ serviceOrderId: 'o/1' }, { namingAuthority: 'CLUBS' })).toEqual({ providerOrderId: ORDER });
    expect(seen.at(-1)?.headers).toMatchObject({ authorization: 'Bearer token-1' });
  });

  it('succeeds after a refused price if Toast has the order already', async () => {
    const { create } = await toastThat({
      'POST /orders/v2/prices': [400, {}],
      'GET /orders/v2/orders/CLUBS%3Ao-1': [200, { guid: ORDER }],
    });
    expect(await create({ serviceOrderId: 'o-1' }, PAID)).toEqual({ providerOrderId: ORDER });
  });

  it.each([['<html>'], [{}], [{ guid: '' }], [[]]])(
    'throws TryAgain with sent: true if Toast has the order but shows the order without a GUID: %j',
    async (body) => {
      const { create } = await toastThat({
        'POST /orders/v2/orders': [400, {}],
        'GET /orders/v2/orders/o-1': [200, body],
      });
      await expect(create({ serviceOrderId: 'o-1' })).rejects.toMatchObject({ name: 'TryAgain', sent: true });
    },
  );

  it.each([
    ['', 'externalId must be unique'],
    ['An order with this External ID already exists', ''],
    ['Duplicate external_id', null],
    ['Bad Request', 'external identifier: duplicate'],
  ])(
    'throws TryAgain with sent: true if Toast says that it has the order but does not show the order: %j %j',
    async (message, more) => {
      const { failure } = await toastThat({ 'POST /orders/v2/orders': [400, { message, developerMessage: more }] });
      expect(await failure()).toMatchObject({ name: 'TryAgain', sent: true });
    },
  );

  it.each([
    'A unique menu item is required',
    'The check already exists',
    'External menus are not unique',
    'The externally managed item has a duplicate',
  ])('throws GiveUp after a refusal that is not about a repeated externalId: %s', async (message) => {
    const { failure } = await toastThat({ 'POST /orders/v2/orders': [400, { code: 10_400, message }] });
    expect(await failure()).toBeInstanceOf(GiveUp);
  });

  it.each(['externalId must be unique', 'Invalid external identifier'])(
    'throws GiveUp if the price is refused, even with words about an externalId: %s',
    async (message) => {
      const { failure } = await toastThat({ 'POST /orders/v2/prices': [400, { code: 10_400, message }] });
      expect(await failure(PAID)).toBeInstanceOf(GiveUp);
    },
  );

  it.each([
    [404, {}, /does not know an id/],
    [400, { message: 'Invalid external identifier' }, /check namingAuthority/],
    [400, { message: 'Existing authorities do not name this externalId' }, /check namingAuthority/],
  ])('throws NeedsOperator that says what to check after %i %j', async (status, body, message) => {
    const { failure } = await toastThat({ 'POST /orders/v2/orders': [status, body] });
    expectError(await failure(), NeedsOperator, message);
  });

  it.each([400, 409, 413, 415, 422])("throws GiveUp with Toast's requestId after %i", async (status) => {
    const body = { status, code: 10025, message: 'Ada Lovelace is no name', requestId: '2ea769e2-7fcb' };
    const { failure } = await toastThat({ 'POST /orders/v2/orders': [status, body] });
    expect(await failure()).toMatchObject({
      name: 'GiveUp',
      message: `Toast refused the order with ${status}, code 10025, requestId 2ea769e2-7fcb`,
      reason: 'The restaurant could not take this order.',
      httpStatus: status,
    });
  });

  it('throws GiveUp with our ids of the refused items, without duplicates', async () => {
    const message = `Item (${BURGER.toUpperCase()}) does not belong to the group (${GROUP}); Item (${CHEDDAR}) neither`;
    const { create } = await toastThat({ 'POST /orders/v2/orders': [400, { code: 10_400, message }] });
    await expect(create({ items: [burgerWith({}), burgerWith({})] })).rejects.toMatchObject({
      name: 'GiveUp',
      reasonCode: 'item_unavailable',
      itemIds: ['burger-classic'],
    });
  });

  it('throws GiveUp and sends no order if the price is refused', async () => {
    const { seen, failure } = await toastThat({ 'POST /orders/v2/prices': [400, { code: 10_400 }] });
    expect(await failure(PAID)).toBeInstanceOf(GiveUp);
    expect(seen.map(({ request }) => request)).not.toContain('POST /orders/v2/orders');
  });

  it.each([[502], [504], [408]])('throws TryAgain with sent: false if the price is answered %i', async (status) => {
    const { failure } = await toastThat({ 'POST /orders/v2/prices': [status, ''] });
    const cause = { code: 'pos_failing', httpStatus: status };
    expect(await failure(PAID)).toMatchObject({ name: 'TryAgain', sent: false, httpStatus: undefined, cause });
  });

  it('gives each request its own timeout', async () => {
    const { contextOf } = await toastThat();
    const times: AbortController[] = [];
    const silent: typeof fetch = async (input, init) => {
      const request = new Request(input, init);
      const token = { tokenType: 'Bearer', accessToken: 'token-1', expiresIn: 86_400 };
      if (request.url.endsWith('/login')) return Response.json({ token });
      if (request.url.endsWith('/prices') && (await request.text()).includes('pays')) return Response.json(PRICED);
      times.at(-1)?.abort(new DOMException('no answer', 'TimeoutError'));
      throw init?.signal?.reason;
    };
    const context = { ...contextOf(PAID), signal: new AbortController().signal, fetch: silent };
    const asked = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      const time = new AbortController();
      times.push(time);
      return time.signal;
    });
    onTestFinished(() => asked.mockRestore());
    const price = toast.createOrder(orderOf(), context);
    await expect(price).rejects.toMatchObject({ name: 'TryAgain', sent: false });
    const taken = toast.createOrder(orderOf({ notes: 'pays' }), context);
    await expect(taken).rejects.toMatchObject({ name: 'TryAgain', sent: true });
    // One login, whose time is the token's own, two prices and an order.
    expect(asked.mock.calls.flat()).toEqual([8_000, 32_000, 32_000, 32_000]);
    // The login, the price, the order, and a look at what was refused.
    expect(toast.attemptWithinS).toBeGreaterThanOrEqual(10 + 3 * 32);
  });

  it('findOrder finds an order by our id, and returns undefined if Toast has none', async () => {
    const { contextOf } = await toastThat({ 'GET /orders/v2/orders/CLUBS%3Ao-1': [200, { guid: ORDER }] });
    expect(await toast.findOrder?.('o-1', contextOf(PAID))).toEqual({ providerOrderId: ORDER });
    expect(await toast.findOrder?.('o-2', contextOf(PAID))).toBeUndefined();
  });

  it.each([
    [400, 'NeedsOperator'],
    [410, 'NeedsOperator'],
    [500, 'TryAgain'],
  ])('findOrder throws $1 after $0', async (status, name) => {
    const { contextOf } = await toastThat({ 'GET /orders/v2/orders/CLUBS%3Ao-1': [status, {}] });
    await expect(toast.findOrder?.('o-1', contextOf(PAID))).rejects.toMatchObject({ name });
  });

  it.each([[{}], [{ checks: [{ totalAmount: '9.55' }] }], ['<html>']])(
    'throws TryAgain with sent: false if the price cannot be read: %j',
    async (body) => {
      const { failure } = await toastThat({ 'POST /orders/v2/prices': [200, body] });
      expect(await failure(PAID)).toMatchObject({ name: 'TryAgain', sent: false });
    },
  );

  it('throws TryAgain after twenty requests in a second', async () => {
    const { contextOf, seen } = await toastThat();
    const context = contextOf();
    for (let nth = 0; nth < 20; nth += 1) await toast.createOrder(orderOf(), context);
    await expect(toast.createOrder(orderOf(), context)).rejects.toMatchObject({
      name: 'TryAgain',
      sent: false,
      retryAfterMs: 1000,
    });
    expect(seen).toHaveLength(21);
    await toast.createOrder(orderOf(), { ...context, now: new Date(NOW.getTime() + 1000) });
  });

  it('logs in at most twice an hour if its tokens are refused', async () => {
    const { contextOf, seen } = await toastThat({ 'POST /orders/v2/orders': [401, {}] });
    const context = contextOf();
    const attempt = (now: Date) => toast.createOrder(orderOf(), { ...context, now }).catch((error: Error) => error);
    const logins = () => seen.filter(({ request }) => request.endsWith('/login')).length;
    expect(await attempt(NOW)).toMatchObject({ name: 'NeedsOperator', httpStatus: 401 });
    expect(await attempt(NOW)).toMatchObject({ name: 'NeedsOperator', message: /two logins an hour/ });
    expect(logins()).toBe(2);
    await attempt(new Date(NOW.getTime() + 3_600_000));
    expect(logins(), 'the hour is over').toBe(3);
  });

  it.each([
    [401, {}, NeedsOperator],
    [404, {}, NeedsOperator],
    [200, { token: null }, TryAgain],
    [503, {}, TryAgain],
  ])('sends no order if the request for the token is answered %i', async (status, body, kind) => {
    const { seen, failure } = await toastThat({ 'POST /authentication/v1/authentication/login': [status, body] });
    expect(await failure()).toBeInstanceOf(kind);
    expect(seen).toHaveLength(1);
  });

  it('logs in at most twice an hour if its logins are refused', async () => {
    const { seen, contextOf } = await toastThat({ 'POST /authentication/v1/authentication/login': [401, {}] });
    const context = contextOf();
    const attempt = () => toast.createOrder(orderOf(), context).catch((error: Error) => error);
    for (const _ of [1, 2]) expect(await attempt()).toMatchObject({ name: 'NeedsOperator', httpStatus: 401 });
    expect(await attempt()).toMatchObject({ name: 'NeedsOperator', message: /two logins an hour/ });
    expect(seen).toHaveLength(2);
    const settings = { ...context.settings, clientSecret: 'mended' };
    expect(await toast.createOrder(orderOf(), { ...context, settings }).catch(() => 'asked')).toBe('asked');
    expect(seen, 'other credentials have their own count').toHaveLength(3);
  });

  it('does not count a login that was answered 503 as one of the two an hour', async () => {
    const { seen, contextOf } = await toastThat();
    const context = contextOf();
    const login = 'POST /authentication/v1/authentication/login';
    answers[login] = [503, {}];
    for (let nth = 0; nth < 3; nth += 1) await toast.createOrder(orderOf(), context).catch(() => {});
    delete answers[login];
    await toast.createOrder(orderOf(), context);
    expect(seen).toHaveLength(5);
  });

  it('does not count a login as one of the two an hour if it was not sent because the host is not allowed', async () => {
    const { seen, contextOf } = await toastThat();
    const context = contextOf();
    const refused = async (): Promise<never> => {
      throw new NeedsOperator('not this host');
    };
    for (let nth = 0; nth < 3; nth += 1) {
      await expect(toast.createOrder(orderOf(), { ...context, fetch: refused })).rejects.toThrow('not this host');
    }
    await toast.createOrder(orderOf(), context);
    expect(seen).toHaveLength(2);
  });

  it('uses one token for two restaurants of a client', async () => {
    const { contextOf, seen } = await toastThat();
    const context = contextOf();
    await toast.createOrder(orderOf(), context);
    const settings = { ...context.settings, restaurantGuid: ORDER };
    await toast.createOrder(orderOf(), { ...context, settings });
    expect(seen.filter(({ request }) => request.endsWith('/login'))).toHaveLength(1);
  });
});

describe('translateWebhook', () => {
  // https://doc.toasttab.com/doc/devguide/apiGuestOrderFulfillmentStatusWebhook.html
  const details = {
    eventGuid: '9cdcc8d4-87d7-481e-8d31-d0916c47b575',
    orderGuid: ORDER,
    restaurantGuid: RESTAURANT,
    guestOrderStatus: 'READY_FOR_PICKUP',
    lastUpdated: '2023-11-09T18:06:59.383Z',
    version: null,
  };
  const guest = (changed: object) => eventOf('guestOrderStatusUpdated', { ...details, ...changed });
  const updated = (order: object, eventType = 'order_updated') =>
    eventOf(eventType, { restaurantGuid: RESTAURANT, order: { guid: ORDER, externalId: null, ...order } });

  it("reads the example of Toast's documentation", () => {
    expect(translate(guest({}))).toEqual([
      {
        status: 'ready',
        providerOrderId: ORDER,
        nativeStatus: 'READY_FOR_PICKUP',
        occurredAt: '2023-11-09T18:06:59.383Z',
      },
    ]);
  });

  it.each(['order_updated', 'channel_order_updated'])('reads an order that was not approved from %s', (eventType) => {
    const order = { approvalStatus: 'NOT_APPROVED', voided: false, deliveryInfo: null };
    expect(translate(updated(order, eventType))).toEqual([
      {
        status: 'failed',
        providerOrderId: ORDER,
        nativeStatus: 'NOT_APPROVED',
        reason: 'The restaurant did not approve the order in time.',
        reasonCode: 'no_answer',
        occurredAt: '2023-11-09T18:06:59.394Z',
      },
    ]);
  });

  it('reads a voided order as cancelled even if it was delivered', () => {
    const order = { voided: true, approvalStatus: 'NOT_APPROVED', deliveryInfo: { deliveryState: 'DELIVERED' } };
    expect(translate(updated(order))).toMatchObject([{ status: 'cancelled', nativeStatus: 'voided' }]);
  });

  it('returns no event for an order that changed without a new status', () => {
    expect(translate(updated({ approvalStatus: 'APPROVED', voided: false, deleted: true }))).toEqual([]);
    expect(translate(updated({}))).toEqual([]);
  });

  it('gives an approved order with an estimate the status `received`', () => {
    const estimate = {
      estimatedFulfillmentDate: '2023-11-09T18:30:00.000+0000',
      diningOption: { guid: DINING.pickup },
    };
    const order = { approvalStatus: 'APPROVED', modifiedDate: '2023-11-09T18:06:58.000+0000', ...estimate };
    expect(translate(updated(order))).toEqual([
      {
        status: 'received',
        providerOrderId: ORDER,
        nativeStatus: 'APPROVED',
        estimatedReadyAt: '2023-11-09T18:30:00.000+00:00',
        occurredAt: '2023-11-09T18:06:58.000+00:00',
      },
    ]);
    expect(translate(updated({ ...order, approvalStatus: 'NEEDS_APPROVAL' }))).toEqual([]);
    expect(translate(updated({ ...order, diningOption: { guid: GROUP } })), 'neither of the two').toEqual([]);
    const promisedDate = '2023-11-09T13:30:00.000-0500';
    expect(translate(updated({ ...order, promisedDate })), 'our own time is no estimate').toEqual([]);
    const cooking = { ...order, checks: [{ selections: [{ fulfillmentStatus: 'SENT' }] }] };
    expect(translate(updated(cooking))).toMatchObject([
      { status: 'in_progress', estimatedReadyAt: '2023-11-09T18:30:00.000+00:00' },
    ]);
  });

  it('returns no event for a closed order with closedMeansCompleted: false', () => {
    const settings = { closedMeansCompleted: false };
    expect(translate(guest({ guestOrderStatus: 'CLOSED' }), settings)).toEqual([]);
    expect(translate(guest({ guestOrderStatus: 'VOIDED' }), settings)).toHaveLength(1);
    expect(translate(updated({ deliveryInfo: { deliveryState: 'DELIVERED' } }), settings)).toHaveLength(1);
  });

  it('returns no event for another restaurant’s webhook', () => {
    for (const eventType of ['guestOrderStatusUpdated', 'order_updated', 'channel_order_updated']) {
      expect(translate(eventOf(eventType, { restaurantGuid: GROUP, order: 7, orderGuid: 7 }))).toEqual([]);
    }
    expect(translate(guest({ restaurantGuid: RESTAURANT.toUpperCase() }))).toHaveLength(1);
  });

  it('parses a body only once, with or without verifying the signature', () => {
    const webhook = signed(guest({}));
    const parse = vi.spyOn(JSON, 'parse');
    try {
      for (const verified of [false, true]) {
        parse.mockClear();
        expect(toast.translateWebhook({ ...webhook, verified }, settingsOf())).toHaveLength(1);
        expect(parse).toHaveBeenCalledTimes(1);
      }
    } finally {
      parse.mockRestore();
    }
  });

  it.each([
    ['2023-11-09T18:06:59.383+0000', '2023-11-09T18:06:59.383+00:00'],
    ['2023-11-09T13:06:59-0500', '2023-11-09T13:06:59-05:00'],
    ['2023-11-09T18:06:59.383', undefined],
    ['yesterday', undefined],
    [1699553219, undefined],
    [undefined, undefined],
  ])('returns an event even if its time is unreadable: %j', (lastUpdated, occurredAt) => {
    const [event] = translate(guest({ lastUpdated }));
    expect(event?.status).toBe('ready');
    expect(event?.occurredAt).toBe(occurredAt);
  });

  it.each([
    [guest({ orderGuid: 7 }), 'details.orderGuid: Invalid input'],
    [guest({ guestOrderStatus: null }), 'details.guestOrderStatus: Invalid input'],
    [guest({ restaurantGuid: null }), 'details.restaurantGuid: Invalid input'],
    [updated({ guid: '' }), 'details.order.guid: Too small'],
    ['{"timestamp":"t","details":{}}', 'eventType: Invalid input'],
  ])('throws Poison that names the unreadable field', (body, message) => {
    const error = errorOf(() => translate(body));
    expectError(error, Poison, message);
  });

  it('accepts a signature by any of the subscriptions’ secrets', () => {
    const webhookSecret = ['guest-secret', 'order-secret'];
    for (const secret of webhookSecret) expect(translate(guest({}), { webhookSecret }, secret)).toHaveLength(1);
    expect(() => translate(guest({}), { webhookSecret }, 'anonymous')).toThrow(NotAuthentic);
  });

  it.each(['{ no JSON', '[]', '{}', '{"timestamp":1}', '"timestamp"', ''])(
    'throws NotAuthentic for a body without a timestamp: %s',
    (body) => {
      for (const given of ['', '1', 'undefined']) {
        const signature = createHmac('sha256', 'guest-secret').update(`${body}${given}`).digest('base64');
        const webhook = webhookAt(NOW, body, { 'toast-signature': signature });
        expect(() => toast.translateWebhook(webhook, settingsOf())).toThrow(NotAuthentic);
      }
    },
  );

  it('verifies the bytes of the body unchanged, including spaces', () => {
    const body = ` {"timestamp" : "2023-11-09T18:06:59.394Z" , "eventType":"anything"}\n`;
    expect(translate(body)).toEqual([]);
    const others = Buffer.from(JSON.stringify(JSON.parse(body)));
    expect(() => toast.translateWebhook({ ...signed(body), body: others }, settingsOf())).toThrow(NotAuthentic);
  });

  function eventOf(eventType: string, about: object): string {
    const timestamp = '2023-11-09T18:06:59.394Z';
    const guid = '796818ae-9687-44ba-9a93-949d5a2361f3';
    return JSON.stringify({ timestamp, eventCategory: 'any', eventType, guid, details: about });
  }

  it.each([
    ['restaurant_availability', 'availability_offline', 'OFFLINE', 'closed'],
    ['restaurant_availability', 'availability_online', 'ONLINE', 'open'],
    ['restaurant_availability_toggle', 'toggle_availability_offline', 'OFFLINE', 'closed'],
    ['restaurant_availability_toggle', 'toggle_availability_online', 'ONLINE', 'open'],
    ['menu_availability', 'availability_online', 'ONLINE', undefined],
  ])('reads open or closed from the event %s %s', (eventCategory, eventType, status, state) => {
    const timestamp = NOW.toISOString();
    const details = { restaurantGuid: RESTAURANT.toUpperCase(), status, reasonKey: 'X', reason: 'x' };
    const webhook = signed(JSON.stringify({ timestamp, eventCategory, eventType, guid: ORDER, details }));
    const until = new Date(NOW.getTime() + 60 * 60_000);
    const report = state === 'closed' ? { state, until } : state && { state };
    expect(toast.readKitchen?.(webhook, settingsOf())).toEqual(report);
  });

  function translate(body: string, settings: object = {}, secret?: string) {
    return toast.translateWebhook(signed(body, secret), settingsOf(settings));
  }

  /** As https://doc.toasttab.com/doc/devguide/apiMessageSigning.html does it. */
  function signed(body: string, secret = 'guest-secret'): Webhook {
    const { timestamp } = JSON.parse(body) as { timestamp: string };
    const signature = createHmac('sha256', secret).update(`${body}${timestamp}`).digest('base64');
    return webhookAt(NOW, body, { 'toast-signature': signature });
  }
});

describe('readStatus', () => {
  const READ = `GET /orders/v2/orders/${ORDER}`;
  const shown = {
    guid: ORDER,
    externalId: null,
    voided: false,
    approvalStatus: 'APPROVED',
    modifiedDate: '2026-01-31T18:29:15.000+0000',
  };
  const cooked = (...stages: string[]) => ({
    checks: [{ paymentStatus: 'CLOSED', selections: stages.map((fulfillmentStatus) => ({ fulfillmentStatus })) }],
  });

  it.each<[string, object, string[]]>([
    ['no status before the kitchen has an item', cooked('NEW', 'HOLD'), []],
    ['in progress once the kitchen has an item', cooked('NEW', 'SENT'), ['in_progress SENT']],
    ['in progress if only some items are ready', cooked('READY', 'NEW'), ['in_progress SENT']],
    ['ready if all items are ready', cooked('READY', 'READY'), ['ready READY']],
    [
      'ready if all items but voided ones and notes are ready',
      {
        checks: [
          {
            selections: [
              { fulfillmentStatus: 'READY' },
              { fulfillmentStatus: 'NEW', voided: true },
              { fulfillmentStatus: 'NEW', selectionType: 'SPECIAL_REQUEST' },
            ],
          },
        ],
      },
      ['ready READY'],
    ],
    ['no status of an order with only notes', { checks: [{ selections: [] }] }, []],
    ['no status of an order that is only closed and paid', { ...cooked('NEW'), closedDate: shown.modifiedDate }, []],
    [
      'the status of the delivery if it has begun',
      { ...cooked('READY'), deliveryInfo: { deliveryState: 'PICKED_UP' } },
      ['en_route PICKED_UP'],
    ],
    ['cancelled if it is voided', { ...cooked('READY'), voided: true }, ['cancelled voided']],
  ])("reads %s, like the order's webhook", async (_name, changed, said) => {
    const { contextOf } = await toastThat({ [READ]: [200, { ...shown, ...changed }] });
    const events = (await toast.readStatus?.({ providerOrderId: ORDER }, orderOf(), contextOf())) ?? [];
    expect(events.map(({ status, nativeStatus }) => `${status} ${nativeStatus}`)).toEqual(said);
    const details = { restaurantGuid: RESTAURANT, order: { ...shown, ...changed } };
    const event = { timestamp: '2026-01-31T18:29:15.000Z', eventType: 'order_updated', details };
    const webhook = { ...webhookAt(NOW, JSON.stringify(event)), verified: true };
    const told = toast.translateWebhook(webhook, settingsOf());
    const instant = ({ occurredAt = '', ...event }) => ({ ...event, at: Date.parse(occurredAt) });
    expect(events.map(instant)).toEqual(told.map(instant));
  });

  it('returns our id if the answer has it, and throws TryAgain for another id', async () => {
    const order = orderOf({ serviceOrderId: 'o-1' });
    const read = async (externalId: string) => {
      const { contextOf } = await toastThat({ [READ]: [200, { ...shown, ...cooked('SENT'), externalId }] });
      return toast.readStatus?.({ providerOrderId: ORDER }, order, contextOf(PAID));
    };
    expect(await read('CLUBS:o-1')).toMatchObject([{ providerOrderId: ORDER, serviceOrderId: 'o-1' }]);
    await expect(read('CLUBS:o-2')).rejects.toBeInstanceOf(TryAgain);
  });

  it('reads the order by our id if Toast’s id is unknown', async () => {
    const read = async (answer: Answers[string]) => {
      const { contextOf, seen } = await toastThat({ 'GET /orders/v2/orders/CLUBS%3Ao-1': answer });
      const order = orderOf({ serviceOrderId: 'o-1' });
      const events = await toast.readStatus?.({}, order, contextOf(PAID));
      expect(seen).toHaveLength(2);
      return events;
    };
    const order = { ...shown, ...cooked('SENT'), externalId: 'CLUBS:o-1' };
    expect(await read([200, order])).toMatchObject([{ providerOrderId: ORDER, serviceOrderId: 'o-1' }]);
    expect(await read([404, { message: 'Order not found' }])).toEqual([]);
    await expect(read([400, { message: 'The GUID was malformed' }])).rejects.toBeInstanceOf(NeedsOperator);
    await expect(read([200, { ...order, externalId: null }])).rejects.toBeInstanceOf(TryAgain);
  });

  it('reads the status of a delivery only with the scope delivery_info.address:read', async () => {
    const { pos, contextOf } = await simulated();
    const context = contextOf();
    const order = orderOf({ type: 'delivery' });
    const ref = await toast.createOrder(order, context);
    for (const native of ['READY_FOR_PICKUP', 'PICKED_UP']) {
      pos.become?.(first(pos.tickets), native);
    }
    expect(await toast.readStatus?.(ref, order, context)).toMatchObject([{ status: 'en_route' }]);
    pos.scopes = pos.scopes.filter((scope) => scope !== 'delivery_info.address:read');
    expect(await toast.readStatus?.(ref, order, context)).toMatchObject([{ status: 'ready' }]);
    pos.scopes = ['orders.orders:write'];
    await expect(toast.readStatus?.(ref, order, context)).rejects.toThrow(/scopes orders:read and orders.channel:read/);
  });
});

describe('cancelOrder', () => {
  async function stage(order = orderOf(), changed: object = {}) {
    const { pos, contextOf } = await simulated();
    const context = contextOf(changed);
    const ref = await toast.createOrder(order, context);
    return { pos, ticket: first(pos.tickets), cancel: async () => toast.cancelOrder?.(ref, order, context) };
  }

  it('voids an order that has discounts', async () => {
    const { ticket, cancel } = await stage(orderOf(discounted('EUR')));
    expect(await cancel()).toBe('cancelled');
    expect(ticket).toMatchObject({ cancelled: true, discount: 611 });
  });

  it('returns cancelled for a voided order without voiding it again', async () => {
    const { pos, ticket, cancel } = await stage();
    pos.become?.(ticket, 'voided');
    expect(await cancel()).toBe('cancelled');
    expect(pos.cancels).toBe(0);
  });

  it('returns cancelled after a refusal if the order was voided before our request arrived', async () => {
    const { pos, ticket, cancel } = await stage();
    pos.miscancel = () => {
      pos.become?.(ticket, 'voided');
      return { status: 400, body: { message: 'The order is already voided' } };
    };
    expect(await cancel()).toBe('cancelled');
  });

  it('returns undefined after a refusal, so that a person must cancel', async () => {
    const { pos, cancel } = await stage();
    const body = { status: 400, code: 10_400, message: 'Only OTHER payments may be voided', requestId: 'r-1' };
    pos.miscancel = () => ({ status: 400, body });
    expect(await cancel()).toBeUndefined();
    expect([pos.cancels, pos.reads]).toEqual([1, 2]);
  });

  it('returns undefined without a request for an order that is not paid at Toast', async () => {
    const { pos, ticket, cancel } = await stage(orderOf(), { alternatePaymentGuid: undefined });
    expect(await cancel()).toBeUndefined();
    expect([pos.cancels, pos.refusals, ticket.cancelled]).toEqual([0, [], undefined]);
  });

  it('throws NeedsOperator that names orders.channel:void if that scope is missing', async () => {
    const { pos, cancel } = await stage();
    pos.scopes = pos.scopes.filter((scope) => scope !== 'orders.channel:void');
    expectError(await rejectionOf(cancel()), NeedsOperator, 'orders.channel:void');
  });

  it('throws TryAgain with sent: false if the order cannot be read', async () => {
    const { pos, cancel } = await stage();
    pos.misread = () => 'drop-answer';
    await expect(cancel()).rejects.toMatchObject({ name: 'TryAgain', sent: false });
    expect(pos.cancels).toBe(0);
  });
});

describe('check', () => {
  const ORDERS =
    'GET /orders/v2/ordersBulk?startDate=2026-01-31T18%3A29%3A15.000%2B0000&endDate=2026-01-31T18%3A30%3A15.000%2B0000&pageSize=1';

  it.each([
    ['an unknown one', { pickup: DINING.pickup }, 'diningOptionGuids.pickup is not a dining option of this restaurant'],
    [
      'those of pickup and delivery swapped',
      undefined,
      'diningOptionGuids.pickup is a dining option for DELIVERY: use one for TAKE_OUT',
    ],
  ])('throws NeedsOperator that names a wrong dining option: %s', async (_name, changed, words) => {
    const { pos, contextOf } = await simulated();
    const { pickup, delivery } = Settings.parse(pos.settings).diningOptionGuids;
    const diningOptionGuids = changed === undefined ? { pickup: delivery, delivery: pickup } : { delivery, ...changed };
    expectError(await failureOf(contextOf({ diningOptionGuids })), NeedsOperator, words);
  });

  it('throws NeedsOperator if specialRequestItem is not set', async () => {
    const { contextOf } = await simulated();
    const error = await failureOf(contextOf({ specialRequestItem: undefined }));
    expectError(error, NeedsOperator, 'specialRequestItem');
  });

  it('passes with the scopes of orders alone', async () => {
    const { pos, contextOf } = await simulated();
    pos.scopes = ['orders.orders:write', 'orders:read', 'orders.channel:read'];
    await toast.check?.(contextOf({ diningOptionGuids: DINING }));
    pos.scopes = ['orders.orders:write'];
    expectError(await failureOf(contextOf()), NeedsOperator, 'orders:read');
  });

  it('throws an error if the dining option for pickup is one for curbside pickup', async () => {
    const CURB = { guid: DINING.pickup, behavior: 'TAKE_OUT', curbside: true };
    const { contextOf, seen } = await toastThat({ [ORDERS]: [200, []], 'GET /config/v2/diningOptions': [200, [CURB]] });
    const error = await failureOf(contextOf());
    expect(error.message).toBe('diningOptionGuids.pickup is a dining option for curbside pickup: use one for TAKE_OUT');
    expect(seen).toHaveLength(3);
  });

  it('passes if the dining option may be on a page of the list that check did not read', async () => {
    const more = { 'toast-next-page-token': 'page-2' };
    const { contextOf } = await toastThat({ [ORDERS]: [200, []], 'GET /config/v2/diningOptions': [200, [], more] });
    const specialRequestItem = { item: CHEDDAR, itemGroup: OPTIONS, optionGroup: OPTIONS };
    await toast.check?.(contextOf({ specialRequestItem }));
  });

  it.each([
    ['no such restaurant', [404, {}], NeedsOperator, /to show orders \(404\): check restaurantGuid and baseUrl/],
    ['an answer that is not a list', [200, {}], NeedsOperator, /list of orders cannot be read/],
    ['a 503 answer', [503, {}], TryAgain, /503/],
  ] as const)('throws an error that says what to check after %s', async (_name, answer, type, words) => {
    const { contextOf } = await toastThat({ [ORDERS]: answer });
    expectError(await failureOf(contextOf()), type, words);
  });

  const failureOf = (context: PosContext<Settings>) => rejectionOf(toast.check?.(context));
});

describe('connect', () => {
  it('logs in and says what to ask Toast for', async () => {
    const { contextOf, seen } = await toastThat();
    const connect = toast.connect ?? expect.unreachable('cannot connect');
    const context = contextOf();
    const { done, todo, settings } = await connect({ ...context, webhookUrl: WEBHOOK_URL, locations: 1 });
    expect(done).toEqual(['Toast accepts clientId and clientSecret.']);
    expect(todo[0]).toContain(`for the restaurant ${RESTAURANT}, with this URL: ${WEBHOOK_URL}`);
    expect(todo.join(' ')).toContain('a subscription to restaurant_availability');
    expect(todo.at(-1)).toBe('Put the secret of each subscription into webhookSecret. It takes several.');
    expect(todo.join(' ')).not.toMatch(/client-secret|guest-secret/);
    expect(settings).toBeUndefined();

    const again = await connect({ ...context, webhookUrl: WEBHOOK_URL, locations: 3 });
    expect(again.todo.at(-1)).toContain('each category needs 3 subscriptions');
    expect(seen).toHaveLength(1);
  });

  it('throws NeedsOperator if the credentials are wrong', async () => {
    const { contextOf } = await toastThat({ 'POST /authentication/v1/authentication/login': [401, {}] });
    await expect(toast.connect?.({ ...contextOf(), webhookUrl: WEBHOOK_URL, locations: 1 })).rejects.toThrow(
      NeedsOperator,
    );
  });
});

describe('the simulated Toast', () => {
  it('sends a webhook three times after 503 and once after 401', async () => {
    const { pos, ticket } = await kitchen();
    const attempts: unknown[] = [];
    let status = 503;
    const server = await serveHttp((request, response) => {
      attempts.push(request.headers['toast-attempt-number']);
      sendJson(response, status, {});
    });
    stopAtEnd(server);
    expect(await pos.report(server.url, ticket, 'CLOSED')).toMatchObject({ status: 503 });
    expect(attempts).toEqual(['1', '2', '3']);
    status = 401;
    await pos.report(server.url, ticket, 'CLOSED');
    expect(attempts).toHaveLength(4);
  });

  it("refuses the orders that Toast's documentation says it refuses", async () => {
    const { pos, order, post } = await kitchen();
    const withCheck = (changed: object) => ({ ...order, checks: [{ ...order.checks[0], ...changed }] });
    const [burger] = order.checks[0]?.selections ?? [];
    const refused: [object, number, RegExp][] = [
      [{ ...order, diningOption: { guid: ORDER } }, 404, /diningOption/],
      [{ ...order, mistyped: 1 }, 400, /Unrecognized key/],
      [{ ...order, externalId: 'no-authority' }, 400, /externalId/],
      [withCheck({ tabName: 'x'.repeat(256) }), 400, /tabName/],
      [withCheck({ customer: undefined }), 400, /customer is required/],
      [withCheck({ selections: [{ ...burger, quantity: 3 }] }), 400, /a modifier's quantity is not its item's/],
      [withCheck({ selections: [{ ...burger, itemGroup: { guid: ORDER } }] }), 404, /not found in its itemGroup/],
      [withCheck({ selections: [{ ...burger, item: { multiLocationId: '500' } }] }), 404, /not found in its itemGroup/],
      [withCheck({ selections: [{ ...burger, item: { guid: ORDER, multiLocationId: '5' } }] }), 400, /or both/],
      [withCheck({ selections: [burger, { ...REQUEST, quantity: 1 }] }), 400, /selections.1.item/],
      [withCheck({ selections: [burger, { ...REQUEST, item: { guid: BURGER } }] }), 400, /selections.1.quantity/],
      [withCheck({ selections: [{ ...burger, modifiers: [{ ...REQUEST, quantity: 2 }] }] }), 400, /modifiers.0.item/],
      [withCheck({ payments: [{ type: 'CASH', amount: 1, tipAmount: 0 }] }), 400, /payments/],
    ];
    for (const [body, status, message] of refused) {
      const answer = await post(body);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({ status, requestId: expect.any(String) });
      expect(pos.refusals.at(-1)).toMatch(message);
    }
    expect(pos.tickets).toHaveLength(1);
  });

  /** With one order in it, and what that was. */
  async function kitchen() {
    const { pos, contextOf } = await simulated();
    const context = contextOf();
    const { settings, credentials } = context;
    await toast.createOrder(orderOf(), context);
    const { baseUrl, clientId, clientSecret, restaurantGuid } = settings;
    const accessToken = await credentials.accessToken({
      seed: { baseUrl, clientId, clientSecret },
      obtain: () => expect.unreachable('a token is kept'),
    });
    const headers = {
      authorization: `Bearer ${accessToken}`,
      'toast-restaurant-external-id': restaurantGuid,
      'content-type': 'application/json',
    };
    const post = (body: object) =>
      fetch(`${baseUrl}/orders/v2/orders`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { pos, ticket: first(pos.tickets), order: writeOrder(orderOf(), settings, NOW), post };
  }
});

const PRICED = { guid: null, checks: [{ amount: 38.1, totalAmount: 45.34 }] };
const REQUEST = { selectionType: 'SPECIAL_REQUEST', displayName: 'Well done' };
const PAID = { alternatePaymentGuid: PAYMENT, namingAuthority: 'CLUBS' };

type Answers = Record<string, readonly [status: number, body: unknown, headers?: Record<string, string>]>;
let answers: Answers = {};

/** Answers as told, by method and path, and otherwise as Toast does when all is well and the order is new. */
async function toastThat(told: Answers = {}) {
  answers = told;
  const seen: { request: string; headers: object; body: unknown }[] = [];
  let tokens = 0;
  // Limits are kept by the host.
  const baseUrl = `https://${randomUUID()}.example.com`;
  const answer: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    const text = await request.text();
    const name = `${request.method} ${request.url.slice(baseUrl.length)}`;
    const sent = Object.fromEntries(request.headers);
    seen.push({ request: name, headers: sent, body: text === '' ? undefined : JSON.parse(text) });
    const well: Answers = {
      'POST /authentication/v1/authentication/login': [
        200,
        { token: { tokenType: 'Bearer', accessToken: `token-${(tokens += 1)}`, expiresIn: 86_400 }, status: 'SUCCESS' },
      ],
      'POST /orders/v2/prices': [200, PRICED],
      'POST /orders/v2/orders': [200, { guid: ORDER, entityType: 'Order' }],
    };
    const [status, body, headers] = answers[name] ?? well[name] ?? [404, {}];
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), {
      status,
      ...(headers && { headers }),
    });
  };
  const contextOf = (changed: object = {}) => contextAt(NOW, settingsOf({ baseUrl, ...changed }), { fetch: answer });
  const create = (options: SampleOptions = {}, changed: object = {}) =>
    toast.createOrder(orderOf(options), contextOf(changed));
  return {
    seen,
    contextOf,
    create,
    async failure(changed: object = {}): Promise<Error> {
      const error = await rejectionOf(create({}, changed));
      expect(error.message).not.toMatch(/client-secret|Lovelace|ada@example/);
      return error;
    },
  };
}

/** A simulated Toast, and a location whose settings differ from its own as told. */
async function simulated() {
  const pos = stopAtEnd(await startToast({ hurry: 60_000 }));
  const credentials = inMemoryCredentials(() => NOW);
  const contextOf = (changed: object = {}) =>
    contextAt(NOW, Settings.parse({ ...pos.settings, ...changed }), { credentials });
  return { pos, contextOf };
}

function discounted(currency: string): SampleOptions {
  const { money } = sampleOrder();
  const discounts = [
    { name: 'Club', amount: 500 },
    { name: 'Birthday', amount: 111 },
  ];
  return { money: { ...money, currency, discount: 611, total: money.total - 611 }, discounts };
}

function settingsOf(changed: object = {}): Settings {
  return Settings.parse({ ...GIVEN, ...changed });
}

function written(options: SampleOptions = {}, settings: object = {}) {
  return writeOrder(orderOf(options), settingsOf(settings), NOW);
}

function customerOf(changed: object) {
  const { member } = sampleOrder();
  return first(written({ member: { ...member, ...changed } }).checks).customer;
}

function itemOf(serviceItemId: string, modifiers: KitchenOrder['items'][number]['modifiers'] = [], notes = '') {
  return { serviceItemId, name: 'Burger', quantity: 1, notes, ageRestricted: false, modifiers };
}

/** In Boston, but for what is changed. */
function deliveryTo(changed: object): SampleOptions {
  const destination = { line1: '401 Park Drive', city: 'Boston', postalCode: '02215', region: 'MA', latitude: 42.34 };
  return { type: 'delivery', fulfillment: { type: 'delivery', destination: { ...destination, ...changed } } };
}
