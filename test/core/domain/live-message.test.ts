import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { liveMessageSchema } from '../../../tools/build/write-asyncapi.ts';

it('the committed JSON Schema of live messages equals the schema of the code', async () => {
  // Where it is not: npm run asyncapi
  const committed = await readFile(new URL('../../../docs/live-message.schema.json', import.meta.url), 'utf8');
  expect(JSON.parse(committed)).toEqual(liveMessageSchema());
});
