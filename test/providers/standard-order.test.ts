import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { KitchenOrder } from '../../src/core/domain/order.ts';

it('the committed JSON Schema of an order equals the schema in the code', async () => {
  // Where it is not:
  // npm exec -- node --input-type=module -e "import { z } from 'zod';
  //   import { KitchenOrder } from './src/core/domain/order.ts';
  //   console.log(JSON.stringify(z.toJSONSchema(KitchenOrder, { io: 'input' })))" > docs/providers/standard-order.schema.json
  // and `npm run format`.
  const committed = await readFile(new URL('../../docs/providers/standard-order.schema.json', import.meta.url), 'utf8');
  expect(JSON.parse(committed)).toEqual(z.toJSONSchema(KitchenOrder, { io: 'input' }));
});
