/**
 * The plans of periodic looks, cached before there is an order, and used in an outage. Nothing analyses the tables in
 * between.
 */
import { beforeAll, expect, it } from 'vitest';
import { claimCancellations } from '../../../src/core/cancellations/claim-cancellations.ts';
import { sweepCancellations } from '../../../src/core/cancellations/sweep-cancellations.ts';
import { findSuspects, probeKitchens } from '../../../src/core/polling/probe-kitchens.ts';
import { settleKitchens } from '../../../src/core/kitchens/settle-kitchens.ts';
import { REFRESHES_DUE } from '../../../src/core/cancellations/refresh-order.ts';
import { MESSAGES_WAIT } from '../../../src/core/live/publish-live.ts';
import { MESSAGES_DUE } from '../../../src/core/notices/send-notices.ts';
import { PLACEMENTS_DUE } from '../../../src/core/placements/work-placements.ts';
import { dueLocations } from '../../../src/core/placements/due-locations.ts';
import { notifyEstimates } from '../../../src/core/statuses/notify-estimates.ts';
import { areDue } from '../../../src/core/postgres/when-due.ts';
import { DUE } from '../../../src/server/jobs.ts';
import { claimQuietOrders } from '../../../src/core/polling/claim-quiet-orders.ts';
import { WRITER_CONNECTIONS } from '../../../src/database/open-database.ts';
import { workOf } from '../../support/read-plans.ts';
import { servicePools } from '../../support/test-pool.ts';

/** Of each: silent kitchens, orders that wait, orders that are quiet, cancellations that are late. */
const MANY = 1_000;
const LOOKS = [...Object.values(DUE), PLACEMENTS_DUE, MESSAGES_WAIT, REFRESHES_DUE, MESSAGES_DUE];
/** Steps of a plan, generously. */
const STEPS = 200;
const { pool } = servicePools(WRITER_CONNECTIONS + 1);

beforeAll(async () => {
  const stopping = new AbortController().signal;
  const deps = { pool, registry: new Map(), silentLocations: () => [] } as unknown as Parameters<
    typeof probeKitchens
  >[0];
  await pool.query(
    `WITH l AS (INSERT INTO locations (location_id, integration, settings, created_at)
                SELECT 'n-' || nth, 'till', '', now() - interval '1 d' FROM generate_series(1, $1::int) AS nth)
     INSERT INTO location_last_seen SELECT 'n-' || nth, 'till', now() - interval '1 min' FROM generate_series(1, $1::int) AS nth`,
    [20 * MANY],
  );
  await pool.query('ANALYZE');
  // After some runs, Postgres chooses between such plans and new ones by their costs.
  await pool.query('SET plan_cache_mode = force_generic_plan');
  await findSuspects({ pool, registry: new Map(), silentLocations: () => [] });
  await probeKitchens(deps, { stopping });
  await settleKitchens(pool);
  await claimQuietOrders(pool, ['till'], 128);
  await claimCancellations(pool, { limit: 96, busy: [], open: [] });
  await sweepCancellations(pool);
  await dueLocations().refresh(pool, []);
  await notifyEstimates(pool);
  await areDue(pool, LOOKS);
  await pool.query(
    `WITH n AS (SELECT 'n-' || nth AS id FROM generate_series(1, $1::int) AS nth),
          k AS (INSERT INTO kitchens (location_id, since, state, source, unreachable_since, probe_at)
                SELECT id, now(), 'unreachable', 'inferred', now() - interval '1 min', now() FROM n),
          p AS (INSERT INTO placements (service_order_id, location_id, state, deadline_at, requested_at, attempts, finished_at)
                SELECT id || state, id, state, now() + interval '1 h', now(), 1, finished_at
                FROM n, (VALUES ('waiting', NULL), ('sent', now() - interval '630 s')) AS s (state, finished_at)
                UNION ALL SELECT id || 'over', id, 'sent', now(), now(), 1, now() FROM n),
          o AS (INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, call_out_code, updated_at)
                SELECT id || state, id, 'till', 'pickup', 10, 'K472', now() - interval '630 s'
                FROM n, unnest('{waiting,sent}'::text[]) AS state),
          e AS (INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, call_out_code, ended_at)
                SELECT id || 'over', id, 'till', 'pickup', 60, 'K472', now() FROM n),
          c AS (INSERT INTO order_contents (service_order_id, contents) SELECT id || 'sent', '{}' FROM n),
          d AS (INSERT INTO estimates_due (service_order_id, sequence, due_at)
                SELECT id || 'sent', 0, now() - interval '1 s' FROM n),
          x AS (INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at)
                SELECT id || state, id, 'platform', now() - interval '1 s' FROM n, unnest('{sent,over}'::text[]) AS state)
     INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome)
     SELECT id || state, 1, 'createOrder', now(), 'TryAgain' FROM n, unnest('{waiting,sent}'::text[]) AS state`,
    [MANY],
  );
});

it.each([
  ['find-suspects', `('{}', '{}', 30, 10, 300)`],
  ['claim-probes', ''],
  ['settle-kitchens', '(NULL)'],
  ['claim-quiet-orders', `('{till}', 128)`],
  ['claim-cancellations', `(96, gen_random_uuid(), '{}', '{}')`],
  ['finish-ended-cancellations', ''],
  ['give-late-cancellations-to-people', `('', '{}', '')`],
  ['notify-estimates', ''],
  ['find-due-locations', `('-infinity', '{}')`],
])('the statement %s reads a few rows for each order, not all rows', async (statement, parameters) => {
  expect(await workOf(pool, statement, parameters)).toBeLessThan(MANY * STEPS);
});

it('the look for work of all jobs and loops reads a few rows of each kind, also when nothing is due', async () => {
  await pool.query("UPDATE placements SET next_attempt_at = 'tomorrow'");
  const { rows } = await pool.query<{ name: string }>(
    "SELECT name FROM pg_prepared_statements WHERE name LIKE 'look %'",
  );
  // A third of them are the old versions of the rows that were just changed.
  expect(await workOf(pool, rows[0]?.name ?? '', '')).toBeLessThan(3 * MANY);
});
