import { expect, it } from 'vitest';
import { TimeUnknown } from '../../../src/core/postgres/database-clock.ts';
import { isDatabaseAway } from '../../../src/http/operator/answer-errors.ts';

it('who asks before Postgres has told the time is asked to come again', () => {
  expect(isDatabaseAway(new TimeUnknown())).toBe(true);
  expect(isDatabaseAway(new Error('a fault'))).toBe(false);
});
