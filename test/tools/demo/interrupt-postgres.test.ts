import { expect, it } from 'vitest';
import { checkOutage } from '../../../tools/demo/interrupt-postgres.ts';

it.each([
  [0, {}, 'no webhook arrived'],
  [2, { applied: 1, stale: 1 }, 'became {"applied":1,"stale":1}'],
  [2, { applied: 1, missing: 1 }, 'became {"applied":1,"missing":1}'],
  [2, { duplicate: 2 }, 'became {"duplicate":2}'],
])('an outage after which the member misses a status is reported: of %d accepted, %j', (accepted, outcomes, told) => {
  expect(checkOutage({ accepted, outcomes })).toContain(told);
});

it('an outage has no complaint if all accepted webhooks are applied, or have no news', () => {
  expect(checkOutage({ accepted: 3, outcomes: { applied: 2, ignored: 1 } })).toBeUndefined();
});
