import { beforeAll, expect, it } from 'vitest';
import { listWebhooks, type WebhookFilter, type WebhookKey } from '../../../src/core/replay/list-webhooks.ts';
import { replayWebhooks } from '../../../src/core/replay/replay-webhooks.ts';
import type { Replaying } from '../../../src/core/replay/replay-webhook.ts';
import { allPages } from '../../support/all-pages.ts';
import { readPlans } from '../../support/read-plans.ts';
import { servicePools } from '../../support/test-pool.ts';

const WEBHOOKS = 40_000;
/** Rows that a page may look at, however many there are: 5,000 twice, and what it leaps through. */
const READS = 12_000;

const { pool } = servicePools();

/** One a second, a quarter of them at one location; the newest is 1. */
beforeAll(async () => {
  await pool.query(
    `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome, reason)
     SELECT (at AT TIME ZONE 'UTC')::date, CASE WHEN i % 4 = 0 THEN 'busy' ELSE 'club-' || i % 101 END,
            (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000' || '8000' ||
             lpad(to_hex(i), 12, '0'))::uuid,
            CASE WHEN i IN (3, 39996, 39998) THEN 'rare' ELSE 'standard' END, at, '{}', 'x', 1,
            CASE WHEN i % 1000 = 0 THEN 'dropped' ELSE 'applied' END, CASE WHEN i % 1000 = 0 THEN 'no' END
     FROM (SELECT i, now() - make_interval(secs => i * 0.5) AS at FROM generate_series(1, $1::int) AS i) AS d`,
    [WEBHOOKS],
  );
  await pool.query('ANALYZE webhooks');
});

it.each<[string, WebhookFilter]>([
  ['all', {}],
  ["a location's", { locations: ['busy'] }],
  ["several locations'", { locations: ['club-7', 'busy', 'nowhere'] }],
  ["several quiet locations'", { locations: ['club-7', 'club-8'] }],
  ["several locations', of an outcome that none has", { locations: ['club-7', 'busy'], outcome: 'stale' }],
  ["a location's, of an outcome that none has", { locations: ['busy'], outcome: 'stale' }],
  ['of an outcome that none has', { outcome: 'stale' }],
  ['dropped', { outcome: 'dropped' }],
  ["a location's dropped", { locations: ['busy'], outcome: 'dropped' }],
  ['by an integration that hardly any has', { integration: 'rare' }],
  ['of a time long ago', { until: new Date(Date.now() - 15_000_000) }],
  ['of all time', { since: new Date(0) }],
  ["an order's", { locations: ['busy'], serviceOrderId: 'order-1' }],
  ['to be replayed', { outcome: 'dropped', replayable: 'open' }],
])('a page of webhooks reads only few rows, however many webhooks there are (filter: %s)', async (_what, filter) => {
  for (const oldestFirst of [false, true]) {
    const { whole, reads } = await readPlans(pool, (asked) => listWebhooks(asked, filter, { oldestFirst, limit: 50 }));
    expect(whole).toEqual([]);
    expect(reads).toBeLessThanOrEqual(READS);
  }
});

it.each<[string, WebhookFilter, string]>([
  ['an integration that hardly any has', { integration: 'rare' }, `integration = 'rare'`],
  ['an outcome in the index', { outcome: 'dropped' }, `outcome = 'dropped'`],
  ['an outcome that is not in the index', { outcome: 'applied', integration: 'rare' }, `integration = 'rare'`],
  ['several locations', { locations: ['club-8', 'busy', 'club-7'] }, `location_id IN ('busy', 'club-7', 'club-8')`],
  ['one location', { locations: ['club-7'] }, `location_id = 'club-7'`],
  [
    "few of one location's many",
    { locations: ['busy'], integration: 'rare' },
    `location_id = 'busy' AND integration = 'rare'`,
  ],
  ['nothing', { until: new Date(8e12) }, 'true'],
])('the pages of a list show every match once and in sequence (filter: %s)', async (_what, filter, condition) => {
  const { rows } = await pool.query<{ id: string }>(`SELECT id FROM webhooks WHERE ${condition} ORDER BY id`);
  const expected = rows.map(({ id }) => id);
  for (const oldestFirst of [true, false]) {
    const pages = await allPages((after: WebhookKey | undefined) =>
      listWebhooks(pool, filter, { oldestFirst, after, limit: 1_000 }),
    );
    const found = pages.flatMap(({ webhooks }) => webhooks.map(({ webhookId }) => webhookId));
    expect(found).toEqual(oldestFirst ? expected : expected.toReversed());
  }
});

it('a replay without any match can be stopped and continued', async () => {
  const deps = { pool, dryRun: true } as Replaying;
  const passed: WebhookKey[] = [];
  for (let nth = 0; nth < 2; nth += 1) {
    const run = replayWebhooks(
      deps,
      { integration: 'nobody', until: new Date(), replayable: 'open' },
      {
        by: { kind: 'command_line', id: 'ada', name: 'ada' },
        from: passed.at(-1),
        passed(upTo) {
          passed.push(upTo);
          return 'enough';
        },
      },
    );
    for await (const { of } of run) expect(of, 'none matches').toBeUndefined();
  }
  const ids = passed.map(({ webhookId }) => webhookId);
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(2);
});

it('webhooks of one millisecond are all found, even if they do not fit into one page of the list', async () => {
  await pool.query(
    `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
     SELECT (at AT TIME ZONE 'UTC')::date, 'club-' || i % 3,
            (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid,
            'burst', at, '{}', 'x', 1, 'applied'
     FROM (SELECT now() + interval '1 day' AS at) AS t, generate_series(1, 6000) AS i`,
  );
  let found = 0;
  let after: WebhookKey | undefined;
  do {
    const page = await listWebhooks(pool, { integration: 'burst' }, { oldestFirst: false, after, limit: 10_000 });
    found += page.webhooks.length;
    after = page.next;
  } while (after !== undefined);
  expect(found).toBe(6_000);
});
