import { expect, it } from 'vitest';
import { outageInWords } from '../../console/outage-in-words.ts';

it.each([
  ['up', 0, 'nothing'],
  ['unknown', 0, 'nothing'],
  ['down', 0, 'Postgres is unavailable'],
  ['down', 1, 'Postgres is unavailable: 1 webhook waits in the spill'],
  ['down', 1_204, 'Postgres is unavailable: 1,204 webhooks wait in the spill'],
  ['read_only', 0, 'Postgres is read-only'],
  ['read_only', 2, 'Postgres is read-only: 2 webhooks wait in the spill'],
  ['up', 1, '1 webhook stored during the outage is being applied'],
  ['up', 2, '2 webhooks stored during the outage are being applied'],
] as const)('while Postgres is %s and %d webhooks wait, the banner says: %s', (database, waiting, text) => {
  expect(outageInWords({ database, waiting, oldestAt: null })?.text ?? 'nothing').toBe(text);
});
