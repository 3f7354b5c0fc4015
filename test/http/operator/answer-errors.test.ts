import pg from 'pg';
import { expect, it } from 'vitest';
import { TimeUnknown } from '../../../src/core/postgres/database-clock.ts';
import { isDatabaseAway } from '../../../src/http/operator/answer-errors.ts';

it('a request before Postgres has given the time counts as an outage of Postgres', () => {
  expect(isDatabaseAway(new TimeUnknown())).toBe(true);
  expect(isDatabaseAway(new Error('a fault'))).toBe(false);
});

it.each([
  ['55P03', undefined, true],
  // A database that takes no connections, as while it is restored.
  ['55000', 'CheckMyDatabase', true],
  // A table without a replica identity, of which all rows are published.
  ['55000', 'CheckCmdReplicaIdentity', false],
  ['55006', undefined, false],
  ['57P03', undefined, true],
])('whether the Postgres error %s of the routine %s counts as an outage: %s', (code, routine, isOutage) => {
  const error = Object.assign(new pg.DatabaseError('x', 1, 'error'), { code, routine });
  expect(isDatabaseAway(error)).toBe(isOutage);
});
