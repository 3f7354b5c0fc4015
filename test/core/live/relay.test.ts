import { PubSub } from '@google-cloud/pubsub';
import { status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { traceId } from '../../../src/core/domain/trace-id.ts';
import { PROJECT, post, startSystem, statusWebhook, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

const STATUSES = ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE', 'COMPLETED'];

let system: System;
let url: string;

beforeAll(async () => {
  system = await startSystem({ processes: 2, env: { LOG_LEVEL: 'fatal' } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  url = await system.webhookUrl('club-1');
});
afterEach(() => {
  system.pubsub.faults.publishError = undefined;
  system.pubsub.faults.publishAnswerError = undefined;
});
afterAll(() => system?.stop());

async function finish(prefix: string, count: number): Promise<string[]> {
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

const outboxIsEmpty = (): Promise<boolean> =>
  until(async () => Number((await system.query('SELECT count(*) AS n FROM outbox'))[0]?.['n']) === 0);

describe('the status topic', () => {
  it('carries the message and the attributes as a subscriber reads them', async () => {
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
    ['as long as can be', '票'.repeat(255), '票'.repeat(255)],
    ['with a slash', 'shop/4711', 'shop/4711'],
    ['with what no CloudEvent may hold', 'line\nbreak', undefined],
  ])('of an order whose id is %s takes no more than Pub/Sub allows, and only what is text', async (_, id, subject) => {
    await system.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
    await post(url, statusWebhook({ serviceOrderId: id, status: 'READY' }));
    const { attributes } = await until(() => system.pubsub.published('order-status').find((m) => m.orderingKey === id));
    expect(attributes['ce-subject']).toBe(subject);
    expect(attributes['ce-id']).toBe(`${subject ?? traceId(id)}/3`);
    expect(Object.keys(attributes).length).toBeLessThanOrEqual(100);
    for (const [key, value] of Object.entries(attributes)) {
      expect(Buffer.byteLength(key), key).toBeLessThanOrEqual(256);
      expect(Buffer.byteLength(value), key).toBeLessThanOrEqual(1_024);
    }
  });

  it('has a message: then it is kept when, and where that is known already, nothing waits for it', async () => {
    await system.seedOrder({ serviceOrderId: 'kept', locationId: 'club-1' });
    const earlier = new Date('2026-01-31T12:00:00Z');
    await system.query(`INSERT INTO live_messages VALUES ('kept', 4, 30, $1, $1)`, [earlier]);
    for (const state of ['RECEIVED', 'IN_PROGRESS']) {
      await post(url, statusWebhook({ serviceOrderId: 'kept', status: state }));
    }
    await outboxIsEmpty();
    const [first, second] = await system.query(
      `SELECT sequence, rank, applied_at, published_at FROM live_messages WHERE service_order_id = 'kept' ORDER BY sequence`,
    );
    expect(first).toMatchObject({ sequence: 3, rank: 20 });
    expect(Number(first?.['published_at'])).toBeGreaterThanOrEqual(Number(first?.['applied_at']));
    expect(Math.abs(Number(first?.['published_at']) - Date.now())).toBeLessThan(10_000);
    expect(second).toMatchObject({ sequence: 4, published_at: earlier });
  });

  it('while publishing fails now and then, an order waits for its message: first occurrences stay in order', async () => {
    let calls = 0;
    system.pubsub.faults.publishError = () => (calls++ % 3 === 0 ? status.UNAVAILABLE : undefined);
    const orders = await finish('flaky', 30);
    await outboxIsEmpty();
    for (const serviceOrderId of orders) {
      expect(
        system.live(serviceOrderId).map((message) => message.sequence),
        serviceOrderId,
      ).toEqual([3, 4, 5, 6, 7]);
    }
  });

  it('where the answer of a publish is lost, the message is repeated, and a reader that drops repeats misses none', async () => {
    let calls = 0;
    system.pubsub.faults.publishAnswerError = () => (calls++ % 4 === 0 ? status.DEADLINE_EXCEEDED : undefined);
    const orders = await finish('lost-answer', 20);
    await outboxIsEmpty();
    let repeats = 0;
    for (const serviceOrderId of orders) {
      const sequences = system.live(serviceOrderId).map((message) => message.sequence);
      expect([...new Set(sequences)], serviceOrderId).toEqual([3, 4, 5, 6, 7]);
      repeats += sequences.length - 5;
    }
    expect(repeats).toBeGreaterThan(0);
  });

  it('after an outage of the topic everything arrives, by itself', async () => {
    system.pubsub.faults.publishError = () => status.UNAVAILABLE;
    const orders = await finish('outage', 10);
    expect(orders.flatMap((serviceOrderId) => system.live(serviceOrderId))).toEqual([]);
    system.pubsub.faults.publishError = undefined;
    await outboxIsEmpty();
    for (const serviceOrderId of orders) {
      expect(system.live(serviceOrderId).map((message) => message.sequence)).toEqual([3, 4, 5, 6, 7]);
    }
  });
});
