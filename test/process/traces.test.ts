import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { traceId, traceparent } from '../../src/core/domain/trace-id.ts';
import { readConfigOf } from '../../src/config/config.ts';
import { createTraces } from '../../src/observe/create-traces.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueSignalToken } from '../../src/core/signals/signal-tokens.ts';
import { runMain, type MainProcess } from '../../world/processes/run-main.ts';
import { startCollector, type CollectedSpan, type Collector } from '../../world/network/start-collector.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import {
  AUDIENCE,
  SERVICE_ACCOUNT,
  post,
  startSystem,
  statusWebhook,
  type System,
} from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let collector: Collector;
let pos: Pos;
beforeAll(async () => {
  [collector, pos] = await Promise.all([startCollector(), startPos()]);
});
afterEach(() => {
  collector.behave = undefined;
});
afterAll(() => Promise.all([collector?.stop(), pos?.stop()]));

const spansOf = (serviceOrderId: string): CollectedSpan[] =>
  collector.spans.filter((span) => span.attributes['expediter.order_id'] === serviceOrderId);

const untilSpans = (order: string, count: number, is: (span: CollectedSpan) => boolean): Promise<CollectedSpan[]> =>
  until(() => {
    const found = spansOf(order).filter(is);
    return found.length === count && found;
  });

describe('two processes', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ processes: 0 });
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  });
  afterAll(() => system?.stop());

  const start = (): Promise<MainProcess> =>
    runMain({
      ...system.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      // The exporter's own.
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=planted-key',
      DRAIN_DELAY_MS: '0',
    });
  async function end(main: MainProcess): Promise<void> {
    main.child.kill('SIGTERM');
    expect(await main.exited).toBe(0);
  }

  it("record one trace for one order, with an id that they derive from the order's id", async () => {
    const first = await start();
    system.urls[0] = first.url;
    const { serviceOrderId } = await system.placeOrder();
    await until(() => system.live(serviceOrderId).length === 2);
    await end(first);

    const second = await start();
    system.urls[0] = second.url;
    const url = await system.webhookUrl('club-1');
    await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
    await until(() => system.live(serviceOrderId).length === 3);
    await end(second);

    const spans = spansOf(serviceOrderId);
    const names = (from: readonly CollectedSpan[]): string[] => from.map(({ name }) => name).sort();
    const [one, other] = [...new Set(spans.map(({ resource }) => resource['service.instance.id']))].map((instance) =>
      spans.filter(({ resource }) => resource['service.instance.id'] === instance),
    );
    const told = 'send order-status';
    expect(names(one ?? [])).toEqual(['createOrder', 'process orders', 'queue', 'refetch', told, told]);
    expect(names(other ?? [])).toEqual(['POST /webhook/:integration/:locationId', 'apply', told]);
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId(serviceOrderId)]));

    const push = spans.find(({ name }) => name === 'process orders');
    expect(push?.parentSpanId).toBe('');
    for (const span of spans) {
      if (span !== push) expect(span.parentSpanId, span.name).toBe(push?.spanId);
      expect(span.end).toBeGreaterThanOrEqual(span.start);
      expect(Math.abs(span.end - Date.now())).toBeLessThan(60_000);
      expect(span.resource).toMatchObject({ 'service.name': 'expediter', 'service.version': '1.0.0' });
    }
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    const callTo = (url = ''): object => ({
      'http.request.method': 'POST',
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'server.port': new URL(url).port,
    });
    expect(push).toMatchObject({
      kind: 'CONSUMER',
      attributes: {
        'messaging.system': 'gcp_pubsub',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
        'messaging.destination.name': 'orders',
        'messaging.destination.subscription.name': 'orders',
        'messaging.message.id': '1',
        'http.request.method': 'POST',
        'http.route': '/pubsub/push',
        'url.path': '/pubsub/push',
        'url.scheme': 'http',
        'http.response.status_code': '204',
        'expediter.outcome': 'recorded',
      },
    });
    expect(spans.find(({ name }) => name === 'refetch')).toMatchObject({
      kind: 'CLIENT',
      attributes: callTo(system.env['ORDER_API_URL']),
    });
    expect(spans.find(({ name }) => name === 'createOrder')).toMatchObject({
      kind: 'CLIENT',
      attributes: {
        ...callTo(pos.ordersUrl),
        'http.response.status_code': '200',
        'expediter.integration': 'standard',
        'expediter.location_id': 'club-1',
        'expediter.outcome': 'placed',
      },
    });
    expect(spans.find(({ name }) => name.startsWith('POST /webhook'))).toMatchObject({
      kind: 'SERVER',
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/webhook/:integration/:locationId',
        'url.path': '/webhook/standard/club-1',
        'http.response.status_code': '200',
      },
    });
    for (const { name, attributes } of spans) {
      for (const left of ['url.query', 'url.full', 'error.type']) expect(attributes, name).not.toHaveProperty([left]);
    }
    expect(collector.headers['api-key']).toBe('planted-key');
    const token = new URL(url).searchParams.get('token') ?? '';
    for (const secret of [token, 'Ada', 'ada@', 'platform-token', 'Burger', '/orders']) {
      expect(collector.bytes()).not.toContain(secret);
    }
  });
});

describe('one process with traces', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, jobs: 'all' });
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  });
  afterAll(() => system?.stop());

  it('records a failed call to a POS as a failed span, and its repeat as another span', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status: 503 } : undefined);
    const { serviceOrderId } = await system.placeOrder();
    const calls = await untilSpans(serviceOrderId, 2, ({ name }) => name === 'createOrder');
    pos.behave = undefined;
    expect(calls.map(({ failed, attributes }) => [failed, attributes['expediter.outcome']])).toEqual([
      [true, 'TryAgain'],
      [false, 'placed'],
    ]);
    expect(calls[0]?.attributes).toMatchObject({ 'http.response.status_code': '503', 'error.type': '503' });
  });

  it('publishes a live message with the id of its span, and records a failed attempt as another span', async () => {
    let tries = 0;
    system.pubsub.faults.publishError = () => (tries++ === 0 ? status.UNAVAILABLE : undefined);
    const { serviceOrderId } = await system.placeOrder();
    const sent = await untilSpans(serviceOrderId, 3, ({ kind }) => kind === 'PRODUCER');
    system.pubsub.faults.publishError = undefined;
    expect(sent.map(({ failed, attributes }) => [failed, attributes['error.type']])).toEqual([
      [true, 'UNAVAILABLE'],
      [false, undefined],
      [false, undefined],
    ]);
    const told = system.pubsub.published('order-status').filter(({ orderingKey }) => orderingKey === serviceOrderId);
    for (const { messageId, attributes } of told) {
      const span = sent.find((each) => each.attributes['messaging.message.id'] === messageId);
      expect(attributes['ce-traceparent']).toBe(`00-${traceId(serviceOrderId)}-${span?.spanId}-01`);
      expect(span).toMatchObject({
        name: 'send order-status',
        attributes: {
          'messaging.system': 'gcp_pubsub',
          'messaging.operation.type': 'send',
          'messaging.operation.name': 'send',
          'messaging.destination.name': 'order-status',
          'messaging.gcp_pubsub.message.ordering_key': serviceOrderId,
          'server.address': '127.0.0.1',
        },
      });
    }
    expect(told).toHaveLength(2);
  });

  it.each([
    ['process orders', { 'x-goog-pubsub-subscription-name': 'projects/test/subscriptions/orders' }],
    ['process', {}],
  ])('records an unwrapped push as the span "%s"', async (name, headers) => {
    const serviceOrderId = `order-${randomUUID()}`;
    const token = await system.pubsub.signPushToken({ aud: AUDIENCE, email: SERVICE_ACCOUNT, email_verified: true });
    const metadata = { orderId: serviceOrderId, 'x-goog-pubsub-message-id': '17', ...headers };
    await fetch(`${system.urls[0]}/pubsub/push`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...metadata },
    });
    const push = await until(() => spansOf(serviceOrderId).find(({ kind }) => kind === 'CONSUMER'));
    expect(push.name).toBe(name);
    expect(push.attributes['messaging.message.id']).toBe('17');
  });

  it('records a signal by HTTP as the span of its request, without its token', async () => {
    const serviceOrderId = `order-${randomUUID()}`;
    const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
    const { token } = await issueSignalToken(system.pool, keys, { kind: 'plain', secrets: [] });
    const signal = { method: 'POST', body: JSON.stringify({ orderId: serviceOrderId }) };
    expect((await fetch(`${system.urls[0]}/signal?token=${token}`, signal)).status).toBe(204);
    const span = await until(() => spansOf(serviceOrderId).find(({ kind }) => kind === 'SERVER'));
    expect(span).toMatchObject({
      name: 'POST /signal',
      attributes: { 'http.route': '/signal', 'url.path': '/signal' },
    });
    expect(JSON.stringify(span)).not.toMatch(/exg_|messaging/);
  });

  it("records a webhook with only the POS id in the order's trace, even if it was parked", async () => {
    const [serviceOrderId, providerOrderId] = [`order-${randomUUID()}`, `pos-${randomUUID()}`];
    await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
    await system.query('UPDATE placements SET requested_at = now() WHERE service_order_id = $1', [serviceOrderId]);
    const url = await system.webhookUrl('club-1');
    expect((await post(url, statusWebhook({ providerOrderId, status: 'READY' }))).body['outcome']).toBe('parked');
    await post(url, statusWebhook({ serviceOrderId, providerOrderId, status: 'RECEIVED' }));
    const spans = await until(() => spansOf(serviceOrderId).length >= 5 && spansOf(serviceOrderId));
    expect(spans.filter(({ attributes }) => attributes['expediter.parked'] === 'true')).toHaveLength(1);
  });

  it('places orders while the collector of traces fails or hangs, and logs that once', async () => {
    const told = (): number => system.logged.filter((line) => line.includes('traces are lost')).length;
    for (const behaviour of [400, 400, 400, 'hang'] as const) {
      collector.behave = behaviour;
      const before = collector.requests;
      const { serviceOrderId } = await system.placeOrder();
      await until(() => system.live(serviceOrderId).length === 2 && collector.requests > before);
    }
    expect(told()).toBe(1);
    collector.behave = undefined;
    await until(async () => {
      await system.placeOrder();
      return system.logged.some((line) => line.includes('takes traces again'));
    });
    expect(told()).toBe(1);
  });
});

it.each([
  ['hangs', async () => ((collector.behave = 'hang'), collector.url)],
  ['is away', async () => 'http://127.0.0.1:9'],
])('a process whose collector of traces %s stops in time', async (_how, endpoint) => {
  const system = await startSystem({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: await endpoint() }, jobs: 'all' });
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  const { serviceOrderId } = await system.placeOrder();
  await until(() => system.live(serviceOrderId).length === 2);
  await system.drain(0);
  expect(system.logged.join('')).not.toContain('left behind');
  await system.stop();
});

it('every process chooses the same orders to trace', async () => {
  const chosen = async (ratio: number): Promise<string[]> => {
    const before = collector.spans.length;
    const log = { info: () => {}, warn: () => {} };
    const config = readConfigOf(
      { ORDER_API_URL: 'https://orders.example.com/graphql' },
      ...(['STATUS_TOPIC', 'PUBSUB_EMULATOR_HOST', 'PUBLIC_URL', 'ORDER_API_URL'] as const),
    );
    const traces = createTraces({ endpoint: collector.url, ratio, config, version: '1', now: () => new Date(), log });
    for (let nth = 0; nth < 1_000; nth += 1) {
      traces.observe({ what: 'refetch', serviceOrderId: `order-${nth}`, outcome: 'fetched', milliseconds: 1 });
    }
    await traces.close();
    return collector.spans.slice(before).map(({ attributes }) => attributes['expediter.order_id'] ?? '');
  };
  const [none, tenth, again, all] = [await chosen(0), await chosen(0.1), await chosen(0.1), await chosen(1)];
  expect(none).toEqual([]);
  const span = 'a'.repeat(16);
  const sampled = (order: string): boolean => traceparent(order, span, 0.1) === `00-${traceId(order)}-${span}-01`;
  expect(Array.from({ length: 1_000 }, (_, nth) => `order-${nth}`).filter(sampled)).toEqual(tenth);
  expect(tenth.length).toBeGreaterThan(60);
  expect(tenth.length).toBeLessThan(140);
  expect(again).toEqual(tenth);
  expect(all).toHaveLength(1_000);
});
