import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveMessageSchema } from '../../../scripts/write-asyncapi.ts';
import { post, startSystem, statusWebhook, type System } from '../../support/start-system.ts';

let system: System;

beforeAll(async () => {
  system = await startSystem({ stepped: ['placements', 'relay'] });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => system?.stop());

const committed = async (): Promise<object> =>
  JSON.parse(await readFile(new URL('../../../docs/live-message.schema.json', import.meta.url), 'utf8')) as object;

it('the committed JSON Schema is what the message is', async () => {
  // Where it is not: npm run asyncapi
  expect(await committed()).toEqual(liveMessageSchema());
});

it('what the topic carries is what the schema says, with all its fields and with none', async () => {
  const url = await system.webhookUrl('club-1');
  await system.placeOrder({ serviceOrderId: 'schema-1', locationId: 'club-1' });
  await system.seedOrder({ serviceOrderId: 'schema-2', locationId: 'club-1', fulfillment: 'delivery' });
  const { order, ...about } = statusWebhook({
    serviceOrderId: 'schema-2',
    providerOrderId: 'pos-2',
    status: 'CANCELLED',
    reason: 'the oven is cold',
  }) as { order: object };
  await post(url, { ...about, order: { ...order, occurredAt: '2026-11-21T18:30:00+01:00' } });
  await system.round('placements');
  await system.finish('relay');

  const validate = new Ajv2020({ validateFormats: false }).compile(await committed());
  const messages = [...system.live('schema-1'), ...system.live('schema-2')];
  expect(messages).toHaveLength(2);
  for (const message of messages) expect([validate(message), validate.errors]).toEqual([true, null]);
  expect(messages.at(-1)).toMatchObject({ reason: 'the oven is cold', occurredAt: expect.any(String) });
  expect(validate({ ...messages.at(-1), sequence: 0 })).toBe(false);
  expect(validate({ ...messages.at(-1), memberState: 'lost' })).toBe(false);
});
