import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { KitchenOrder } from '../../src/core/domain/order.ts';
import { sampleOrder } from '../support/sample-order.ts';
import { startPos, type Pos } from '../support/start-pos.ts';
import { startSystem, type System } from '../support/start-system.ts';

let system: System;
let pos: Pos;

beforeAll(async () => {
  [system, pos] = await Promise.all([startSystem({ stepped: ['placements'] }), startPos()]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

const committed = async (): Promise<object> =>
  JSON.parse(
    await readFile(new URL('../../docs/providers/standard-order.schema.json', import.meta.url), 'utf8'),
  ) as object;

it('the committed JSON Schema is what an order is', async () => {
  // Where it is not:
  // npm exec -- node --input-type=module -e "import { z } from 'zod';
  //   import { KitchenOrder } from './src/core/domain/order.ts';
  //   console.log(JSON.stringify(z.toJSONSchema(KitchenOrder, { io: 'input' })))" > docs/providers/standard-order.schema.json
  // and `npm run format`.
  expect(await committed()).toEqual(z.toJSONSchema(KitchenOrder, { io: 'input' }));
});

it('what a POS is sent is what the schema says, with all fields and with the fewest', async () => {
  const requestedAt = new Date(Date.now() + 3_600_000).toISOString();
  const { destination } = sampleOrder({ type: 'delivery' }).fulfillment;
  if (destination === undefined) throw new Error('a delivery goes nowhere');
  await system.placeOrder({ fulfillment: { type: 'delivery', destination, requestedAt } });
  const { notes: _notes, ...fewest } = sampleOrder({
    member: { id: 'member-42', name: 'Ada' },
    items: [{ serviceItemId: 'soup', name: 'Soup', quantity: 1, ageRestricted: false, modifiers: [] }],
  });
  system.platform.orders.set(fewest.serviceOrderId, fewest);
  expect(await system.signal(fewest.serviceOrderId)).toBe(204);
  await system.round('placements');

  const validate = new Ajv2020({ validateFormats: false }).compile(await committed());
  const sent = pos.tickets.map(({ order }) => order);
  expect(sent).toHaveLength(2);
  for (const order of sent) expect([validate(order), validate.errors]).toEqual([true, null]);
  expect(sent.filter((order) => order.notes === undefined)).toHaveLength(1);
  expect(sent.map((order) => order.callOutCode)).not.toContain(undefined);
  expect(validate({ ...sent[0], items: [] })).toBe(false);
  expect(validate({ ...sent[0], serviceOrderId: undefined })).toBe(false);
});
