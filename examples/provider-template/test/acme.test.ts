import { CanonicalOrder, type PosContext } from 'expediter-kit';
import { inMemoryCredentials, providerContract, sampleOrder, sendJson, serveHttp } from 'expediter-kit/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import acme from '../src/index.ts';
import { Settings } from '../src/payloads.ts';
import { writeOrder } from '../src/write-order.ts';
import { fixtures } from './fixtures.ts';
import { startAcme, type Acme } from './start-acme.ts';

providerContract(acme, fixtures);

const NOW = new Date('2026-01-31T18:30:00Z');
const WEBHOOK_URL = 'https://expediter.example.com/webhook/acme/club-1?token=t-1';
let pos: Acme;
let context: PosContext<Settings>;

beforeEach(async () => {
  pos = await startAcme();
  const settings = Settings.parse(pos.settings);
  const credentials = inMemoryCredentials(() => NOW);
  context = { settings, now: NOW, signal: AbortSignal.timeout(10_000), credentials, fetch };
});
afterEach(() => pos.stop());

describe("the order in Acme's format", () => {
  it('is complete for a delivery at seven in Berlin', () => {
    const order = sampleOrder({ type: 'delivery', serviceOrderId: 'order-1', callOutCode: 'K472' });
    order.fulfillment.requestedAt = '2026-01-31T20:00:00+01:00';
    expect(JSON.parse(JSON.stringify(writeOrder(order, context.settings, NOW)))).toEqual({
      reference: 'order-1',
      pickupCode: 'K472',
      type: 'DELIVERY',
      due: '2026-01-31T19:00:00.000Z',
      guest: { name: 'Ada Lovelace', phone: '+493012345678' },
      address: { street: 'Lindenstraße 14, 3. OG', city: 'Berlin', postcode: '10969', directions: 'Ring twice' },
      note: 'AGE CHECK: Pale Ale 0.33 l\nTable by the terrace, if there is one',
      lines: [
        {
          sku: 'BURG-1',
          count: 2,
          price: '12.90',
          note: 'One of them well done',
          options: [
            { sku: 'cheddar', count: 1, price: '1.50' },
            { sku: 'no-onions', count: 1 },
          ],
        },
        { sku: 'fries-sweet-potato', count: 1, price: '4.50', options: [] },
        { sku: 'beer-pale-ale', count: 1, price: '4.80', options: [] },
      ],
      discounts: [],
      paid: { currency: 'EUR', tax: '7.24', tip: '3.00', fee: '3.50', total: '51.84' },
    });
  });

  it('has no due time when the requested time has passed', () => {
    const fulfillment = { type: 'pickup', requestedAt: '2026-01-31T18:29:59Z' } as const;
    expect(writeOrder(sampleOrder({ fulfillment }), context.settings, NOW).due).toBeUndefined();
  });
});

describe('a refusal', () => {
  it.each([
    [404, 'unknown_store', { name: 'NeedsOperator' }],
    [422, 'unknown_sku', { name: 'NeedsOperator' }],
    [422, 'store_closed', { name: 'GiveUp', reason: 'The restaurant is closed.' }],
    [422, 'sold_out', { name: 'GiveUp', reason: 'An item is out of stock.' }],
    [400, 'bad_order', { name: 'GiveUp', reason: 'The restaurant could not take this order.' }],
  ])('%i %s becomes the error %j', async (status, code, meaning) => {
    pos.behave = () => ({ status, body: { error: { code, message: 'Ada Lovelace' } } });
    const order = CanonicalOrder.parse(sampleOrder());
    await expect(acme.createOrder(order, context)).rejects.toMatchObject({ ...meaning, httpStatus: status });
  });
});

describe('a webhook', () => {
  function translate(payload: unknown) {
    const body = Buffer.from(JSON.stringify(payload));
    return acme.translateWebhook(
      { headers: {}, body, url: WEBHOOK_URL, receivedAt: NOW, verified: true },
      context.settings,
    );
  }
  const order = { id: 't-1', reference: 'order-1', state: 'READY', reason: '' };

  it('has both ids of the order, and the time', () => {
    const { storeId } = context.settings;
    expect(translate({ event: 'order.updated', storeId, at: '2026-01-31T18:29:00Z', order })).toEqual([
      {
        status: 'ready',
        serviceOrderId: 'order-1',
        providerOrderId: 't-1',
        occurredAt: '2026-01-31T18:29:00Z',
        nativeStatus: 'READY',
      },
    ]);
    expect(translate({ event: 'order.updated', storeId, at: 'just now', order })).toHaveLength(1);
  });

  it('of another store or another type is ignored', () => {
    expect(translate({ event: 'order.updated', storeId: 's-0', order })).toEqual([]);
    expect(translate({ event: 'menu.updated' })).toEqual([]);
  });
});

describe('check', () => {
  it.each([
    [403, 'clientId'],
    [410, 'storeId'],
  ])('fails if Acme answers %i, and names the setting %s', async (status, setting) => {
    const other = await serveHttp((request, response) =>
      request.url === '/v1/oauth/token'
        ? sendJson(response, 200, { access_token: 'token', expires_in: 60 })
        : sendJson(response, status, {}),
    );
    const settings = { ...context.settings, baseUrl: other.url };
    const error = await acme.check?.({ ...context, settings }).catch((error: unknown) => error);
    await other.stop();
    expect(error).toMatchObject({
      name: 'NeedsOperator',
      httpStatus: status,
      message: expect.stringContaining(setting) as string,
    });
  });
});

describe('connect', () => {
  it('registers the URL of webhooks, with the same result when it is repeated', async () => {
    const connecting = { ...context, webhookUrl: WEBHOOK_URL, locations: 1 };
    const first = await acme.connect?.(connecting);
    expect(await acme.connect?.(connecting)).toEqual(first);
    expect(pos.webhookUrl).toBe(WEBHOOK_URL);
    expect(pos.refusals).toEqual([]);
  });

  it('throws NeedsOperator if Acme refuses the URL', async () => {
    const webhookUrl = WEBHOOK_URL.replace('https:', 'http:');
    await expect(acme.connect?.({ ...context, webhookUrl, locations: 1 })).rejects.toMatchObject({
      name: 'NeedsOperator',
    });
  });
});
