import pg from 'pg';
import { expect, it } from 'vitest';
import { TimeUnknown } from '../../../src/core/postgres/database-clock.ts';
import { isDatabaseAway } from '../../../src/http/operator/answer-errors.ts';

it('a request before Postgres has given the time counts as an outage of Postgres', () => {
  expect(isDatabaseAway(new TimeUnknown())).toBe(true);
  expect(isDatabaseAway(new Error('a fault'))).toBe(false);
});

it.each([
  ['55P03', 'counts as an outage', undefined],
  // A database that takes no connections, as while it is restored.
  ['55000 of CheckMyDatabase', 'counts as an outage', 'CheckMyDatabase'],
  // A table without a replica identity, of which all rows are published.
  ['55000 of CheckCmdReplicaIdentity', 'is no outage', 'CheckCmdReplicaIdentity'],
  ['55006', 'is no outage', undefined],
  ['57P03', 'counts as an outage', undefined],
])('the Postgres error %s %s', (name, result, routine) => {
  const error = Object.assign(new pg.DatabaseError('x', 1, 'error'), { code: name.slice(0, 5), routine });
  expect(isDatabaseAway(error)).toBe(result === 'counts as an outage');
});
