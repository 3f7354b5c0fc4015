import { expect, it } from 'vitest';
import { checkOutage } from '../../../tools/demo/interrupt-postgres.ts';

it.each([
  [0, {}, 'no webhook arrived'],
  [2, { applied: 1, stale: 1 }, 'became {"applied":1,"stale":1}'],
  [2, { applied: 1, missing: 1 }, 'became {"applied":1,"missing":1}'],
  [2, { duplicate: 2 }, 'became {"duplicate":2}'],
])(
  'the demo reports a broken promise if %d webhooks were accepted during the outage and had the outcomes %j',
  (accepted, outcomes, told) => {
    expect(checkOutage({ accepted, repeated: 1, outcomes }, true)).toContain(told);
  },
);

it('the demo reports no broken promise if all accepted webhooks were applied or ignored', () => {
  expect(checkOutage({ accepted: 3, repeated: 0, outcomes: { applied: 2, ignored: 1 } }, true)).toBeUndefined();
});

it('the demo accepts an outage without a spill only if webhooks were repeated', () => {
  expect(checkOutage({ accepted: 0, repeated: 4, outcomes: {} }, false)).toBeUndefined();
  expect(checkOutage({ accepted: 0, repeated: 0, outcomes: {} }, false)).toContain('no webhook arrived');
});
