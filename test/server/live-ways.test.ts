import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveOf, startReceiver, type Receiver } from '../../world/receiver/start-receiver.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';

let system: System;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  const env = { STATUS_WEBHOOK_URL: receiver.url, STATUS_WEBHOOK_SECRET: receiver.secret };
  system = await startSystem({ stepped: ['relay'], env });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => Promise.all([system?.stop(), receiver?.stop()]));

it('a service with a topic and STATUS_WEBHOOK_URL publishes each message by both, although one of them fails first', async () => {
  const url = await system.webhookUrl('club-1');
  await system.seedOrder({ serviceOrderId: 'soup', locationId: 'club-1' });
  receiver.behave = () => ({ status: 503 });
  for (const status of ['RECEIVED', 'READY']) await post(url, statusWebhook({ serviceOrderId: 'soup', status }));
  await system.finish('relay');
  expect(system.live('soup').map(({ status }) => status)).toEqual(['received', 'ready']);
  expect(liveOf(receiver, 'soup')).toEqual([]);

  receiver.behave = undefined;
  await system.query('UPDATE outbox SET webhook_lease_until = NULL');
  await system.finish('relay');
  expect(liveOf(receiver, 'soup')).toEqual(system.live('soup'));
  expect(system.pubsub.published('order-status')).toHaveLength(2);
  expect(receiver.taken[0]?.event['source']).toBe('//pubsub.googleapis.com/projects/test-project/topics/order-status');
  await system.round('relay');
  expect(await system.query('SELECT FROM outbox')).toEqual([]);
});
