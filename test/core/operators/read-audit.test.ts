import { beforeAll, expect, it } from 'vitest';
import { readActionsAbout, readAudit, type AuditFilter } from '../../../src/core/operators/read-audit.ts';
import { allPages } from '../../support/all-pages.ts';
import { readPlans } from '../../support/read-plans.ts';
import { servicePools } from '../../support/test-pool.ts';

const ACTS = 30_000;
/** Rows that a page may look at, however many there are: 2,000 ids twice, their acts and their ends. */
const READS = 8_100;
const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1_000);
const webhookIds = Array.from({ length: 500 }, (_, nth) => `019c1f6e-5d2a-7c41-8f6b-${String(nth).padStart(12, '0')}`);

const { pool } = servicePools();

beforeAll(async () => {
  await pool.query(
    `INSERT INTO audit (at, actor_kind, actor_id, actor_name, action, location_id, service_order_id, webhook_id)
     SELECT now() - make_interval(secs => $1::int - i), 'person', 'id-' || i % 10, 'name-' || i % 10,
            CASE WHEN i % 15000 = 3 THEN 'erase member' ELSE 'replay' END,
            CASE WHEN i % 9000 = 1 THEN 'quiet' WHEN i < 9000 THEN 'old' WHEN i % 7 > 0 THEN 'club-' || i % 100 END,
            CASE WHEN i % 3 = 0 THEN 'order-' || i % 5 END,
            CASE WHEN i % 3 = 1 THEN ('019c1f6e-5d2a-7c41-8f6b-' || lpad((i % 500)::text, 12, '0'))::uuid END
     FROM generate_series(1, $1::int) AS i`,
    [ACTS],
  );
  await pool.query(
    `INSERT INTO audit_outcomes (audit_id, outcome) SELECT audit_id, 'done' FROM audit WHERE audit_id > 2`,
  );
  // As autovacuum does of what was added.
  await pool.query('VACUUM (ANALYZE) audit, audit_outcomes');
});

it.each<[string, AuditFilter, string?]>([
  ['all', {}],
  ['all, of the last page', {}, '20000'],
  ["a location's", { locations: ['club-7'] }],
  ["a quiet location's", { locations: ['quiet'] }],
  ["several locations'", { locations: ['quiet', 'club-1'] }],
  ["no location's", { locations: [] }],
  ["a busy location's of long ago", { locations: ['old'] }],
  ["a busy location's within a time long ago", { locations: ['old'], until: ago(ACTS - 3_000), action: 'dance' }],
  ["an order's", { serviceOrderId: 'order-3' }],
  ["nobody's", { actor: 'nobody' }],
  ['by an actor without actions', { action: 'dance' }],
  ['of an unknown action', { outcome: 'unknown' }],
  ['failed actions', { outcome: 'failed' }],
  ['of a time long ago', { until: ago(ACTS - 100) }],
  ['without an end, in all time', { since: new Date(0) }],
  ['of a moment', { since: ago(20_000), until: ago(19_999), action: 'dance' }],
])(
  'a page of the audit reads only few rows, however many entries there are (filter: %s)',
  async (_what, filter, before) => {
    const { whole, reads } = await readPlans(pool, (asked) => readAudit(asked, filter, { before, limit: 50 }));
    expect(whole).toEqual([]);
    expect(reads).toBeLessThanOrEqual(READS);
  },
);

it('the audit of one order reads only few rows', async () => {
  const { whole, reads } = await readPlans(pool, (asked) =>
    readActionsAbout(asked, 'order-3', webhookIds.slice(0, 20)),
  );
  expect(whole).toEqual([]);
  expect(reads).toBeLessThan(1_500);
});

it.each<[string, AuditFilter, string]>([
  ['by its action', { action: 'erase member' }, `action = 'erase member'`],
  [
    "by an actor's name",
    { actor: 'name-3', locations: ['club-3'] },
    `actor_name = 'name-3' AND location_id = 'club-3'`,
  ],
  [
    "by an actor's id",
    { actor: 'id-3', locations: ['quiet', 'club-3'] },
    `actor_id = 'id-3' AND location_id = 'club-3'`,
  ],
  ['by an outcome', { outcome: 'unknown' }, 'audit_id < 3'],
  [
    'within a time',
    { since: ago(20_000), until: ago(19_000) },
    `at >= '${ago(20_000).toISOString()}' AND at < '${ago(19_000).toISOString()}'`,
  ],
  ['nowhere', { locations: [] }, 'false'],
])(
  'the pages of the audit show every match once, with the newest first (filter: %s)',
  async (_what, filter, condition) => {
    const { rows } = await pool.query<{ id: string }>(
      `SELECT audit_id AS id FROM audit WHERE ${condition} ORDER BY 1 DESC`,
    );
    const pages = await allPages((before: string | undefined) => readAudit(pool, filter, { before, limit: 50 }));
    const found = pages.flatMap(({ actions }) => actions.map(({ auditId }) => auditId));
    expect(found.length).toBe(new Set(found).size);
    // The span is by a clock that moved between the two reads.
    expect(Math.abs(found.length - rows.length)).toBeLessThan(3);
    if (filter.since === undefined) expect(found).toEqual(rows.map(({ id }) => id));
  },
);

it('an action that was written late with an earlier time is also found', async () => {
  // Its id is the newest, its time ten seconds ago.
  await pool.query(
    `INSERT INTO audit (at, actor_kind, actor_id, actor_name, action)
     SELECT now() - interval '10 s', 'person', 'late', 'late', 'retry'`,
  );
  const { actions } = await readAudit(pool, { actor: 'late', since: ago(15), until: ago(5) }, { limit: 50 });
  expect(actions).toHaveLength(1);
});
