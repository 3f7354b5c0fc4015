import type { RequestListener } from 'node:http';
import { Webhook as Scheme } from 'standardwebhooks';
import { describe, expect, it, vi } from 'vitest';
import { GiveUp, NotAuthentic, NeedsOperator, Poison, TryAgain } from '../../src/core/domain/errors.ts';
import { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { OrderRef, StatusEvent } from '../../src/core/domain/order.ts';
import type { Webhook } from '../../src/core/domain/provider.ts';
import { REASON_CODES } from '../../src/core/domain/reason-code.ts';
import { parseAllowedHosts } from '../../src/core/egress/allowed-hosts.ts';
import { guardedFetch } from '../../src/core/egress/guarded-fetch.ts';
import { standard } from '../../src/providers/standard/index.ts';
import { startStandard } from '../../world/pos/standard/start-standard.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { signWebhook } from '../../world/pos/sign-webhook.ts';
import { errorOf, providerContract, rejectionOf } from '../../packages/provider-kit/contract/contract.ts';
import { contextAt, expectError, first, stopAtEnd, webhookAt } from './stage-parts.ts';

const SECRET = `whsec_${Buffer.alloc(32, 'today').toString('base64')}`;
const PREVIOUS = `whsec_${Buffer.alloc(32, 'yesterday').toString('base64')}`;
const STRANGER = `whsec_${Buffer.alloc(32, 'anonymous').toString('base64')}`;
const NOW = new Date('2026-01-31T18:30:00Z');
const unsigned = { ordersUrl: 'http://127.0.0.1:1/orders' };
const signed = { ...unsigned, secret: SECRET };

type Order = Record<string, unknown>;

function statusOf(order: Order): string {
  return JSON.stringify({
    eventType: 'order.status',
    order: { thirdPartyReference: 'o-1', status: 'READY', ...order },
  });
}

/** As the scheme's own library signs. */
function signedBy(secret: string, body: string, at = NOW): Webhook {
  return webhookAt(NOW, body, signWebhook(secret, body, { at }));
}

function laterBy(seconds: number): Date {
  return new Date(NOW.getTime() + seconds * 1000);
}

providerContract(standard, {
  start: startStandard,
  wrongSettings: {
    cancelUrl: ['', 'cancel', 'ftp://pos.example/cancel', 'https://user:word@pos.example/cancel'],
    statusUrl: ['', 'status', 'ftp://pos.example/status', 'https://user:word@pos.example/status'],
    ordersUrl: [undefined, 'orders', 'ftp://pos.example/orders', 'https://user:word@pos.example/orders'],
    secret: [
      `whsec_${Buffer.alloc(23).toString('base64')}`,
      `whsec_${Buffer.alloc(65).toString('base64')}`,
      'whsec_correct horse battery staple, and some more of it',
    ],
  },
  secretSettings: ['secret'],
  refusal: (words) => ({ status: 422, body: { error: words, message: words } }),
  kitchen: ['open', 'busy', 'closed'],
  statuses: {
    RECEIVED: 'received',
    in_progress: 'in_progress',
    Ready: 'ready',
    EN_ROUTE: 'en_route',
    COMPLETED: 'completed',
    CANCELLED: 'cancelled',
    FAILED: 'failed',
  },
  cancels: { answer: 'cancelled', tooLate: 'READY' },
  rejections: {
    ...Object.fromEntries(
      REASON_CODES.filter((code) => code !== 'other').flatMap((reasonCode) => [
        [`CANCELLED, ${reasonCode}`, { by: `CANCELLED ${reasonCode}`, reasonCode, itemIds: [] }],
        [`422, ${reasonCode}`, { by: { status: 422, body: { reasonCode } }, reasonCode }],
      ]),
    ),
    'an item': {
      by: 'FAILED ITEM_UNAVAILABLE beer-pale-ale',
      reasonCode: 'item_unavailable',
      itemIds: ['beer-pale-ale'],
    },
    'two items': {
      by: { status: 422, body: { reasonCode: 'item_unavailable', itemIds: ['beer-pale-ale', 'fries-sweet-potato'] } },
      reasonCode: 'item_unavailable',
      itemIds: ['beer-pale-ale', 'fries-sweet-potato'],
    },
    'a code that is none of ours': { by: 'FAILED oven_on_fire', reasonCode: 'other', itemIds: [] },
  },
  estimates: {
    native: 'RECEIVED',
    pickup: ['estimatedReadyAt', 'estimatedDeliveryAt'],
    delivery: ['estimatedReadyAt', 'estimatedDeliveryAt'],
  },
});

describe('settings', () => {
  it('refuse previousSecret without secret', () => {
    expect(standard.settings.safeParse({ ...unsigned, previousSecret: PREVIOUS }).success).toBe(false);
  });

  it('accept a secret without the prefix whsec_', () => {
    expect(standard.settings.safeParse({ ...unsigned, secret: SECRET.slice('whsec_'.length) }).success).toBe(true);
  });
});

describe('translateWebhook', () => {
  it('reads every field of an order.status webhook', () => {
    const order = {
      id: 'pos-1',
      status: 'CANCELLED',
      reason: 'Out of dough',
      reasonCode: 'Item_Unavailable',
      itemIds: ['pizza'],
      occurredAt: '2026-01-31T19:30:00+01:00',
      estimatedReadyAt: '2026-01-31T19:45:00+01:00',
      estimatedDeliveryAt: '2026-01-31T20:00:00+01:00',
      trackingUrl: 'https://courier.example/1',
    };
    expect(translate(webhookAt(NOW, statusOf(order)))).toEqual([
      {
        status: 'cancelled',
        serviceOrderId: 'o-1',
        providerOrderId: 'pos-1',
        reason: 'Out of dough',
        reasonCode: 'item_unavailable',
        itemIds: ['pizza'],
        occurredAt: '2026-01-31T19:30:00+01:00',
        estimatedReadyAt: '2026-01-31T19:45:00+01:00',
        estimatedDeliveryAt: '2026-01-31T20:00:00+01:00',
        trackingUrl: 'https://courier.example/1',
        nativeStatus: 'CANCELLED',
      },
    ]);
  });

  it("reads an order with only the POS's id, and null and empty fields as absent", () => {
    const order = { thirdPartyReference: null, id: 'pos-1', reason: '', occurredAt: null };
    expect(translate(webhookAt(NOW, statusOf(order)))).toEqual([
      { status: 'ready', providerOrderId: 'pos-1', nativeStatus: 'READY' },
    ]);
  });

  it.each([
    [{ reasonCode: 7 }, { reasonCode: 'other' }],
    [{ reasonCode: null, itemIds: null }, {}],
    [{ reasonCode: 'closed', itemIds: 'pizza' }, { reasonCode: 'closed' }],
    [{ itemIds: [7] }, {}],
    [{ estimatedReadyAt: 'in a minute', estimatedDeliveryAt: 1_770_000_000 }, {}],
    [{ trackingUrl: 'http://courier.example/1' }, {}],
    [{ trackingUrl: null }, {}],
  ])('reads the status although other fields are unreadable: %j', (order, rest) => {
    expect(translate(webhookAt(NOW, statusOf({ status: 'FAILED', ...order })))).toEqual([
      { status: 'failed', serviceOrderId: 'o-1', nativeStatus: 'FAILED', ...rest },
    ]);
  });

  it('accepts a text with 200 brackets, which are not levels of JSON', () => {
    const reason = `\\" ${'[{'.repeat(200)} \\\\`;
    const [event] = translate(webhookAt(NOW, statusOf({ reason })));
    expect(event?.reason).toBe(reason);
  });

  it.each([
    ['an unknown status', statusOf({ status: 'SHREDDED' })],
    ['a status that is a property of Object.prototype', statusOf({ status: 'constructor' })],
    ['another event type with any content', '{"eventType":"order.paid","order":7}'],
  ])('returns no event for %s', (_name, body) => {
    expect(translate(webhookAt(NOW, body))).toEqual([]);
  });

  it.each([
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'not UTF-8'],
    ['no JSON', '{"secret', 'not JSON'],
    ['an empty body', '', 'not JSON'],
    ['a text nested 101 deep', '['.repeat(101) + ']'.repeat(101), 'deeper than 100: an object with'],
    ['a text nested 100 deep that is no object', '['.repeat(100) + ']'.repeat(100), 'expected object, received array'],
    ['a list', '["secret"]', 'expected object, received array'],
    ['no event type', '{}', 'eventType: Invalid input: expected string, received undefined'],
    ['no order', '{"eventType":"order.status"}', 'order: Invalid input: expected object, received undefined'],
    ['no id at all', statusOf({ thirdPartyReference: null }), 'a string in one of them is required'],
    [
      'ids of a wrong type',
      statusOf({ thirdPartyReference: 'secret'.repeat(50), id: 'secret\0' }),
      'order.id: contains a NUL',
    ],
    [
      'a number that JSON may round',
      statusOf({ thirdPartyReference: 2 ** 53, id: 1.5 }),
      'order.id: Invalid input: expected string',
    ],
    ['no status', statusOf({ status: undefined }), 'order.status: Invalid input: expected string, received undefined'],
  ])('throws Poison with the fault and without values: %s', (_name, body, message) => {
    const error = errorOf(() => translate(webhookAt(NOW, body)));
    expectError(error, Poison, message);
    expect(error.message).not.toContain('secret');
  });

  it.each<[string, Order, object]>([
    ['a number as id', { thirdPartyReference: 4711 }, { serviceOrderId: '4711' }],
    ['an id too long next to another', { id: 'x'.repeat(256) }, { providerOrderId: undefined }],
    ['an invalid time', { occurredAt: 'soon' }, { occurredAt: undefined }],
    ['a time without offset', { occurredAt: '2026-01-31T18:30:00' }, { occurredAt: undefined }],
    ['a time as a number', { occurredAt: 1769880600 }, { occurredAt: undefined }],
    ['a reason that is an object', { reason: { text: 'no dough' } }, { reason: undefined }],
    ['a reason that is a list', { reason: ['no dough', 'no oven'] }, { reason: 'no dough; no oven' }],
  ])('reads the status, and the other fields only if they are readable: %s', (_name, said, read) => {
    expect(translate(webhookAt(NOW, statusOf(said)))).toMatchObject([{ status: 'ready', ...read }]);
  });

  describe('with a secret', () => {
    const body = statusOf({});

    it('accepts a signature made by the scheme’s own library', () => {
      expect(translate(signedBy(SECRET, statusOf({ reason: 'Teig ist aus – 🍕' })), signed)).toHaveLength(1);
    });

    it('accepts a webhook if one of its signatures is right', () => {
      const webhook = signedBy(SECRET, body);
      const ours = webhook.headers['webhook-signature'];
      const others = `v1a,${'x'.repeat(88)} ${new Scheme(STRANGER).sign('msg-1', NOW, body)} v1`;
      webhook.headers['webhook-signature'] = `${others} ${ours}`;
      expect(translate(webhook, signed)).toHaveLength(1);
    });

    it('accepts a right signature in a header that a proxy split, folded or joined', () => {
      const webhook = signedBy(SECRET, body);
      const [, base64 = ''] = (webhook.headers['webhook-signature'] ?? '').split(',');
      for (const header of [
        `v1, ${base64}`,
        `v1,\t${base64} `,
        `v1 ,${base64}`,
        `v1,${'x'.repeat(44)}, v1,${base64}`,
        `v1,${base64}, v1,${'x'.repeat(44)}`,
        `v1a,${'x'.repeat(88)},v1,${base64}`,
        ` v1,${'x'.repeat(44)}   v1,${base64}`,
      ]) {
        webhook.headers['webhook-signature'] = header;
        expect(translate(webhook, signed), header).toHaveLength(1);
      }
      for (const header of [`v2,${base64}`, `xv1,${base64}`, base64, `v1;${base64}`]) {
        webhook.headers['webhook-signature'] = header;
        expect(() => translate(webhook, signed), header).toThrow(NotAuthentic);
      }
    });

    it('suggests a fix for the headers of Svix', () => {
      const webhook = signedBy(SECRET, body);
      const headers = Object.fromEntries(
        Object.entries(webhook.headers).map(([name, value]) => [name.replace('webhook-', 'svix-'), value]),
      );
      expect(() => translate({ ...webhook, headers }, signed)).toThrow(
        'the header webhook-id is missing: send svix-id under this name too',
      );
    });

    it('accepts a signature by previousSecret only while it is set', () => {
      const webhook = signedBy(PREVIOUS, body);
      expect(translate(webhook, { ...signed, previousSecret: PREVIOUS })).toHaveLength(1);
      expect(() => translate(webhook, signed)).toThrow(NotAuthentic);
    });

    it.each([-300, 300])('accepts a timestamp that is %i s from the arrival', (seconds) => {
      expect(translate(signedBy(SECRET, body, laterBy(seconds)), signed)).toHaveLength(1);
    });

    it.each([
      [-301, 'old'],
      [301, 'ahead'],
    ])('throws NotAuthentic for a timestamp that is %i s from the arrival', (seconds, word) => {
      const webhook = signedBy(SECRET, body, laterBy(seconds));
      expect(() => translate(webhook, signed)).toThrow(
        new NotAuthentic(`the signature is right, but webhook-timestamp is over 300 s ${word}`),
      );
    });

    it('throws NotAuthentic if the body, id or timestamp was changed', () => {
      const webhook = signedBy(SECRET, body);
      const { headers } = webhook;
      const later = String(NOW.getTime() / 1000 + 1);
      for (const tampered of [
        { ...webhook, body: Buffer.from(statusOf({ status: 'CANCELLED' })) },
        { ...webhook, headers: { ...headers, 'webhook-id': 'm-2' } },
        { ...webhook, headers: { ...headers, 'webhook-timestamp': later } },
        { ...webhook, headers: { ...headers, 'webhook-timestamp': `${headers['webhook-timestamp']}.0` } },
        { ...webhook, headers: { ...headers, 'webhook-signature': `${headers['webhook-signature']}A` } },
        { ...webhook, headers: { ...headers, 'webhook-signature': `v2${headers['webhook-signature']?.slice(2)}` } },
      ]) {
        expect(() => translate(tampered, signed)).toThrow(NotAuthentic);
      }
    });

    it('throws NotAuthentic for a signed timestamp that is not a number', () => {
      const webhook = signedBy(SECRET, body, new Date(Number.NaN));
      expect(webhook.headers['webhook-timestamp']).toBe('NaN');
      expect(() => translate(webhook, signed)).toThrow('webhook-timestamp is not a number of seconds');
    });

    it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
      'throws NotAuthentic without the header %s',
      (name) => {
        const webhook = signedBy(SECRET, body);
        const { [name]: _left, ...headers } = webhook.headers;
        expect(() => translate({ ...webhook, headers }, signed)).toThrow(
          new NotAuthentic(`the header ${name} is missing`),
        );
      },
    );
  });
});

describe('readStatus', () => {
  const order = CanonicalOrder.parse(sampleOrder({ serviceOrderId: 'Заказ 1&id=x' }));

  /** A POS that answers so, and what it was asked. */
  async function readFrom(answer: unknown, more: object = { secret: SECRET }) {
    const { server, requests } = await posThat((_request, response) => sendJson(response, 200, answer));
    const statusUrl = `${server.url}/status?key=hidden`;
    const context = contextAt(NOW, standard.settings.parse({ ...unsigned, statusUrl, ...more }));
    return { requests, read: async (ref: OrderRef) => standard.readStatus?.(ref, order, context) };
  }
  const said = (more: object) => ({ eventType: 'order.status', order: { status: 'READY', ...more } });

  it('sends both ids in the URL, with a signature that the scheme’s own library accepts', async () => {
    const { requests, read } = await readFrom(
      said({ id: 'pos-1', reason: 'Late', occurredAt: '2026-01-31T19:30:00+01:00' }),
    );
    expect(await read({ providerOrderId: 'pos-1' })).toEqual([
      {
        status: 'ready',
        nativeStatus: 'READY',
        providerOrderId: 'pos-1',
        reason: 'Late',
        occurredAt: '2026-01-31T19:30:00+01:00',
      },
    ]);
    const { path, method, headers } = first(requests);
    expect([method, ...new URL(path, 'http://pos').searchParams]).toEqual([
      'GET',
      ['key', 'hidden'],
      ['thirdPartyReference', order.serviceOrderId],
      ['id', 'pos-1'],
    ]);
    expect(headers['webhook-id']).toBe(encodeURIComponent(order.serviceOrderId));
    const age = Date.now() - NOW.getTime();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - age });
    expect(() => new Scheme(SECRET).verify('', headers)).not.toThrow();
    expect(() => new Scheme(STRANGER).verify('', headers)).toThrow('No matching signature');
    vi.useRealTimers();
  });

  it('sends no signature without a secret, and no id that is unknown', async () => {
    const { requests, read } = await readFrom(said({ thirdPartyReference: order.serviceOrderId, id: 'pos-9' }), {
      unsigned: true,
    });
    expect(await read({})).toMatchObject([{ serviceOrderId: order.serviceOrderId, providerOrderId: 'pos-9' }]);
    const { path, headers } = first(requests);
    expect(new URL(path, 'http://pos').searchParams.has('id')).toBe(false);
    expect(headers).not.toHaveProperty('webhook-signature');
    expect(headers).not.toHaveProperty('idempotency-key');
  });

  it('sends no request without a statusUrl', async () => {
    const { requests, read } = await readFrom({}, { statusUrl: undefined });
    expect(await read({})).toBeUndefined();
    expect(requests).toEqual([]);
  });

  it.each([
    ['another order of ours', { thirdPartyReference: 'o-2' }],
    ['another ticket of the POS', { id: 'pos-2' }],
    ['no order', {}],
  ])('throws TryAgain for an answer about %s', async (_name, named) => {
    const { read } = await readFrom(said(named));
    await expect(read({ providerOrderId: 'pos-1' })).rejects.toBeInstanceOf(TryAgain);
  });

  it.each([
    ['an unknown status', said({ thirdPartyReference: order.serviceOrderId, status: 'BURNT' })],
    ['another event', { eventType: 'order.receipt' }],
  ])('returns no event for %s', async (_name, answer) => {
    const { read } = await readFrom(answer);
    expect(await read({})).toEqual([]);
  });
});

describe('cancelOrder', () => {
  const order = { ...CanonicalOrder.parse(sampleOrder()), serviceOrderId: 'Bestellung 7', cancelReason: 'Sick' };

  async function cancelAt(status: number, answer: unknown, more: object = { secret: SECRET }) {
    const { server, requests } = await posThat((_request, response) => sendJson(response, status, answer));
    const cancelUrl = `${server.url}/cancel?key=hidden`;
    const context = contextAt(new Date(), standard.settings.parse({ ...unsigned, cancelUrl, ...more }));
    return { requests, cancel: async (ref: OrderRef) => standard.cancelOrder?.(ref, order, context) };
  }

  it('posts both ids and the reason, with a signature and an idempotency key of the cancellation', async () => {
    const { requests, cancel } = await cancelAt(200, { cancelled: true });
    expect(await cancel({ providerOrderId: 'pos-1' })).toBe('cancelled');
    const { path, headers, body } = first(requests);
    expect(path).toBe('/cancel?key=hidden');
    expect(headers).toMatchObject({
      'webhook-id': 'cancel%3ABestellung%207',
      'idempotency-key': 'cancel%3ABestellung%207',
    });
    expect(new Scheme(SECRET).verify(body, headers)).toEqual({
      serviceOrderId: 'Bestellung 7',
      providerOrderId: 'pos-1',
      reason: 'Sick',
    });
    expect(() => new Scheme(STRANGER).verify(body, headers)).toThrow('No matching signature');
  });

  it('sends no request without a cancelUrl', async () => {
    const { requests, cancel } = await cancelAt(200, { cancelled: true }, { cancelUrl: undefined });
    expect(await cancel({ providerOrderId: 'pos-1' })).toBeUndefined();
    expect(requests).toEqual([]);
  });

  it.each([
    [202, {}, 'requested'],
    [200, { cancelled: false }, 'requested'],
    [200, { cancelled: 'true' }, 'requested'],
    [404, { reason: 'No such order.' }, 'absent'],
  ])('returns $2 after the answer $0 $1', async (status, answer, meaning) => {
    const { cancel } = await cancelAt(status, answer);
    expect(await cancel({})).toBe(meaning);
  });

  it.each([404, 405])('throws NeedsOperator after a %i without a reason', async (status) => {
    const { cancel } = await cancelAt(status, { error: 'Not Found' });
    expectError(await rejectionOf(cancel({})), NeedsOperator, 'check cancelUrl');
  });

  it.each([
    [409, { reason: ' It is ready. ', reasonCode: 'other' }, { reason: 'It is ready.', reasonCode: 'other' }],
    [422, {}, { reason: 'The restaurant can no longer cancel this order.', reasonCode: undefined }],
  ])('throws GiveUp after %i %j', async (status, answer, refusal) => {
    const { cancel } = await cancelAt(status, answer);
    await expect(cancel({})).rejects.toMatchObject({ name: 'GiveUp', httpStatus: status, ...refusal });
  });
});

describe('createOrder', () => {
  const order = CanonicalOrder.parse({
    serviceOrderId: 'o-1',
    locationId: 'club-1',
    member: { id: 'm-1', name: 'Zoë Secret', phone: '+4930123456' },
    fulfillment: { type: 'pickup' },
    items: [{ serviceItemId: 'i-1', name: 'Pizza', quantity: 1 }],
    money: { subtotal: 1000, tax: 70, tip: 0, fee: 0, total: 1070, currency: 'EUR' },
    placedAt: '2026-01-31T18:30:00Z',
  });
  const posFetch = guardedFetch(parseAllowedHosts('127.0.0.1, pos.invalid'));

  it('posts the order with a signature that the scheme’s own library accepts', async () => {
    const { url, requests } = await posThat((_request, response) => {
      response.writeHead(201).end('{"providerOrderId":"pos-1"}');
    });
    const answer = await create(url, { secret: SECRET, previousSecret: PREVIOUS });
    expect(answer).toEqual({ providerOrderId: 'pos-1' });

    const { method, path, headers, body } = first(requests);
    expect({ method, path, id: headers['webhook-id'], key: headers['idempotency-key'] }).toEqual({
      method: 'POST',
      path: '/orders?key=hidden',
      id: 'o-1',
      key: 'o-1',
    });
    expect(headers['content-type']).toBe('application/json');
    for (const secret of [SECRET, PREVIOUS]) {
      expect(new Scheme(secret).verify(body, headers)).toEqual(order);
    }
    expect(() => new Scheme(STRANGER).verify(body, headers)).toThrow('No matching signature');
  });

  it('sends no signature without a secret', async () => {
    const { url, requests } = await posThat((_request, response) => response.writeHead(201).end('{}'));
    await create(url);
    const { headers } = first(requests);
    expect(headers).not.toHaveProperty('webhook-signature');
    expect(headers).toHaveProperty('idempotency-key', 'o-1');
  });

  it.each([
    ['注文 1\n', '%E6%B3%A8%E6%96%87%201%0A'],
    ['50%20', '50%2520'],
    ['o/1:a', 'o/1:a'],
  ])('sends the id %j percent-encoded in its headers', async (serviceOrderId, header) => {
    const { url, requests } = await posThat((_request, response) => response.writeHead(201).end('{}'));
    await standard.createOrder({ ...order, serviceOrderId }, contextOf(url, { secret: SECRET }));
    const { headers, body } = first(requests);
    expect(headers['idempotency-key']).toBe(header);
    expect(new Scheme(SECRET).verify(body, headers)).toMatchObject({ serviceOrderId });
  });

  it.each([
    [200, '{"providerOrderId":"pos-1","more":1}', { providerOrderId: 'pos-1' }],
    [409, '{"providerOrderId":"pos-1"}', { providerOrderId: 'pos-1' }],
    [204, '', {}],
    [200, 'ok', {}],
    [200, '{"providerOrderId":7}', {}],
    [200, `{"providerOrderId":"${'x'.repeat(256)}"}`, {}],
    [200, `{"providerOrderId":"pos-1","more":"${'x'.repeat(2 ** 20)}"}`, {}],
  ])('takes the answer %i %s for a ticket', async (status, body, ref) => {
    const { url } = await posThat((_request, response) => response.writeHead(status).end(body || undefined));
    expect(await create(url)).toEqual(ref);
  });

  it.each([
    [409, 'duplicate'],
    [409, 'error code: 1001'],
    [409, '{"error":"conflict"}'],
    [200, '<html>'],
    [200, '{"success":false}'],
  ])(
    'throws TryAgain with sent: true after %i %s, because this does not say that the POS took the order',
    async (status, body) => {
      const { url } = await posThat((_request, response) => response.writeHead(status).end(body));
      expect(await failureOf(url)).toMatchObject({ name: 'TryAgain', sent: true, httpStatus: status });
    },
  );

  it.each(['{"message":"Bad Request"}', 'sold out'])(
    'throws NeedsOperator after 400 %s, which is not in our format',
    async (body) => {
      const { url } = await posThat((_request, response) => response.writeHead(400).end(body));
      expect(await failureOf(url)).toBeInstanceOf(NeedsOperator);
    },
  );

  it.each(['', '{}'])(
    'reads 400, 409 and 422 with the body "%s" as answers of the POS only if namedTicketLately says yes',
    async (body) => {
      const answers = async (status: number, named: boolean) => {
        const { url } = await posThat((_request, response) => response.writeHead(status).end(body || undefined));
        return standard.createOrder(order, { ...contextOf(url), namedTicketLately: async () => named });
      };
      expect(await answers(409, true)).toEqual({});
      expect(await rejectionOf(answers(409, false))).toMatchObject({ name: 'TryAgain', sent: true });
      for (const status of [400, 422]) {
        expect(await rejectionOf(answers(status, true))).toBeInstanceOf(GiveUp);
        expect(await rejectionOf(answers(status, false))).toBeInstanceOf(NeedsOperator);
      }
      expect(await rejectionOf(answers(410, true))).toBeInstanceOf(NeedsOperator);
    },
  );

  it('counts a 2xx whose body breaks off as a ticket', async () => {
    const { url } = await posThat((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"providerOrderId":');
      setTimeout(() => response.destroy(), 20);
    });
    expect(await create(url)).toEqual({});
  });

  it.each([
    [400, '{"reason":"  The kitchen is closed. "}', 'The kitchen is closed.'],
    [422, `{"reason":"${'x'.repeat(300)}"}`, 'x'.repeat(200)],
    [422, '{"reason":""}', 'The restaurant could not take this order.'],
    [422, '{"reason":{"code":5}}', 'The restaurant could not take this order.'],
    [404, '{"reason":"no such burger"}', 'no such burger'],
    [422, '{"reason":7,"reasonCode":"closed"}', 'The restaurant could not take this order.', 'closed'],
    [422, '{"reason":"Shut.","reasonCode":"zu"}', 'Shut.', 'other'],
  ])('throws GiveUp with a reason for the member after %i %s', async (status, body, reason, reasonCode?: string) => {
    const { url } = await posThat((_request, response) => response.writeHead(status).end(body));
    const error = await failureOf(url);
    expect(error).toBeInstanceOf(GiveUp);
    expect(error).toMatchObject({ reason, reasonCode, httpStatus: status });
  });

  it.each([401, 403, 404, 405, 301, 302, 303, 307, 308])('throws NeedsOperator after %i', async (status) => {
    const { url, requests } = await posThat((_request, response) => {
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
    const error = await failureOf(url);
    expect(error).toBeInstanceOf(NeedsOperator);
    expect(error).toMatchObject({ httpStatus: status });
    expect(requests).toHaveLength(1);
  });

  it.each([
    [429, false],
    [500, false],
    [501, false],
    [503, false],
    [408, true],
    [502, true],
    [504, true],
    [520, true],
    [599, true],
  ])('throws TryAgain after %i, with sent: %s', async (status, sent) => {
    const { url } = await posThat((_request, response) => response.writeHead(status).end('Zoë Secret'));
    const error = await failureOf(url);
    expect(error).toBeInstanceOf(TryAgain);
    expect(error).toMatchObject({ sent, httpStatus: status, retryAfterMs: undefined });
  });

  it.each([
    ['7', 7000, 7000],
    ['0', 0, 0],
    ['86400', 3_600_000, 3_600_000],
    ['a time in a minute', 50_000, 60_000, 60_000],
    ['a time a minute ago', 0, 0, -60_000],
    ['soon', undefined, undefined],
  ])(
    'throws TryAgain with the wait that Retry-After asks for, but with at most an hour: %s',
    async (value, least, most, offset?: number) => {
      const { url } = await posThat((_request, response) => {
        const retryAfter = offset === undefined ? value : new Date(Date.now() + offset).toUTCString();
        return response.writeHead(429, { 'retry-after': retryAfter }).end();
      });
      const { retryAfterMs } = (await failureOf(url)) as TryAgain;
      if (least === undefined) expect(retryAfterMs).toBeUndefined();
      else expect(retryAfterMs).toBeGreaterThanOrEqual(least);
      if (most !== undefined) expect(retryAfterMs).toBeLessThanOrEqual(most);
    },
  );

  it('throws TryAgain with sent: false if nothing listens at the URL', async () => {
    const { server, url } = await posThat(() => {});
    await server.stop();
    expect(await failureOf(url)).toMatchObject({ name: 'TryAgain', sent: false });
  });

  it('throws TryAgain with sent: false if the host does not exist', async () => {
    expect(await failureOf('http://pos.invalid/orders?key=hidden')).toMatchObject({ name: 'TryAgain', sent: false });
  });

  it('throws TryAgain with sent: false if the server does not speak TLS', async () => {
    const { url, requests } = await posThat(() => {});
    expect(await failureOf(url.replace('http:', 'https:'))).toMatchObject({ name: 'TryAgain', sent: false });
    expect(requests).toHaveLength(0);
  });

  it.each([
    [{ code: 'UND_ERR_CONNECT_TIMEOUT' }, false],
    [{ code: 'EAI_AGAIN', syscall: 'getaddrinfo' }, false],
    [{ code: 'EHOSTUNREACH', syscall: 'connect' }, false],
    [{ code: 'CERT_HAS_EXPIRED' }, false],
    [{ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, false],
    [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, false],
    [{ code: 'ETIMEDOUT', syscall: 'read' }, true],
    [{ code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' }, true],
    [{ code: 'UND_ERR_HEADERS_TIMEOUT' }, true],
    [{}, true],
  ])('throws TryAgain with sent: $1 after the network error $0', async (cause, sent) => {
    const fails = (): Promise<never> =>
      Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error('secret'), cause) }));
    const error = await failureOf('http://pos.example/orders?key=hidden', fails);
    expect(error).toMatchObject({ name: 'TryAgain', sent });
  });

  it('throws NeedsOperator without a request if the host is not allowed', async () => {
    const { url, requests } = await posThat(() => {});
    const error = await failureOf(url, guardedFetch(parseAllowedHosts('')));
    expect(error).toMatchObject({ name: 'NeedsOperator', cause: { code: 'pos_host_refused', reason: 'loopback' } });
    expect(requests).toHaveLength(0);
  });

  it('throws TryAgain with sent: true if the connection breaks', async () => {
    const { url } = await posThat((request) => request.socket.resetAndDestroy());
    expect(await failureOf(url)).toMatchObject({ name: 'TryAgain', sent: true });
  });

  it.each(['http://user:word@pos.example/orders?key=hidden', 'orders', 'http://127.0.0.1:6000/orders?key=hidden'])(
    'throws NeedsOperator for the URL %s, which cannot be called',
    async (url) => {
      expect(await failureOf(url)).toMatchObject({ name: 'NeedsOperator' });
    },
  );

  function contextOf(ordersUrl: string, settings = {}, fetch = posFetch) {
    return contextAt(new Date(), { ordersUrl, ...settings }, { fetch });
  }

  function create(url: string, settings = {}) {
    return standard.createOrder(order, contextOf(url, settings));
  }

  /** What it threw, which may tell the method and the URL and nothing more. */
  async function failureOf(url: string, fetch = posFetch): Promise<Error> {
    const error = await rejectionOf(standard.createOrder(order, contextOf(url, {}, fetch)));
    expect(error.message).not.toMatch(/hidden|word|secret|Zoë/i);
    if (!(error instanceof GiveUp)) expect(error.message).toMatch(/^(POST|the POS|127\.0\.0\.1:) /);
    return error;
  }
});

describe('readKitchen', () => {
  const read = (kitchen: unknown, eventType = 'kitchen.status') =>
    standard.readKitchen?.(webhookAt(NOW, JSON.stringify({ eventType, kitchen })), unsigned);

  it('reads the state in upper or lower case, its end and extraMinutes', () => {
    const kitchen = { state: 'Busy', until: '2026-01-31T20:00:00+01:00', extraMinutes: 15 };
    const until = new Date('2026-01-31T19:00:00Z');
    expect(read(kitchen)).toEqual({ state: 'busy', until, extraMinutes: 15 });
    expect(read({ state: 'closed', until: null, extraMinutes: '' })).toMatchObject({ until: laterBy(4 * 3600) });
  });

  it('returns undefined for an unknown state or event type', () => {
    expect(read({ state: 'HOLIDAY' })).toBeUndefined();
    expect(read({ state: 'CLOSED' }, 'menu.changed')).toBeUndefined();
  });

  it.each([
    ['kitchen', undefined],
    ['kitchen.state', { state: 1 }],
  ])('throws Poison that names a wrong %s', (field, kitchen) => {
    const error = errorOf(() => read(kitchen));
    expectError(error, Poison, `${field}: `);
  });

  it.each([
    [{ state: 'CLOSED' }, undefined],
    [{ state: 'HOLIDAY' }, 'write one of these as "kitchen.state": OPEN, BUSY, CLOSED'],
    [null, 'write one of these as "kitchen.state": OPEN, BUSY, CLOSED'],
  ])('suggests a fix only if the state is unknown: %j', (kitchen, fix) => {
    const webhook = webhookAt(NOW, JSON.stringify({ eventType: 'kitchen.status', kitchen }));
    expect(standard.builtForUs?.suggestFix(webhook, unsigned)).toBe(fix);
  });
});

function translate(
  webhook: Webhook,
  settings: Parameters<typeof standard.translateWebhook>[1] = unsigned,
): readonly StatusEvent[] {
  return standard.translateWebhook(webhook, settings);
}

type Posted = { method: string; path: string; headers: Record<string, string>; body: string };

/** A POS that answers so, its URL for orders, and what it was asked. */
async function posThat(
  answers: RequestListener,
): Promise<{ server: HttpServer; url: string; requests: readonly Posted[] }> {
  const requests: Posted[] = [];
  const server = await serveHttp(async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    const body = (await readBody(request)).toString();
    requests.push({ method, path, headers: headers as Record<string, string>, body });
    answers(request, response);
  });
  return { server: stopAtEnd(server), url: `${server.url}/orders?key=hidden`, requests };
}
