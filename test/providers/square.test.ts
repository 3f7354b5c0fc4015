import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { GiveUp, NotAuthentic, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef, StatusEvent } from '../../src/core/domain/order.ts';
import type { Connection, Credentials, Grant, PosContext } from '../../src/core/domain/provider.ts';
import { square } from '../../src/providers/square/index.ts';
import { Settings } from '../../src/providers/square/payloads.ts';
import { keyOf, referenceOf } from '../../src/providers/square/write-order.ts';
import { MERCHANT } from '../../world/pos/square/square-oauth.ts';
import { startSquare, type SquareSimulator } from '../../world/pos/square/start-square.ts';
import { sampleOrder, type SampleOptions } from '../../world/platform/sample-order.ts';
import { inMemoryCredentials } from '../../packages/provider-kit/contract/in-memory-credentials.ts';
import { providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { burgerWith, contextAt, expectError, first, orderOf, stopAtEnd, webhookAt } from './stage-parts.ts';

const EVENTS = ['order.fulfillment.updated', 'order.updated', 'oauth.authorization.revoked'];

const WEBHOOK_URL = 'https://expediter.example.com/webhook/square/club-1?token=t-1';
const NOW = new Date('2026-01-31T18:30:00Z');
const DAY_MS = 86_400_000;

/** A seller without taxes: Square's own are other amounts than ours, once something is taken off. */
async function startUntaxed(options?: Parameters<typeof startSquare>[0]): Promise<SquareSimulator> {
  const sim = await startSquare(options);
  sim.catalog.taxPercentage = 0;
  return sim;
}

const paid = ({ money: { subtotal, discount = 0, tip, fee } }: CanonicalOrder): number =>
  subtotal - discount + tip + fee;

providerContract(square, {
  start: startUntaxed,
  paid,
  wrongSettings: {
    accessToken: [undefined, '', ' EAAA', 7],
    locationId: [undefined, '', 'L1 ', 'L/1', 7],
    // Either a token, or what obtains one.
    refreshToken: ['', 'EQAA\n', 7],
    clientSecret: ['', null],
    authorizationCode: ['', ' code'],
    signatureKey: ['', 'key\n', null],
    notificationUrl: ['', 'webhook', 'ftp://expediter.example.com', 'https://me:word@expediter.example.com'],
    baseUrl: ['', 'connect.squareup.com', 'file:///etc/passwd'],
    ownCouriers: ['no', 0],
    deliveredBy: ['', 'channel', true],
    prepMinutes: [20, { pickup: 0 }, { delivery: 'PT30M' }, { delivery: 1441 }, { pickup: 1.5 }, { dinein: 15 }],
    itemMap: [7, { burger: '' }, { burger: 7 }],
  },
  secretSettings: ['accessToken', 'signatureKey'],
  provenSettings: ['accessToken', 'locationId'],
  lacks: ['nesting'],
  refusal: (detail) => refusal(400, 'INVALID_VALUE', { detail, field: 'order.line_items' }),
  statuses: {
    PROPOSED: 'received',
    RESERVED: 'in_progress',
    PREPARED: 'ready',
    COMPLETED: 'completed',
    CANCELED: 'cancelled',
    FAILED: 'failed',
    unchanged: null,
    'order.updated CANCELED': 'cancelled',
    'order.updated OPEN': null,
    'order.updated DRAFT': null,
    'order.updated COMPLETED': null,
    'order.created': null,
    'webhooks.test_notification': null,
  },
  cancels: { answer: 'cancelled', tooLate: 'COMPLETED' },
  // A fulfillment that FAILED is no rejection: nobody says why, and readStatus has it below.
  rejections: {
    'a fulfillment that is cancelled': { by: 'CANCELED', reasonCode: 'restaurant_cancelled' },
    'an order that is cancelled': { by: 'order.updated CANCELED', reasonCode: 'restaurant_cancelled' },
    'a line that Square refuses': {
      by: refusal(400, 'VALUE_TOO_LONG', { field: 'order.line_items[1].note' }),
      reasonCode: 'technical',
      itemIds: ['fries-sweet-potato'],
    },
    'an address that Square refuses': {
      by: refusal(400, 'VALUE_TOO_LONG', {
        field: 'order.fulfillments[0].delivery_details.recipient.address.postal_code',
      }),
      reasonCode: 'invalid_address',
    },
    'a postal code': { by: refusal(400, 'INVALID_POSTAL_CODE'), reasonCode: 'invalid_address' },
    'a country': { by: refusal(400, 'UNSUPPORTED_COUNTRY'), reasonCode: 'invalid_address' },
    'a currency that is not the location’s': { by: refusal(400, 'CURRENCY_MISMATCH'), reasonCode: 'payment' },
    'a field': { by: refusal(400, 'INVALID_VALUE', { field: 'order.ticket_name' }), reasonCode: 'technical' },
    'no field': { by: refusal(400, 'BAD_REQUEST'), reasonCode: 'technical' },
    'a telephone number': { by: refusal(400, 'INVALID_PHONE_NUMBER'), reasonCode: 'technical' },
    'too much': { by: refusal(413, 'REQUEST_ENTITY_TOO_LARGE'), reasonCode: 'technical' },
  },
  // That an order was made, as it is said, is no state, and PROPOSED what every one begins with.
  reads: Object.fromEntries(
    [
      'PROPOSED',
      'unchanged',
      'order.updated OPEN',
      'order.updated DRAFT',
      'order.updated COMPLETED',
      'order.created',
      'webhooks.test_notification',
    ].map((native) => [native, []]),
  ),
});

describe('square by OAuth', () => {
  const ofSettings = ['properties and settings', 'createOrder fails', 'tokens', 'check'];
  const met = new Set<string>();
  providerContract(
    square,
    {
      start: (options) => startUntaxed({ ...options, byOauth: true }),
      paid,
      wrongSettings: {
        accessToken: ['EAAA'],
        clientId: [undefined, '', ' sq0idp'],
        clientSecret: [undefined, '', 7],
        refreshToken: ['', 'EQAA\n'],
      },
      secretSettings: ['clientSecret', 'refreshToken', 'signatureKey'],
      provenSettings: ['clientId', 'clientSecret', 'refreshToken', 'locationId'],
      lacks: ['nesting'],
      refusal: (detail) => refusal(400, 'INVALID_VALUE', { detail, field: 'order.line_items' }),
      statuses: { PREPARED: 'ready' },
    },
    // All else is the same whatever token it is asked with.
    {
      it,
      describe(name, body) {
        met.add(name);
        if (ofSettings.includes(name) || name.endsWith(': square')) describe(name, body);
      },
    },
  );
  it('runs each group of claims about settings', () => expect([...met]).toEqual(expect.arrayContaining(ofSettings)));
});

describe("the seller's token", () => {
  it('is renewed by the daily job after six days, and a failed renewal stops no order', async () => {
    const at = await stage('EUR', true);
    const days = (count: number): Date => new Date(NOW.getTime() + count * DAY_MS);
    await at.renew({ now: days(0) });
    await at.renew({ now: days(5) });
    expect(at.sim.grants).toBe(1);
    at.sim.fail = only('POST /oauth2/token', { status: 503 });
    expect(await rejectionOf(at.renew({ now: days(6) }))).toBeInstanceOf(TryAgain);
    await at.create(orderOf(), { now: days(6) });
    at.sim.fail = undefined;
    await at.renew({ now: days(7) });
    expect(at.sim.grants).toBe(2);
    await at.create(orderOf(), { now: days(7) });
    expect(at.sim.tickets).toHaveLength(2);
    expect(at.sim.refusals).toEqual([]);
  });

  it('causes NeedsOperator with reconnect_needed if the seller has revoked it', async () => {
    const at = await stage('EUR', true);
    await at.create(orderOf());
    at.sim.oauth.withdraw();
    const error = await rejectionOf(at.create(orderOf()));
    expect(error).toMatchObject({ name: 'NeedsOperator', cause: { code: 'reconnect_needed', httpStatus: 401 } });
    expectNoSecrets(at.sim, [error.message]);
  });

  it('cannot be renewed with a wrong clientSecret: the error is NeedsOperator without reconnect_needed', async () => {
    const at = await stage('EUR', true);
    const settings = { ...at.settings, clientSecret: 'sq0csp-wrong' };
    const error = await rejectionOf(at.create(orderOf(), { settings }));
    expect(error.cause).toMatchObject({ code: 'pos_refused_us' });
    expectError(error, NeedsOperator, 'clientSecret');
  });

  it('is missing if there is no refreshToken: createOrder throws NeedsOperator with reconnect_needed', async () => {
    const at = await stage('EUR', true);
    const { refreshToken: _none, ...settings } = at.settings;
    const error = await rejectionOf(at.create(orderOf(), { settings: Settings.parse(settings) }));
    expect(error).toMatchObject({ name: 'NeedsOperator', cause: { code: 'reconnect_needed' } });
    expect(error.message).toContain('expediter provider connect');
    expect(square.grantSeed?.(Settings.parse(settings))).toBeUndefined();
  });

  it('that cannot be renewed causes a warning of check with the days until the token expires', async () => {
    const at = await stage();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    const granted = await grantOf(at, settings);
    expect(granted.lastsS).toBeGreaterThan(29 * 86_400);
    expect(granted.lastsS).toBeLessThanOrEqual(30 * 86_400);
    expect(await at.check({ settings, now: new Date() })).toBe(
      'the accessToken expires in 29 days and cannot be renewed: use a refreshToken instead',
    );
  });

  it("does not expire if it is the application's own token", async () => {
    const at = await stage();
    expect(await grantOf(at, at.settings)).not.toHaveProperty('lastsS');
    expect(await at.check()).toBeUndefined();
  });

  it.each([[{ status: 200, body: { access_token: 'EAAA' } }], [{ status: 200, body: '<html>' }]])(
    'causes TryAgain with sent: false if the request for the token is answered %j',
    async (fault) => {
      const at = await stage('EUR', true);
      at.sim.fail = only('POST /oauth2/token', fault);
      expect(await rejectionOf(at.create(orderOf()))).toMatchObject({ name: 'TryAgain', sent: false });
    },
  );

  /** What the daily look learns of a location's token. */
  async function grantOf(at: Awaited<ReturnType<typeof stage>>, settings: Settings): Promise<Grant> {
    const asked: Parameters<Credentials['accessToken']>[0][] = [];
    const credentials: Credentials = { accessToken: async (about) => (asked.push(about), '') };
    await at.renew({ settings, credentials, now: new Date() });
    expect(asked.map(({ seed }) => seed)).toEqual([square.grantSeed?.(settings)]);
    return first(asked).obtain(undefined, AbortSignal.timeout(60_000));
  }
});

describe('an order for Square', () => {
  it('has all documented fields for a pickup', async () => {
    const at = await stage();
    const order = orderOf({ serviceOrderId: 'order-1', callOutCode: 'K472' });
    await at.create(order);
    const { itemMap, locationId } = at.settings;
    const eur = (amount: number) => ({ amount, currency: 'EUR' });
    expect(at.bodyOf('POST /v2/orders')).toEqual({
      idempotency_key: keyOf('order', 'order-1'),
      order: {
        location_id: locationId,
        reference_id: 'order-1',
        ticket_name: 'K472 Ada Lovelace',
        line_items: [
          {
            catalog_object_id: itemMap['burger-classic'],
            quantity: '2',
            base_price_money: eur(1290),
            note: 'One of them well done',
            modifiers: [
              { catalog_object_id: itemMap['cheddar'], quantity: '1', base_price_money: eur(150) },
              { catalog_object_id: itemMap['no-onions'], quantity: '1' },
            ],
          },
          { catalog_object_id: itemMap['fries-sweet-potato'], quantity: '1', base_price_money: eur(450) },
          { catalog_object_id: itemMap['beer-pale-ale'], quantity: '1', base_price_money: eur(480) },
        ],
        pricing_options: { auto_apply_taxes: true },
        fulfillments: [
          {
            type: 'PICKUP',
            state: 'PROPOSED',
            pickup_details: {
              recipient: {
                display_name: 'Ada Lovelace',
                phone_number: '+493012345678',
                email_address: 'ada@example.com',
              },
              schedule_type: 'ASAP',
              prep_time_duration: 'PT15M',
              note: 'AGE CHECK: Pale Ale 0.33 l\nTable by the terrace, if there is one',
            },
          },
        ],
      },
    });
    expect(at.bodyOf('POST /v2/payments')).toEqual({
      idempotency_key: keyOf('payment', 'order-1'),
      source_id: 'EXTERNAL',
      amount_money: eur(4534),
      tip_money: eur(300),
      order_id: at.sim.orders[0]?.id,
      location_id: locationId,
      reference_id: 'order-1',
      external_details: { type: 'EXTERNAL', source: 'Online ordering', source_id: 'order-1' },
    });
  });

  it('has each discount with its name and the scope ORDER', async () => {
    const at = await stage();
    const { money } = sampleOrder();
    const discounts = [
      { name: 'N'.repeat(300), amount: 400 },
      { name: 'Nothing', amount: 0 },
      { name: 'Birthday', amount: 100 },
    ];
    const order = orderOf({ money: { ...money, discount: 500, total: money.total - 500 }, discounts });
    await at.create(order);
    const off = (name: string, amount: number) => {
      return { name, type: 'FIXED_AMOUNT', amount_money: { amount, currency: 'EUR' }, scope: 'ORDER' };
    };
    expect(at.bodyOf('POST /v2/orders')).toMatchObject({
      order: { discounts: [off(`${'N'.repeat(251)} […]`, 400), off('Birthday', 100)] },
    });
    // 19 % of each line without its share of the discount.
    const tax = 475 + 74 + 79;
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({
      amount_money: { amount: money.subtotal - 500 + tax },
      note: 'Paid online: 43.34 EUR. This order at Square: 42.38 EUR.',
    });
    expect(at.sim.refusals).toEqual([]);
  });

  it('has each fee by its name as a service charge', async () => {
    const at = await stage();
    const { money } = orderOf();
    const fees = [
      { name: 'Bag', amount: 20 },
      { name: 'Free delivery', amount: 0 },
      { name: 'Courier tip', amount: 330 },
    ];
    const total = money.total + 350;
    await at.create(orderOf({ money: { ...money, fee: 350, total }, fees }));
    expect(at.bodyOf('POST /v2/orders')).toMatchObject({
      order: {
        service_charges: [
          { name: 'Bag', amount_money: { amount: 20, currency: 'EUR' } },
          { name: 'Fee', amount_money: { amount: 330, currency: 'EUR' } },
        ],
      },
    });
    // The tip of the payment is the staff's.
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({ tip_money: { amount: money.tip } });
  });

  it("has the address, fee, courier's tip and time of a delivery", async () => {
    const at = await stage();
    const order = orderOf({ type: 'delivery', placedAt: '2026-01-31T18:00:00Z' });
    order.fulfillment.requestedAt = '2026-01-31T20:15:00+01:00';
    await at.create(order, { settings: { ...at.settings, deliveredBy: 'platform' } });
    expect(at.bodyOf('POST /v2/orders')).toMatchObject({
      order: {
        service_charges: [
          {
            name: 'Fee',
            amount_money: { amount: 350, currency: 'EUR' },
            calculation_phase: 'TOTAL_PHASE',
            taxable: false,
          },
          {
            name: 'Courier tip',
            amount_money: { amount: 300, currency: 'EUR' },
            calculation_phase: 'TOTAL_PHASE',
            taxable: false,
          },
        ],
        fulfillments: [
          {
            type: 'DELIVERY',
            state: 'PROPOSED',
            delivery_details: {
              recipient: {
                display_name: 'Ada Lovelace',
                address: {
                  address_line_1: 'Lindenstraße 14',
                  address_line_2: '3. OG',
                  locality: 'Berlin',
                  postal_code: '10969',
                  country: 'DE',
                },
              },
              schedule_type: 'SCHEDULED',
              deliver_at: '2026-01-31T20:15:00+01:00',
              dropoff_notes: 'Ring twice',
            },
          },
        ],
      },
    });
  });

  it.each([
    [{ pickup: 8 }, 'PT8M', 'PT30M'],
    [{ delivery: 90 }, 'PT15M', 'PT90M'],
  ])('has the preparation times of prepMinutes: %j', async (prepMinutes, pickup, delivery) => {
    const at = await stage();
    const settings = Settings.parse({ ...at.sim.settings, prepMinutes });
    for (const [type, duration] of [['pickup', pickup] as const, ['delivery', delivery] as const]) {
      await at.create(orderOf({ type }), { settings });
      expect(at.bodyOf('POST /v2/orders')).toMatchObject({
        order: { fulfillments: [{ [`${type}_details`]: { schedule_type: 'ASAP', prep_time_duration: duration } }] },
      });
    }
    expect(at.sim.refusals).toEqual([]);
  });

  it('has the same body after its requested time has passed, because Square refuses a changed body', async () => {
    const at = await stage();
    const order = orderOf({ placedAt: '2026-01-31T18:00:00Z' });
    order.fulfillment.requestedAt = '2026-01-31T18:45:00Z';
    await at.create(order, { now: new Date('2026-01-31T18:40:00Z') });
    await at.create(order, { now: new Date('2026-01-31T18:50:00Z') });
    expect(at.sim.refusals).toEqual([]);
    expect(at.sim.tickets).toMatchObject([{ requests: 2 }]);
  });

  it("is cut to Square's limits", async () => {
    const at = await stage();
    const member = { id: 'm-1', name: 'N'.repeat(300), email: `${'e'.repeat(300)}@example.com` };
    const notes = 'n'.repeat(3000);
    await at.create(orderOf({ member, notes, items: [burgerWith({ notes })] }));
    const delivery = orderOf({ type: 'delivery', callOutCode: 'K472', member, notes });
    delivery.fulfillment.destination = { line1: 'x', country: 'Germany', region: 'BE', instructions: notes };
    await at.create(delivery);
    expect(at.sim.refusals).toEqual([]);
    expect(at.sim.tickets[0]?.lines[0]?.note).toHaveLength(2000);
    expect(at.sim.tickets[0]?.note).toHaveLength(500);
    expect(at.sim.tickets[1]?.note).toHaveLength(550 + 1 + 550);
    const body = JSON.stringify(at.bodyOf('POST /v2/orders'));
    expect(body).toContain(`"ticket_name":"K472 ${'N'.repeat(21)} […]"`);
    expect(body).toContain('"administrative_district_level_1":"BE"');
    expect(body).not.toMatch(/email_address|"country"/);
  });

  it('has no empty fields', async () => {
    const at = await stage();
    const { notes: _notes, ...rest } = orderOf({ type: 'delivery', member: { id: 'm-1', name: 'Ada', email: 'none' } });
    const destination = { line1: 'x', line2: '', city: '', postalCode: '', instructions: '' };
    const items = rest.items.filter((item) => !item.ageRestricted);
    await at.create({ ...rest, items, fulfillment: { type: 'delivery', destination } });
    expect(at.sim.refusals).toEqual([]);
    const body = JSON.stringify(at.bodyOf('POST /v2/orders'));
    expect(body).toContain('"recipient":{"display_name":"Ada","address":{"address_line_1":"x"}}');
    expect(body).not.toMatch(/"fulfillments".*"note"|dropoff/);
  });

  it("has no price for an item if the order gives none, so that Square uses the catalog's price", async () => {
    const at = await stage();
    const order = orderOf();
    for (const item of order.items) delete item.unitPrice;
    await at.create(order);
    expect(JSON.stringify(at.bodyOf('POST /v2/orders'))).not.toContain('"base_price_money":{"amount":1290');
    expect(at.sim.tickets).toMatchObject([{ paid: order.money.total }]);
  });

  it('uses our own id unchanged for an item that is not in the itemMap', async () => {
    const at = await stage();
    const order = orderOf();
    const { itemMap } = at.settings;
    for (const item of order.items) item.serviceItemId = itemMap[item.serviceItemId] ?? '';
    await at.create(order, { settings: { ...at.settings, itemMap: { cheddar: '', ...itemMap } } });
    expect(at.sim.tickets).toHaveLength(1);
  });

  it('uses our own id unchanged if only the prototype of itemMap has that id', async () => {
    const at = await stage();
    const modifiers = [{ serviceModifierId: 'toString', name: 'Cheddar', quantity: 1 }];
    await rejectionOf(at.create(orderOf({ items: [burgerWith({ serviceItemId: 'constructor', modifiers })] })));
    expect(at.bodyOf('POST /v2/orders')).toMatchObject({
      order: { line_items: [{ catalog_object_id: 'constructor', modifiers: [{ catalog_object_id: 'toString' }] }] },
    });
  });
});

describe('ids for Square', () => {
  it('a reference is at most 40 characters, and longer ids get distinct references', () => {
    expect(referenceOf('x'.repeat(40))).toBe('x'.repeat(40));
    const one = referenceOf(`${'x'.repeat(41)}1`);
    expect(one).toMatch(/^x{23}-[\da-f]{16}$/);
    expect(referenceOf(`${'x'.repeat(41)}1`)).toBe(one);
    expect(referenceOf(`${'x'.repeat(41)}2`)).not.toBe(one);
    expect(referenceOf('🎂'.repeat(100)).isWellFormed()).toBe(true);
  });

  it('a key has 43 characters, and differs for an order and its payment', () => {
    const long = '🎂'.repeat(127);
    const keys = [keyOf('order', long), keyOf('payment', long), keyOf('pay-order', long), keyOf('order', 'o-1')];
    expect(new Set(keys).size).toBe(4);
    for (const key of keys) expect(key).toMatch(/^[\w-]{43}$/);
  });
});

describe('the payment', () => {
  it("is Square's total if this total differs from ours, with both sums in its note", async () => {
    const at = await stage();
    at.sim.catalog.taxPercentage = 7;
    const order = orderOf();
    await at.create(order);
    expect(at.sim.tickets).toMatchObject([{ paid: 3810 + 268 + 300 }]);
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({
      note: 'Paid online: 48.34 EUR. This order at Square: 43.78 EUR.',
    });
  });

  it('has the sums in its note with three decimals for KWD', async () => {
    const at = await stage('KWD');
    at.sim.catalog.taxPercentage = 0;
    const order = orderOf();
    order.money.currency = 'KWD';
    await at.create(order);
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({
      note: 'Paid online: 4.834 KWD. This order at Square: 4.110 KWD.',
    });
  });

  it('is left out if nothing is due', async () => {
    const at = await stage();
    const order = gift(0);
    await at.create(order);
    await at.create(order);
    expect(at.sim.refusals).toEqual([]);
    expect(at.bodyOf(`POST /v2/orders/${at.sim.orders[0]?.id}/pay`)).toEqual({
      idempotency_key: keyOf('pay-order', order.serviceOrderId),
      payment_ids: [],
    });
    expect(at.sim.tickets).toMatchObject([{ paid: 0, requests: 2 }]);
  });

  it('can be only a tip', async () => {
    const at = await stage();
    await at.create(gift(300));
    expect(at.sim.refusals).toEqual([]);
    expect(at.sim.tickets).toMatchObject([{ paid: 300 }]);
  });

  it.each<[string, object, SampleOptions['type'], number]>([
    ["a delivery by the platform's courier", { deliveredBy: 'platform' }, 'delivery', 0],
    ["a delivery by Square's courier", { deliveredBy: 'vendor' }, 'delivery', 0],
    ["a delivery by the seller's own staff", {}, 'delivery', 300],
    ['a pickup', { deliveredBy: 'platform' }, 'pickup', 300],
    ['the old setting, if staff do not deliver', { ownCouriers: false }, 'delivery', 0],
    ['the old setting, if staff deliver', { ownCouriers: true }, 'delivery', 300],
  ])('has a tip for the staff only if the staff hand over the order: %s', async (_whose, settings, type, pooled) => {
    const at = await stage();
    const order = orderOf(type && { type });
    await at.create(order, { settings: { ...at.settings, ...settings } });
    expect(at.sim.refusals).toEqual([]);
    expect(at.sim.orders).toMatchObject([{ tip: pooled }]);
    expect(at.sim.tickets).toMatchObject([{ paid: order.money.total }]);
    expect(at.bodyOf('POST /v2/payments')).not.toHaveProperty('note');
  });

  it("includes the tip even if the order's charges have no names", async () => {
    const at = await stage();
    const total_money = { amount: 4534, currency: 'EUR' };
    const order = { id: 'order-of-square', total_money, service_charges: [{ name: null }, {}] };
    at.sim.fail = only('POST /v2/orders', { status: 200, body: { order } });
    await rejectionOf(at.create(orderOf()));
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({ tip_money: { amount: 300 } });
  });

  it("has no tip for the staff if all of it is the courier's tip", async () => {
    const at = await stage();
    const { fulfillment } = orderOf({ type: 'delivery' });
    await at.create({ ...gift(300), fulfillment }, { settings: { ...at.settings, deliveredBy: 'platform' } });
    expect(at.sim.refusals).toEqual([]);
    expect(at.sim.orders).toMatchObject([{ tip: 0 }]);
    expect(at.sim.tickets).toMatchObject([{ paid: 300 }]);
  });

  it.each([
    ['restaurant', 'platform'],
    ['platform', 'restaurant'],
  ] as const)('includes the tip once if deliveredBy changes from %s to %s between two attempts', async (was, is) => {
    const at = await stage();
    const order = orderOf({ type: 'delivery' });
    at.sim.fail = only('POST /v2/orders', 'drop-answer');
    await rejectionOf(at.create(order, { settings: { ...at.settings, deliveredBy: was } }));
    at.sim.fail = undefined;
    await at.create(order, { settings: { ...at.settings, deliveredBy: is } });
    expect(at.sim.orders).toMatchObject([{ tip: was === 'restaurant' ? 300 : 0 }]);
    expect(at.sim.tickets).toMatchObject([{ paid: order.money.total }]);
  });

  it.each<[string, number, object]>([
    // Said to be refused, it is not in doubt: the deadline ends it, not an operator.
    ['429', 429, { name: 'TryAgain', sent: false, retryAfterMs: 3000, httpStatus: 429 }],
    ['500', 500, { name: 'TryAgain', sent: false, httpStatus: 500 }],
    ['503', 503, { name: 'TryAgain', sent: false, retryAfterMs: 3000, httpStatus: 503 }],
    ['502', 502, { name: 'TryAgain', sent: true, httpStatus: 502 }],
    ['409', 409, { name: 'TryAgain', sent: true, httpStatus: 409 }],
    ['401', 401, { name: 'NeedsOperator', httpStatus: 401 }],
    ['403', 403, { name: 'NeedsOperator', httpStatus: 403 }],
  ])(
    'is made by the repeat of createOrder, on the same order, if it first fails with %s',
    async (_name, status, error) => {
      const at = await stage();
      const order = orderOf();
      at.sim.fail = only('POST /v2/payments', { status, headers: { 'retry-after': '3' } });
      const failure = await rejectionOf(at.create(order));
      expect(failure).toMatchObject(error);
      expect(failure.message).toMatch(/^the order exists but is not paid: /);
      expect(at.sim.orders).toMatchObject([{ isPaid: false }]);
      expect(at.sim.tickets).toHaveLength(0);

      at.sim.fail = undefined;
      const ref = await at.create(order, { now: new Date(NOW.getTime() + 60_000) });
      expect(ref).toEqual({ providerOrderId: at.sim.orders[0]?.id });
      expect(at.sim.orders).toMatchObject([{ isPaid: true }]);
      expect(at.sim.tickets).toHaveLength(1);
    },
  );

  it.each(['POST /v2/orders', 'POST /v2/payments'])(
    'is made once although the answer to %s was lost',
    async (route) => {
      const at = await stage();
      const order = orderOf();
      at.sim.fail = only(route, 'drop-answer');
      expect(await rejectionOf(at.create(order))).toMatchObject({ name: 'TryAgain', sent: true });
      at.sim.fail = undefined;
      await at.create(order);
      expect(at.sim.orders).toMatchObject([{ isPaid: true }]);
      expect(at.sim.tickets).toHaveLength(1);
    },
  );

  it('that is refused causes GiveUp', async () => {
    const at = await stage();
    at.sim.fail = only('POST /v2/payments', refusal(400, 'BAD_REQUEST'));
    expect(await rejectionOf(at.create(orderOf()))).toMatchObject({
      name: 'GiveUp',
      reason: 'The restaurant could not take this order.',
    });
    expect(at.sim.tickets).toHaveLength(0);
  });

  it('that is refused because the order is paid counts as made', async () => {
    const { at, order, ref } = await placed();
    at.sim.fail = only('POST /v2/payments', refusal(400, 'IDEMPOTENCY_KEY_REUSED'));
    expect(await at.create(order)).toEqual(ref);
  });

  it('that is refused causes TryAgain with sent: true if Square does not show the order', async () => {
    const at = await stage();
    const order = orderOf();
    await at.create(order);
    at.sim.fail = (route) => {
      if (route === 'POST /v2/payments') return refusal(400, 'BAD_REQUEST');
      return route.startsWith('GET ') ? { status: 500 } : undefined;
    };
    expect(await rejectionOf(at.create(order))).toMatchObject({ name: 'TryAgain', sent: true });
  });
});

describe('createOrder after IDEMPOTENCY_KEY_REUSED', () => {
  it('finds the order that an earlier attempt left, and pays it', async () => {
    const at = await stage();
    const order = orderOf({ serviceOrderId: 'order-1' });
    at.sim.fail = only('POST /v2/orders', 'drop-answer');
    await rejectionOf(at.create(order));
    const full = { status: 200, body: { orders: Array.from({ length: 100 }, () => ({})), cursor: '0' } };
    let searches = 0;
    at.sim.fail = (route) => (route === 'POST /v2/orders/search' && (searches += 1) === 1 ? full : undefined);
    const itemMap = { ...at.settings.itemMap, 'fries-sweet-potato': at.settings.itemMap['beer-pale-ale'] ?? '' };
    const ref = await at.create(order, { settings: { ...at.settings, itemMap } });
    expect(ref).toEqual({ providerOrderId: at.sim.orders[0]?.id });
    expect(at.bodyOf('POST /v2/orders/search'), 'the next page').toMatchObject({ limit: 100, cursor: '0' });
    expect([at.sim.orders.length, at.sim.tickets.length]).toEqual([1, 1]);
  });

  it('returns a paid order without a second payment', async () => {
    const { at, order, ref } = await placed();
    expect(await at.create({ ...order, notes: 'another' })).toEqual(ref);
    expect(at.sim.calls.filter(({ route }) => route === 'POST /v2/payments')).toHaveLength(1);
  });

  it('ignores orders without our reference', async () => {
    const at = await stage();
    const order = orderOf({ serviceOrderId: 'order-1' });
    await at.create(order);
    const found = { id: 'found', reference_id: 'order-1', total_money: { amount: 4534, currency: 'EUR' } };
    const orders = [null, {}, { id: 'till', reference_id: null }, found];
    at.sim.fail = only('POST /v2/orders/search', { status: 200, body: { orders } });
    await rejectionOf(at.create({ ...order, notes: 'another' }));
    expect(at.bodyOf('POST /v2/payments')).toMatchObject({ order_id: 'found' });
  });

  it('throws GiveUp if it finds no order of ours', async () => {
    const at = await stage();
    at.sim.fail = only('POST /v2/orders', refusal(400, 'IDEMPOTENCY_KEY_REUSED'));
    expect(await rejectionOf(at.create(orderOf()))).toBeInstanceOf(GiveUp);
  });

  it('throws TryAgain with sent: true if the search cannot be read', async () => {
    const at = await stage();
    at.sim.fail = (route) =>
      route === 'POST /v2/orders' ? refusal(400, 'IDEMPOTENCY_KEY_REUSED') : { status: 200, body: { orders: 'none' } };
    expect(await rejectionOf(at.create(orderOf()))).toMatchObject({ name: 'TryAgain', sent: true });
  });
});

describe('a refusal by Square', () => {
  it.each<[string, object, string]>([
    ['422 UNPROCESSABLE_ENTITY causes GiveUp', refusal(422, 'UNPROCESSABLE_ENTITY'), 'GiveUp'],
    ['404 NOT_FOUND causes NeedsOperator', refusal(404, 'NOT_FOUND'), 'NeedsOperator'],
    ['404 of a proxy causes NeedsOperator', { status: 404, body: '<html>' }, 'NeedsOperator'],
    ['405 causes NeedsOperator', refusal(405, 'METHOD_NOT_ALLOWED'), 'NeedsOperator'],
    ['400 LOCATION_MISMATCH causes NeedsOperator', refusal(400, 'LOCATION_MISMATCH'), 'NeedsOperator'],
    [
      '400 of the location causes NeedsOperator',
      refusal(400, 'INVALID_VALUE', { field: 'order.location_id' }),
      'NeedsOperator',
    ],
    [
      '400 of a catalog object causes NeedsOperator',
      refusal(400, 'INVALID_VALUE', { field: 'order.line_items[0].catalog_object_id' }),
      'NeedsOperator',
    ],
    [
      '400 of the application causes NeedsOperator',
      refusal(400, 'X', { category: 'AUTHENTICATION_ERROR' }),
      'NeedsOperator',
    ],
    ['409 CONFLICT causes TryAgain', refusal(409, 'CONFLICT'), 'TryAgain'],
    ['409 of a proxy causes TryAgain', { status: 409, body: '' }, 'TryAgain'],
    ['400 TEMPORARY_ERROR causes TryAgain', refusal(400, 'TEMPORARY_ERROR'), 'TryAgain'],
    ['400 RATE_LIMITED causes TryAgain', refusal(400, 'RATE_LIMITED'), 'TryAgain'],
    ['408 REQUEST_TIMEOUT causes TryAgain', refusal(408, 'REQUEST_TIMEOUT'), 'TryAgain'],
    ['400 API_ERROR causes TryAgain', refusal(400, 'X', { category: 'API_ERROR' }), 'TryAgain'],
    ['200 without an order causes TryAgain', { status: 200, body: {} }, 'TryAgain'],
    ['200 without a total causes TryAgain', { status: 200, body: { order: { id: 'o' } } }, 'TryAgain'],
  ])('%s', async (_name, fault, name) => {
    const at = await stage();
    at.sim.fail = only('POST /v2/orders', fault as { status: number });
    const error = await rejectionOf(at.create(orderOf()));
    expect(error).toMatchObject({ name, ...(name === 'TryAgain' && { sent: true }) });
    expect(error.message).not.toContain('Ada');
  });

  it('is reported with code and field, but not with its detail, which may quote the member', async () => {
    const at = await stage();
    const detail = 'Ada Lovelace: `x` is no name';
    at.sim.fail = only('POST /v2/orders', refusal(400, 'INVALID_VALUE', { field: 'order.ticket_name', detail }));
    const error = await rejectionOf(at.create(orderOf()));
    expect(error.message).toBe('Square refused the order with 400 INVALID_VALUE (order.ticket_name)');
    at.sim.fail = only('POST /v2/orders', refusal(400, 'Ada Lovelace', { field: 'Ada Lovelace' }));
    expect((await rejectionOf(at.create(orderOf()))).message).toBe('Square refused the order with 400 (no code)');
  });

  it.each(['burger-classic', 'cheddar'])(
    'causes NeedsOperator that names the item or modifier if the catalog does not have it: %s',
    async (ours) => {
      const at = await stage();
      const settings = { ...at.settings, itemMap: { ...at.settings.itemMap, [ours]: 'NOSUCHOBJECT' } };
      const error = await rejectionOf(at.create(orderOf(), { settings }));
      expectError(error, NeedsOperator, '404 NOT_FOUND (catalog object NOSUCHOBJECT)');
      await at.create(orderOf());
      expect(at.sim.tickets).toHaveLength(1);
    },
  );
});

describe('signatures of Square', () => {
  // Published by Square in square-nodejs-sdk, tests/integration/webhooks.test.ts.
  const key = 'Ibxx_5AKakO-3qeNVR61Dw';
  const url = 'https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9';
  const body =
    '{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}';
  const signature = 'GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=';
  const vector = { key, url, body, signature };

  it.each<[string, typeof vector]>([
    ['of a test notification', vector],
    [
      'of plain text',
      {
        key: 'signature-key',
        url: 'https://webhook.site/webhooks',
        body: '{"data":{"type":"webhooks","id":"fake_id"}}',
        signature: 'W3FlCNk5IA3ZQ2LHTWoajvzfaDu/OwY2tNHIHC3IUOA=',
      },
    ],
    [
      'of text with characters that some encoders escape',
      {
        key: 'signature-key',
        url: 'https://webhook.site/webhooks',
        body: '{"data":{"type":"webhooks","id":">id<"}}',
        signature: 'Cxt7+aTi4rKgcA0bC4g9EHdVtLSDWdqccmL5MvihU4U=',
      },
    ],
  ])("are valid if they are from Square's documentation: %s", (_name, published) => {
    // The second and third have no type, which is judged after the signature.
    expect(() => verify(published)).not.toThrow(NotAuthentic);
    expect(() => verify({ ...published, url: WEBHOOK_URL }, { notificationUrl: published.url })).not.toThrow(
      NotAuthentic,
    );
  });

  it('cover notificationUrl if it is set, and not the called URL', () => {
    const elsewhere = 'https://expediter.example.com/webhook/square/club-2?token=t-2';
    expect(() => verify({ ...vector, url: elsewhere }, { notificationUrl: WEBHOOK_URL })).toThrow(
      new NotAuthentic('the signature in x-square-hmacsha256-signature is wrong'),
    );
  });

  it('are refused if neither notificationUrl nor PUBLIC_URL gives the URL', () => {
    for (const path of ['', '/webhook/square/club-1?token=t-1']) {
      const forPath = createHmac('sha256', key).update(path).update(body).digest('base64');
      expect(() => verify({ ...vector, url: path, signature: forPath })).toThrow(
        new NotAuthentic('the URL that the signature covers is unknown: set notificationUrl or PUBLIC_URL'),
      );
    }
  });

  it('are refused without signatureKey, with an error that says how to get it', () => {
    const settings = Settings.parse({ accessToken: 'a', locationId: 'L1' });
    expect(() => square.translateWebhook(webhookAt(NOW, body), settings)).toThrow(
      new NotAuthentic('signatureKey is missing: run expediter provider connect, which puts it into the settings'),
    );
  });

  it('need PUBLIC_URL unless notificationUrl is set', () => {
    const settings = Settings.parse({ accessToken: 'a', locationId: 'L1' });
    expect(square.needsPublicUrl?.(settings)).toBe(true);
    expect(square.needsPublicUrl?.({ ...settings, notificationUrl: WEBHOOK_URL })).toBe(false);
  });

  function verify({ key, url, body, signature }: typeof vector, more: Partial<Settings> = {}) {
    const settings = { ...Settings.parse({ accessToken: 'a', locationId: 'L1', signatureKey: key }), ...more };
    const headers = { 'x-square-hmacsha256-signature': signature };
    try {
      return square.translateWebhook(webhookAt(NOW, body, headers, url), settings);
    } catch (error) {
      if (error instanceof Poison) return [];
      throw error;
    }
  }
});

describe('events of Square', () => {
  // From Square's own reference, of order.fulfillment.updated.
  const published = {
    merchant_id: '5S9MXCS9Y99KK',
    type: 'order.fulfillment.updated',
    event_id: 'b3adf364-4937-436e-a833-49c72b4baee8',
    created_at: '2020-04-16T23:16:30.789Z',
    data: {
      type: 'order_fulfillment_updated',
      id: 'eA3vssLHKJrv9H0IdJCM3gNqfdcZY',
      object: {
        order_fulfillment_updated: {
          created_at: '2020-04-16T23:14:26.129Z',
          fulfillment_update: [
            { fulfillment_uid: 'VWJ1N9leLqjSDLvF2hvYjD', new_state: 'RESERVED', old_state: 'PROPOSED' },
          ],
          location_id: 'FPYCBCHYMXFK1',
          order_id: 'eA3vssLHKJrv9H0IdJCM3gNqfdcZY',
          state: 'OPEN',
          updated_at: '2020-04-16T23:16:30.123456789Z',
          version: 6,
        },
      },
    },
  };
  const updated = published.data.object.order_fulfillment_updated;

  it("are read with status, time and Square's id of the order", () => {
    expect(translate(published)).toEqual([
      {
        status: 'in_progress',
        providerOrderId: 'eA3vssLHKJrv9H0IdJCM3gNqfdcZY',
        nativeStatus: 'RESERVED',
        occurredAt: '2020-04-16T23:16:30.123456789Z',
      },
    ]);
  });

  it('are read as one status for each changed state', () => {
    const event = fulfillmentUpdated([
      { new_state: 'PROPOSED' },
      { old_state: null, new_state: 'PROPOSED' },
      { old_state: 'PREPARED', new_state: 'PREPARED' },
      { old_state: 'PREPARED', new_state: 'COMPLETED' },
      { old_state: 'PREPARED', new_state: 'constructor' },
    ]);
    expect(translate(event).map(({ status }) => status)).toEqual(['received', 'received', 'completed']);
  });

  it.each([
    [['CANCELED', 'PREPARED'], ['ready']],
    [['FAILED', 'PREPARED'], ['ready']],
    [
      ['FAILED', 'CANCELED'],
      ['failed', 'cancelled'],
    ],
  ])('do not end an order while one of its fulfillments continues: %j', async (states, statuses) => {
    const moved = states.map((new_state) => ({ old_state: 'RESERVED', new_state }));
    expect(translate(fulfillmentUpdated(moved)).map(({ status }) => status)).toEqual(statuses);
    const { at, order, ref } = await placed();
    at.shows({ fulfillments: states.map((state) => ({ state })) });
    expect((await at.read(ref, order)).map(({ status }) => status)).toEqual(statuses);
  });

  it('do not complete an order with closedMeansCompleted: false', () => {
    const event = fulfillmentUpdated([{ old_state: 'PREPARED', new_state: 'COMPLETED' }]);
    expect(translate(event)).toHaveLength(1);
    expect(translate(event, { closedMeansCompleted: false })).toEqual([]);
  });

  it.each([undefined, null, 7, 'soon', '2020-04-16T23:16:30', '0000-01-01T00:00:00Z'])(
    'have the time of created_at if updated_at is %j',
    (updated_at) => {
      const event = fulfillmentUpdated([{ new_state: 'RESERVED' }], { updated_at });
      expect(translate(event)).toMatchObject([{ occurredAt: '2020-04-16T23:16:30.789Z' }]);
      const [timeless] = translate({ ...event, created_at: updated_at });
      expect(timeless).toMatchObject({ status: 'in_progress' });
      expect(timeless?.occurredAt).toBeUndefined();
    },
  );

  it('of other types are ignored', () => {
    expect(translate({ type: 'payment.updated', data: 7 })).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['no type', {}],
    ['no data', { type: 'order.fulfillment.updated' }],
    ['no order', fulfillmentUpdated([], { order_id: undefined })],
    ['an order that cannot be stored', fulfillmentUpdated([], { order_id: 'a\0b' })],
    ['no location', fulfillmentUpdated([], { location_id: undefined })],
    ['no state', fulfillmentUpdated([{ old_state: 'PROPOSED' }])],
    ['no list', fulfillmentUpdated({} as never)],
  ])('are refused with Poison if they have %s', (_name, event) => {
    expect(() => translate(event)).toThrow(Poison);
  });

  function fulfillmentUpdated(fulfillment_update: Record<string, unknown>[], more: object = {}) {
    const order_fulfillment_updated = { ...updated, fulfillment_update, ...more };
    return { ...published, data: { ...published.data, object: { order_fulfillment_updated } } };
  }

  function translate(event: unknown, more: Partial<Settings> = {}): readonly StatusEvent[] {
    const settings = Settings.parse({ accessToken: 'a', locationId: 'FPYCBCHYMXFK1', ...more });
    return square.translateWebhook({ ...webhookAt(NOW, JSON.stringify(event)), verified: true }, settings);
  }
});

describe('cancelOrder', () => {
  it('sets the fulfillment to CANCELED and leaves the payment as it is', async () => {
    const { at, order, ref } = await placed({ serviceOrderId: 'order-1' });
    expect(await at.cancel(ref, order)).toBe('cancelled');
    expect(at.bodyOf(`PUT /v2/orders/${ref.providerOrderId}`)).toEqual({
      idempotency_key: keyOf('cancel 2', 'order-1'),
      order: {
        location_id: at.settings.locationId,
        version: 2,
        fulfillments: [{ uid: 'VWJ1N9leLqjSDLvF2hvYjD', state: 'CANCELED' }],
      },
    });
    expect(at.sim.orders).toMatchObject([{ isPaid: true, state: 'OPEN', stage: 'CANCELED' }]);
    expect(at.sim.refusals).toEqual([]);
  });

  it.each(['pickup', 'delivery'] as const)('sends the reason as cancel_reason of a %s', async (type) => {
    const { at, order, ref } = await placed({ type });
    expect(await at.cancel(ref, Object.assign(order, { cancelReason: 'Rain, '.repeat(30) }))).toBe('cancelled');
    expect(at.bodyOf(`PUT /v2/orders/${ref.providerOrderId}`)).toMatchObject({
      order: { fulfillments: [{ [`${type}_details`]: { cancel_reason: expect.stringMatching(/^Rain, .{90,}…\]$/) } }] },
    });
    expect(at.sim.refusals).toEqual([]);
  });

  it('sends no cancel if the till has already cancelled the order', async () => {
    const { at, order, ref } = await placed();
    at.sim.become?.(first(at.sim.tickets), 'CANCELED');
    expect(await at.cancel(ref, order)).toBe('cancelled');
    expect(at.sim.cancels).toBe(0);
  });

  it('cancels an unpaid order, so that nobody cooks it', async () => {
    const at = await stage();
    const order = orderOf();
    at.sim.fail = only('POST /v2/payments', { status: 500 });
    await rejectionOf(at.create(order));
    expect(await at.cancel({}, order, { now: new Date() })).toBe('cancelled');
    expect(at.sim.orders).toMatchObject([{ isPaid: false, stage: 'CANCELED' }]);
  });

  it.each(['COMPLETED', 'FAILED', 'order.updated COMPLETED'])('throws GiveUp if the order is %s', async (state) => {
    const { at, order, ref } = await placed();
    at.sim.become?.(first(at.sim.tickets), state);
    const error = await rejectionOf(at.cancel(ref, order));
    expect(error).toMatchObject({ name: 'GiveUp', reason: 'The restaurant can no longer cancel this order.' });
  });

  it.each([409, 400])(
    'throws TryAgain if the till has changed the order since we read it (%i), and succeeds when repeated',
    async (status) => {
      const { at, order, ref } = await placed();
      at.sim.miscancel = () => refusal(status, status === 409 ? 'CONFLICT' : 'VERSION_MISMATCH');
      expect(await rejectionOf(at.cancel(ref, order))).toBeInstanceOf(TryAgain);
      at.sim.miscancel = undefined;
      at.sim.become?.(first(at.sim.tickets), 'RESERVED');
      expect(await at.cancel(ref, order)).toBe('cancelled');
    },
  );

  it('throws TryAgain for a fulfillment without a uid, because sending it would create a second fulfillment', async () => {
    const { at, order, ref } = await placed();
    at.shows({ fulfillments: [{ state: 'PREPARED' }] });
    expect(await rejectionOf(at.cancel(ref, order))).toBeInstanceOf(TryAgain);
    expect(at.sim.cancels).toBe(0);
  });

  it('returns absent only after it has searched all orders', async () => {
    const at = await stage();
    at.sim.fail = only('POST /v2/orders/search', refusal(400, 'BAD_REQUEST'));
    expect(await rejectionOf(at.cancel({}, orderOf()))).toBeInstanceOf(NeedsOperator);
    at.sim.fail = only('POST /v2/orders/search', { status: 200, body: { orders: [], cursor: 'more' } });
    expect(await rejectionOf(at.cancel({}, orderOf()))).toBeInstanceOf(TryAgain);
    at.sim.fail = undefined;
    expect(await at.cancel({}, orderOf())).toBe('absent');
  });

  it("works with a seller's token that has only the scopes for orders", async () => {
    const at = await stage();
    const order = orderOf();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    const ref = await at.create(order, { settings });
    expect(await at.cancel(ref, order, { settings })).toBe('cancelled');
  });
});

describe('readStatus', () => {
  it("reads the till's current estimate of a pickup or delivery", async () => {
    const at = await stage();
    for (const type of ['pickup', 'delivery'] as const) {
      const order = orderOf({ type });
      const ref = await at.create(order);
      at.sim.become?.(at.sim.tickets.at(-1) ?? expect.unreachable(), 'RESERVED');
      at.sim.estimate = '2026-01-31T19:10:00.000Z';
      const [event] = await at.read(ref, order);
      const { estimate } = at.sim;
      expect(event).toMatchObject(
        type === 'pickup' ? { estimatedReadyAt: estimate } : { estimatedDeliveryAt: estimate },
      );
      expect([event?.estimatedReadyAt, event?.estimatedDeliveryAt]).toContain(undefined);
      expect(event?.occurredAt).toBeDefined();
      at.sim.estimate = 'soon';
      expect(await at.read(ref, order)).toMatchObject([{ status: 'in_progress' }]);
    }
  });

  it.each([
    ['CANCELED Item(s) not in stock', 'Item(s) not in stock', 'item_unavailable'],
    ['CANCELED Customer cancellation request', 'Customer cancellation request', 'member_cancelled'],
    ['CANCELED Fire drill', 'Fire drill', 'restaurant_cancelled'],
    ['CANCELED', undefined, 'restaurant_cancelled'],
    ['FAILED', undefined, 'other'],
  ])('reads reason and reasonCode of an order in the state "%s"', async (native, reason, reasonCode) => {
    const { at, order, ref } = await placed();
    at.sim.become?.(first(at.sim.tickets), native);
    const [event] = await at.read(ref, order);
    expect([event?.reason, event?.reasonCode]).toEqual([reason, reasonCode]);
  });

  it.each(['pickup', 'delivery'] as const)(
    'does not read the requested time that we sent as an estimate of a %s',
    async (type) => {
      const at = await stage();
      const order = orderOf({ type, placedAt: '2026-01-31T18:00:00Z' });
      order.fulfillment.requestedAt = '2026-01-31T20:00:00+01:00';
      const ref = await at.create(order);
      at.sim.become?.(first(at.sim.tickets), 'RESERVED');
      const told = async () => {
        const [event] = await at.read(ref, order);
        return event?.estimatedReadyAt ?? event?.estimatedDeliveryAt;
      };
      expect(await told()).toBeUndefined();
      at.sim.estimate = '2026-01-31T19:00:00.000Z';
      expect(await told(), 'in other words').toBeUndefined();
      at.sim.estimate = '2026-01-31T19:10:00.000Z';
      expect(await told(), 'staff changed it').toBe(at.sim.estimate);
    },
  );

  it('reads an expired fulfillment as failed with the reasonCode no_answer', async () => {
    const { at, order, ref } = await placed();
    const expired = { uid: 'f', state: 'FAILED', pickup_details: { expired_at: '2026-01-31T19:00:00Z' } };
    at.shows({ fulfillments: [expired] });
    expect(await at.read(ref, order)).toMatchObject([{ status: 'failed', reasonCode: 'no_answer' }]);
  });

  it('sends one request, and returns both ids even if the reference was shortened', async () => {
    const { at, order, ref } = await placed({ serviceOrderId: 'order-'.padEnd(120, 'long-') });
    at.sim.become?.(first(at.sim.tickets), 'PREPARED');
    const updatedAt = expect.stringMatching(/^20.*Z$/) as string;
    expect(await at.read(ref, order)).toEqual([
      {
        status: 'ready',
        nativeStatus: 'PREPARED',
        ...ref,
        serviceOrderId: order.serviceOrderId,
        occurredAt: updatedAt,
      },
    ]);
    expect(at.sim.reads).toBe(1);
  });

  it('finds the order by its reference if its Square id is unknown', async () => {
    const at = await stage();
    const [order, other] = [orderOf(), orderOf()];
    for (const each of [other, order]) await at.create(each, { now: new Date() });
    at.sim.become?.(at.sim.tickets[1] ?? expect.unreachable(), 'RESERVED');
    expect(await at.read({}, order)).toMatchObject([{ status: 'in_progress', serviceOrderId: order.serviceOrderId }]);
    expect(await at.read({}, orderOf())).toEqual([]);
  });

  it.each([
    ['of another location', { location_id: 'L0THER' }],
    ['with another reference', { reference_id: 'order-2' }],
    ['of another id', { id: 'OTHER' }],
  ])('throws TryAgain if the answer is about an order %s', async (_name, changed) => {
    const { at, order, ref } = await placed();
    const fulfillments = [{ state: 'COMPLETED' }];
    at.shows({ fulfillments, ...changed });
    expect(await rejectionOf(at.read(ref, order))).toBeInstanceOf(TryAgain);
    at.shows({ fulfillments });
    expect(await at.read(ref, order)).toMatchObject([{ status: 'completed' }]);
  });

  it('reads no status from a completed fulfillment with closedMeansCompleted: false', async () => {
    const { at, order, ref } = await placed();
    at.sim.become?.(first(at.sim.tickets), 'COMPLETED');
    expect(await at.read(ref, order, { settings: { ...at.settings, closedMeansCompleted: false } })).toEqual([]);
  });

  it("throws NeedsOperator if the seller's token lacks the scope ORDERS_READ", async () => {
    const at = await stage();
    const order = orderOf();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    const ref = await at.create(order);
    expect(await at.read(ref, order, { settings })).toEqual([]);
    at.sim.sellerScopes = ['ORDERS_WRITE', 'PAYMENTS_WRITE'];
    expect(await rejectionOf(at.read(ref, order, { settings }))).toBeInstanceOf(NeedsOperator);
  });
});

describe('check', () => {
  it("passes if the seller's token can read the location's orders, even if it cannot read the location", async () => {
    const at = await stage();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    await at.check({ settings });
    expect(at.bodyOf('POST /v2/orders/search')).toEqual({
      location_ids: [at.settings.locationId],
      limit: 1,
      return_entries: true,
    });
    at.sim.sellerScopes.push('MERCHANT_PROFILE_READ');
    at.sim.fail = only('POST /v2/orders/search', { status: 500 });
    await at.check({ settings });
    expect(at.sim.refusals).toEqual([]);
  });

  it('names the scopes that the seller has not granted', async () => {
    const at = await stage();
    at.sim.sellerScopes = ['ORDERS_READ', 'MERCHANT_PROFILE_READ'];
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    expectError(await rejectionOf(at.check({ settings })), NeedsOperator, 'lacks ORDERS_WRITE, PAYMENTS_WRITE');
  });

  it("fails if the location is another seller's", async () => {
    const at = await stage();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken, locationId: 'L0THER' };
    expectError(await rejectionOf(at.check({ settings })), NeedsOperator, 'locationId');
  });

  it('fails if the location is closed permanently', async () => {
    const at = await stage();
    at.sim.locationStatus = 'INACTIVE';
    expectError(await rejectionOf(at.check()), NeedsOperator, 'the location of locationId is inactive');
  });

  it('fails if locationId is an alias, because webhooks do not use aliases', async () => {
    const at = await stage();
    const error = await rejectionOf(at.check({ settings: { ...at.settings, locationId: 'main' } }));
    expectError(error, NeedsOperator, 'locationId is an alias of the location');
  });

  it.each<[string, Fault, typeof TryAgain | typeof NeedsOperator, RegExp]>([
    ['POST /oauth2/token/status', { status: 500 }, TryAgain, /500/],
    ['GET /v2/locations/', { status: 403 }, NeedsOperator, /use a locationId of the token/],
    ['GET /v2/locations/', refusal(400, 'BAD_REQUEST'), NeedsOperator, /refused the location of locationId with 400/],
    ['GET /v2/locations/', { status: 200, body: '<html>' }, NeedsOperator, /check baseUrl/],
  ])('throws an error that says why if %s is answered %j', async (route, fault, type, words) => {
    const at = await stage();
    at.sim.fail = (each) => (each.startsWith(route) ? fault : undefined);
    expectError(await rejectionOf(at.check()), type, words);
  });
});

describe('connect', () => {
  const NEXT_URL = WEBHOOK_URL.replace('t-1', 't-2');

  it('subscribes to order events and returns the signatureKey for the settings', async () => {
    const at = await stage();
    const { signatureKey: _key, ...unconnected } = at.settings;
    const connection = await at.connect(WEBHOOK_URL, { settings: unconnected });
    expect(at.sim.refusals).toEqual([]);
    const subscription = { enabled: true, notification_url: WEBHOOK_URL, api_version: '2026-05-20' };
    expect(at.sim.subscriptions).toMatchObject([{ ...subscription, event_types: EVENTS }]);
    expect(connection.todo).toEqual([]);
    const alone = await at.connect(WEBHOOK_URL, { settings: unconnected, locations: 1 });
    expect(alone.done.join()).not.toContain('locations');
    expect(connection.settings).toEqual({
      signatureKey: at.sim.subscriptions[0]?.signature_key,
      notificationUrl: WEBHOOK_URL,
    });
    expect(connection.done.join('\n')).toContain('each of our 3 locations has its own: connect each of them');
    expectNoSecrets(at.sim, connection.done);

    const settings = Settings.parse({ ...unconnected, ...connection.settings });
    await at.create(orderOf());
    const { headers, body } = at.sim.sign(WEBHOOK_URL, first(at.sim.tickets), 'RESERVED');
    expect(square.translateWebhook(webhookAt(NOW, body, headers, WEBHOOK_URL), settings)).toHaveLength(1);
  });

  it('makes only one subscription when connect runs twice', async () => {
    const at = await stage();
    const one = await at.connect(WEBHOOK_URL);
    const two = await at.connect(WEBHOOK_URL);
    expect(two.settings).toEqual(one.settings);
    expect(two.done[0]).toContain('already');
    expect(at.sim.subscriptions).toHaveLength(1);
    expect(at.sim.calls.filter(({ route }) => route.startsWith('PUT'))).toHaveLength(0);
  });

  it("moves the subscription to the URL of a new webhook token, and keeps the subscription's key", async () => {
    const at = await stage();
    const one = await at.connect(WEBHOOK_URL);
    const two = await at.connect(NEXT_URL);
    expect(at.sim.subscriptions).toMatchObject([{ notification_url: NEXT_URL }]);
    expect(two.settings).toEqual({ ...one.settings, notificationUrl: NEXT_URL });
  });

  it('accepts events for both URLs while it moves the subscription to the URL of a new webhook token', async () => {
    const at = await stage();
    await at.create(orderOf());
    const one = await at.connect(WEBHOOK_URL);
    const late = { ...at.sim.sign(WEBHOOK_URL, first(at.sim.tickets), 'RESERVED'), url: WEBHOOK_URL };
    const two = await at.connect(NEXT_URL);
    const early = { ...at.sim.sign(NEXT_URL, first(at.sim.tickets), 'PREPARED'), url: NEXT_URL };
    const read = (webhook: typeof late, connection: Connection) =>
      square.translateWebhook(
        { ...webhookAt(NOW, webhook.body), ...webhook },
        Settings.parse({ ...at.settings, ...connection.settings }),
      );
    expect(read(early, one)).toMatchObject([{ status: 'ready' }]);
    expect(read(late, two)).toMatchObject([{ status: 'in_progress' }]);
  });

  it('enables a disabled subscription', async () => {
    const at = await stage();
    await at.connect(WEBHOOK_URL);
    Object.assign(first(at.sim.subscriptions), { enabled: false });
    await at.connect(WEBHOOK_URL);
    expect(at.sim.subscriptions).toMatchObject([{ enabled: true }]);
  });

  it('adds missing event types to the subscription and keeps the others', async () => {
    const at = await stage();
    await at.connect(WEBHOOK_URL);
    Object.assign(first(at.sim.subscriptions), { event_types: ['order.updated', 'payment.created'] });
    await at.connect(WEBHOOK_URL);
    const event_types = ['order.updated', 'payment.created', ...EVENTS.filter((each) => each !== 'order.updated')];
    expect(at.sim.subscriptions).toMatchObject([{ enabled: true, event_types }]);
  });

  it('does not change the subscriptions of other locations', async () => {
    const at = await stage();
    for (const name of ['club-2', 'club-3', 'club-10', 'club-11', 'club-12']) {
      await at.connect(WEBHOOK_URL.replace('club-1', name));
    }
    await at.connect(WEBHOOK_URL);
    await at.connect(NEXT_URL);
    expect(at.sim.subscriptions.map(({ notification_url }) => notification_url)).toHaveLength(6);
    expect(at.sim.subscriptions.at(-1)?.notification_url).toBe(NEXT_URL);
  });

  it('uses the enabled one of two subscriptions, and asks the operator to delete the other', async () => {
    const at = await stage();
    await at.connect(WEBHOOK_URL);
    const one = first(at.sim.subscriptions);
    at.sim.subscriptions.unshift({ ...one, id: 'wbhk_0', enabled: false });
    const { todo, settings } = await at.connect(WEBHOOK_URL);
    expect(todo).toEqual([expect.stringContaining('wbhk_0')]);
    expect(settings).toMatchObject({ signatureKey: one.signature_key });
  });

  it("throws TryAgain and changes nothing if the subscription's key cannot be read", async () => {
    const at = await stage();
    await at.connect(WEBHOOK_URL);
    at.sim.fail = only(`GET /v2/webhooks/subscriptions/${first(at.sim.subscriptions).id}`, { status: 500 });
    expect(await rejectionOf(at.connect(NEXT_URL))).toBeInstanceOf(TryAgain);
    expect(at.sim.subscriptions).toMatchObject([{ notification_url: WEBHOOK_URL }]);
  });

  it("says what to do by hand if the settings have only a seller's token", async () => {
    const at = await stage();
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    const { done, todo, settings: kept } = await at.connect(WEBHOOK_URL, { settings });
    expect(kept).toBeUndefined();
    expect(done).toEqual([expect.stringContaining("seller's")]);
    expect(todo).toHaveLength(3);
    expect(todo[0]).toContain(`${WEBHOOK_URL} `);
    expect(todo[0]).toContain(EVENTS.join(', '));
    expect(todo[1]).toContain('signatureKey');
    expect(todo[2]).toContain('3 locations');
    expectNoSecrets(at.sim, [...done, ...todo]);

    at.sim.sellerScopes = ['ORDERS_READ', 'MERCHANT_PROFILE_READ'];
    const lacking = await at.connect(WEBHOOK_URL, { settings });
    expect(lacking.todo[0]).toContain('ORDERS_WRITE, PAYMENTS_WRITE');
  });

  it('prints the URL where the seller agrees, and then gets a refresh token for the code', async () => {
    const at = await stage('EUR', true);
    const { refreshToken, ...unauthorised } = at.settings;
    const asked = await at.connect(WEBHOOK_URL, { settings: unauthorised });
    expect(asked).toMatchObject({ done: [], unused: true });
    const page = new URL(/https?:\/\/\S+/.exec(asked.todo[0] ?? '')?.[0] ?? '');
    expect(page.origin + page.pathname).toBe(`${at.sim.url}/oauth2/authorize`);
    expect(Object.fromEntries(page.searchParams)).toEqual({
      client_id: at.sim.oauth.clientId,
      scope: 'ORDERS_READ ORDERS_WRITE PAYMENTS_WRITE MERCHANT_PROFILE_READ',
      session: 'false',
    });
    expectNoSecrets(at.sim, asked.todo);

    const authorizationCode = at.sim.oauth.authorise();
    const settings = { ...unauthorised, authorizationCode };
    const connected = await at.connect(WEBHOOK_URL, { settings });
    expect(connected.settings).toEqual({ refreshToken, merchantId: MERCHANT, authorizationCode: undefined });
    expect(connected.todo.join('\n')).toContain(WEBHOOK_URL);
    expect(connected.unused).toBeUndefined();
    expectNoSecrets(at.sim, [...connected.done, ...connected.todo]);
    const again = await rejectionOf(at.connect(WEBHOOK_URL, { settings }));
    expectError(again, NeedsOperator, 'authorizationCode is unused');
    expectNoSecrets(at.sim, [again.message]);
    expect(again.message).not.toContain(authorizationCode);
  });

  it('returns the token for the code even if the rest fails', async () => {
    const at = await stage('EUR', true);
    const { refreshToken, ...unauthorised } = at.settings;
    at.sim.fail = only('POST /oauth2/token/status', { status: 500 });
    const settings = { ...unauthorised, authorizationCode: at.sim.oauth.authorise() };
    const { todo, settings: kept, unused } = await at.connect(WEBHOOK_URL, { settings });
    expect(kept).toEqual({ refreshToken, merchantId: MERCHANT, authorizationCode: undefined });
    expect(todo).toEqual([expect.stringMatching(/^The rest failed: .*500\. Run expediter provider connect again\.$/)]);
    expect(unused).toBe(false);
  });

  it('throws TryAgain if Square answers 500 about the token', async () => {
    const at = await stage();
    at.sim.fail = only('POST /oauth2/token/status', { status: 500 });
    const settings = { ...at.settings, accessToken: at.sim.sellerToken };
    expect(await rejectionOf(at.connect(WEBHOOK_URL, { settings }))).toBeInstanceOf(TryAgain);
  });

  it('throws NeedsOperator that names accessToken if this token is wrong', async () => {
    const at = await stage();
    const settings = { ...at.settings, accessToken: 'EAAAwrong' };
    const error = await rejectionOf(at.connect(WEBHOOK_URL, { settings }));
    expectError(error, NeedsOperator, 'accessToken');
    expect(error.message).not.toContain('EAAAwrong');
  });

  it.each<[string, string, object, string]>([
    ['refused with 400', 'POST /v2/webhooks/subscriptions', refusal(400, 'BAD_REQUEST'), 'NeedsOperator'],
    [
      'answered 404 by another host',
      'GET /v2/webhooks/subscriptions',
      { status: 404, body: '<html>' },
      'NeedsOperator',
    ],
    ['answered with HTML', 'GET /v2/webhooks/subscriptions', { status: 200, body: '<html>' }, 'NeedsOperator'],
    ['answered with 429', 'POST /v2/webhooks/subscriptions', { status: 429 }, 'TryAgain'],
    ['answered with 409', 'POST /v2/webhooks/subscriptions', refusal(409, 'CONFLICT'), 'TryAgain'],
  ])('throws an error if the request about subscriptions is %s', async (_name, route, fault, name) => {
    const at = await stage();
    at.sim.fail = only(route, fault as { status: number });
    expect(await rejectionOf(at.connect(WEBHOOK_URL))).toMatchObject({ name });
  });
});

type Fault = ReturnType<NonNullable<SquareSimulator['fail']>>;

function only(route: string, fault: Fault) {
  return (each: string): Fault => (each === route ? fault : undefined);
}

function refusal(status: number, code: string, more: { category?: string; field?: string; detail?: string } = {}) {
  return { status, body: { errors: [{ category: 'INVALID_REQUEST_ERROR', code, detail: 'Ada Lovelace', ...more }] } };
}

/** Everything in it costs nothing. */
function gift(tip: number): KitchenOrder {
  const items = sampleOrder().items.map((item) => ({ ...item, unitPrice: 0, modifiers: [] }));
  return orderOf({ items, money: { subtotal: 0, tax: 0, tip, fee: 0, total: tip, currency: 'EUR' } });
}

async function stage(currency = 'EUR', byOauth = false) {
  const sim = stopAtEnd(await startSquare({ currency, byOauth }));
  const settings = Settings.parse(sim.settings);
  let present = NOW;
  const kept = inMemoryCredentials(() => present);
  type About = { settings?: Settings; now?: Date; credentials?: Credentials };
  const context = (about: About): PosContext<Settings> => {
    const { now = NOW, credentials = kept } = about;
    present = now;
    return contextAt(now, about.settings ?? settings, { credentials });
  };
  return {
    sim,
    settings,
    create: (order: KitchenOrder, about: About = {}) => square.createOrder(order, context(about)),
    check: async (about: About = {}) => square.check?.(context(about)),
    renew: async (about: About = {}) => square.renewConnection?.(context(about)),
    connect(webhookUrl: string, about: { settings?: Settings; locations?: number } = {}): Promise<Connection> {
      const connecting = { ...context(about), webhookUrl, locations: about.locations ?? 3 };
      return square.connect?.(connecting) ?? expect.unreachable('cannot connect');
    },
    cancel: async (ref: OrderRef, order: KitchenOrder, about: About = {}) =>
      square.cancelOrder?.(ref, order, context(about)),
    read: async (ref: OrderRef, order: KitchenOrder, about: About = {}) =>
      (await square.readStatus?.(ref, order, context(about))) ?? [],
    /** The last one's. */
    bodyOf: (route: string) => sim.calls.findLast((call) => call.route === route)?.body,
  };
}

/** An order that Square has. */
async function placed(options: SampleOptions = {}) {
  const at = await stage();
  const order = orderOf(options);
  const ref = await at.create(order);
  /** Square answers that the order is so. */
  const shows = (more: object): void => {
    const shown = { id: ref.providerOrderId, location_id: at.settings.locationId, ...more };
    at.sim.misread = () => ({ status: 200, body: { order: shown } });
  };
  return { at: { ...at, shows }, order, ref };
}

function expectNoSecrets(sim: SquareSimulator, sentences: readonly string[]): void {
  const keys = sim.subscriptions.map(({ signature_key }) => signature_key);
  const text = sentences.join('\n');
  const { clientSecret, refreshToken } = sim.oauth;
  for (const secret of [sim.settings['accessToken'], sim.sellerToken, clientSecret, refreshToken, ...keys]) {
    if (secret !== undefined) expect(text).not.toContain(secret);
  }
}
