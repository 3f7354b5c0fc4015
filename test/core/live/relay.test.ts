import { PubSub } from '@google-cloud/pubsub';
import { status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { traceId } from '../../../src/core/domain/trace-id.ts';
import { PROJECT, post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';

const STATUSES = ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE', 'COMPLETED'];

let system: System;
let url: string;

beforeAll(async () => {
  system = await startSystem({ processes: 2, stepped: ['relay'], env: { LOG_LEVEL: 'fatal' } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  url = await system.webhookUrl('club-1');
});
afterEach(() => {
  system.pubsub.faults.publishError = undefined;
  system.pubsub.faults.publishAnswerError = undefined;
});
afterAll(() => system?.stop());

/** Moves orders through all statuses. */
async function complete(prefix: string, count: number): Promise<string[]> {
  const orders = Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
  for (const serviceOrderId of orders) await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
  for (const state of STATUSES) {
    await Promise.all(
      orders.map((serviceOrderId) =>
        post(url, statusWebhook({ serviceOrderId, providerOrderId: `pos-${serviceOrderId}`, status: state })),
      ),
    );
  }
  return orders;
}

/** Lets both relays publish at the same time, until the messages that failed were repeated too. */
async function publishAll(): Promise<void> {
  do {
    await system.query('UPDATE outbox SET lease_until = NULL');
    await Promise.all([system.finish('relay', 0), system.finish('relay', 1)]);
  } while ((await system.query('SELECT FROM outbox')).length > 0);
}

const sequences = (serviceOrderId: string): number[] => system.live(serviceOrderId).map(({ sequence }) => sequence);
const sentFor = (serviceOrderId: string) =>
  system.pubsub.published('order-status').filter(({ attributes }) => attributes['serviceOrderId'] === serviceOrderId);

describe('the status topic', () => {
  it('gives a subscriber each message with its documented body and attributes', async () => {
    const client = new PubSub({ projectId: PROJECT });
    const [subscription] = await client
      .topic('order-status')
      .createSubscription('reader', { enableMessageOrdering: true });
    const received = new Promise<{ data: string; attributes: Record<string, string>; orderingKey: string | undefined }>(
      (resolve) => {
        subscription.on('message', (message) => {
          message.ack();
          resolve({ data: message.data.toString(), attributes: message.attributes, orderingKey: message.orderingKey });
        });
      },
    );
    await system.seedOrder({ serviceOrderId: 'read-me', locationId: 'club-1', fulfillment: 'delivery' });
    const occurredAt = '2026-11-21T18:30:00+01:00';
    const body = statusWebhook({
      serviceOrderId: 'read-me',
      providerOrderId: 'pos-1',
      status: 'READY',
      reason: 'at the counter',
    }) as { order: object };
    await post(url, { ...body, order: { ...body.order, occurredAt } });
    await publishAll();
    const message = await received;
    await subscription.close();
    await client.close();
    expect(message.orderingKey).toBe('read-me');
    expect(message.attributes).toEqual({
      type: 'orderStatusChanged',
      serviceOrderId: 'read-me',
      locationId: 'club-1',
      status: 'ready',
      memberState: 'ready_for_delivery',
      sequence: '3',
      // The CloudEvent, of an installation without traces.
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': 'read-me/3',
      'ce-source': `//pubsub.googleapis.com/projects/${PROJECT}/topics/order-status`,
      'ce-type': 'expediter.order.status-changed.v1',
      'ce-subject': 'read-me',
      'ce-time': (JSON.parse(message.data) as { appliedAt: string }).appliedAt,
      'ce-datacontenttype': 'application/json',
      'ce-dataschema': 'urn:expediter:live-message:v1',
      'ce-sequence': '0000000003',
    });
    const data = JSON.parse(message.data) as Record<string, unknown>;
    expect(data).toEqual({
      serviceOrderId: 'read-me',
      locationId: 'club-1',
      sequence: 3,
      status: 'ready',
      memberState: 'ready_for_delivery',
      fulfillment: 'delivery',
      callOutCode: 'K472',
      providerOrderId: 'pos-1',
      reason: 'at the counter',
      occurredAt: expect.any(String),
      appliedAt: expect.any(String),
    });
    expect(Date.parse(String(data['occurredAt']))).toBe(Date.parse(occurredAt));
    expect(Math.abs(Date.parse(String(data['appliedAt'])) - Date.now())).toBeLessThan(10_000);
  });

  it.each([
    ['as long as possible', '票'.repeat(255), '票'.repeat(255)],
    ['a text with a slash', 'shop/4711', 'shop/4711'],
    ['a text that no CloudEvent may have', 'line\nbreak', undefined],
  ])('gets attributes within the limits of Pub/Sub for an order whose id is %s', async (_, id, subject) => {
    await system.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
    await post(url, statusWebhook({ serviceOrderId: id, status: 'READY' }));
    await publishAll();
    const [{ orderingKey, attributes } = expect.fail()] = sentFor(id);
    expect(orderingKey).toBe(id);
    expect(attributes['ce-subject']).toBe(subject);
    expect(attributes['ce-id']).toBe(`${subject ?? traceId(id)}/3`);
    expect(Object.keys(attributes).length).toBeLessThanOrEqual(100);
    for (const [key, value] of Object.entries(attributes)) {
      expect(Buffer.byteLength(key), key).toBeLessThanOrEqual(256);
      expect(Buffer.byteLength(value), key).toBeLessThanOrEqual(1_024);
    }
  });

  it('changes no publishing time that is already stored', async () => {
    await system.seedOrder({ serviceOrderId: 'kept', locationId: 'club-1' });
    const earlier = new Date('2026-01-31T12:00:00Z');
    await system.query(`INSERT INTO live_messages VALUES ('kept', 4, 30, $1, $1)`, [earlier]);
    for (const state of ['RECEIVED', 'IN_PROGRESS']) {
      await post(url, statusWebhook({ serviceOrderId: 'kept', status: state }));
    }
    await publishAll();
    const [first, second] = await system.query(
      `SELECT sequence, rank, applied_at, published_at FROM live_messages WHERE service_order_id = 'kept' ORDER BY sequence`,
    );
    expect(first).toMatchObject({ sequence: 3, rank: 20 });
    expect(Number(first?.['published_at'])).toBeGreaterThanOrEqual(Number(first?.['applied_at']));
    expect(Math.abs(Number(first?.['published_at']) - Date.now())).toBeLessThan(10_000);
    expect(second).toMatchObject({ sequence: 4, published_at: earlier });
  });

  it("gets the first copies of an order's messages in sequence while every third publish fails", async () => {
    let calls = 0;
    system.pubsub.faults.publishError = () => (calls++ % 3 === 0 ? status.UNAVAILABLE : undefined);
    const orders = await complete('flaky', 10);
    await publishAll();
    for (const id of orders) expect(sequences(id), id).toEqual([3, 4, 5, 6, 7]);
  });

  it('gets a message again if the answer to its publish is lost, and no message is missing', async () => {
    let calls = 0;
    system.pubsub.faults.publishAnswerError = () => (calls++ % 4 === 0 ? status.DEADLINE_EXCEEDED : undefined);
    const orders = await complete('lost-answer', 10);
    await publishAll();
    for (const id of orders) expect(sequences(id), id).toEqual([3, 4, 5, 6, 7]);
    expect(orders.flatMap(sentFor).length).toBeGreaterThan(50);
  });

  it('gets every message after an outage', async () => {
    system.pubsub.faults.publishError = () => status.UNAVAILABLE;
    const orders = await complete('outage', 10);
    await Promise.all([system.round('relay', 0), system.round('relay', 1)]);
    expect(orders.flatMap(sequences)).toEqual([]);
    system.pubsub.faults.publishError = undefined;
    await publishAll();
    for (const id of orders) expect(sequences(id), id).toEqual([3, 4, 5, 6, 7]);
  });
});
