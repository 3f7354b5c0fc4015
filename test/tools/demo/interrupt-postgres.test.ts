import { expect, it } from 'vitest';
import { checkOutage } from '../../../tools/demo/interrupt-postgres.ts';

it.each([
  [0, {}, 'no webhook arrived'],
  [2, { applied: 1, stale: 1 }, 'became {"applied":1,"stale":1}'],
  [2, { applied: 1, missing: 1 }, 'became {"applied":1,"missing":1}'],
  [2, { duplicate: 2 }, 'became {"duplicate":2}'],
])('an outage of which the member did not hear all is told: of %d accepted, %j', (accepted, outcomes, told) => {
  expect(checkOutage({ accepted, outcomes })).toContain(told);
});

it('an outage is over well when all that was accepted is applied, or says nothing new', () => {
  expect(checkOutage({ accepted: 3, outcomes: { applied: 2, ignored: 1 } })).toBeUndefined();
});
