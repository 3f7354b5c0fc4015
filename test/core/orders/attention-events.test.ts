import { beforeEach, expect, it } from 'vitest';
import { closeCase, snooze, takeCase } from '../../../src/core/cases/cases.ts';
import {
  ATTENTION_ROW,
  attentionEvent,
  recordAttention,
  type AttentionRow,
} from '../../../src/core/orders/attention-events.ts';
import type { Observed } from '../../../src/core/domain/observed.ts';
import { AttentionEvent } from '../../../src/core/domain/attention-event.ts';
import { publishRows } from '../../../src/core/postgres/publish-rows.ts';
import { inTransaction, LOCK_ATTENTION } from '../../../src/core/postgres/transactions.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool({ max: 4 });
beforeEach(() => pool.query('TRUNCATE attention_items, placements, orders, cancellations, cases, locations CASCADE'));

const seed = (id: string, state: string, { locationId = 'club-1' } = {}): Promise<void> =>
  seedOrders(pool, [id], {
    locationId,
    order: { integration: 'acme' },
    placement: {
      state,
      next_attempt_at: state === 'held' ? 'now' : 'infinity',
      finished_at: state === 'failed' ? 'now' : null,
    },
  });
const end = (id: string): Promise<unknown> =>
  pool.query(`UPDATE placements SET state = 'sent', finished_at = now() WHERE service_order_id = $1`, [id]);
const later = (minutes: number): Promise<unknown> =>
  pool.query(
    `UPDATE attention_items SET opened_at = opened_at - make_interval(mins => $1),
       told_at = told_at - make_interval(mins => $1), reminded_at = reminded_at - make_interval(mins => $1)`,
    [minutes],
  );

/** Records what needs a person, and publishes it. @returns the events */
async function tell(remindMin?: number): Promise<string[]> {
  await recordAttention(pool, remindMin);
  const told: AttentionRow[] = [];
  await publishing(async (row) => void told.push(row)).round();
  return told.map(({ event, id, count, holder, reminders }) =>
    [event, id, count > 1 && `of ${count}`, holder, reminders > 0 && `reminder ${reminders}`].filter(Boolean).join(' '),
  );
}
const observed: Observed[] = [];
const publishing = (publish: (row: AttentionRow) => Promise<unknown>) =>
  publishRows({
    pool,
    table: 'attention_items',
    key: 'item_key',
    row: ATTENTION_ROW,
    publish,
    work: 'publishing of attention',
    observe: (each) => void observed.push(each),
    log: { error: () => {} },
  });

it('a need is published once when it opens and once when it closes', async () => {
  await seed('order-1', 'in_doubt');
  expect(await tell()).toEqual(['opened in_doubt order-1']);
  expect(await tell()).toEqual([]);
  await end('order-1');
  expect(await tell()).toEqual(['closed in_doubt order-1']);
  expect(await tell()).toEqual([]);
  // Its numbers grow even if the clock was set back.
  await pool.query('UPDATE attention_items SET sequence = 2 * sequence, published_sequence = 2 * sequence');
  await pool.query(`UPDATE placements SET state = 'in_doubt', finished_at = NULL`);
  expect(await tell()).toEqual(['opened in_doubt order-1']);
});

it('a closed need is deleted after a week, but not before its end is published', async () => {
  await seed('order-1', 'in_doubt');
  await tell();
  await end('order-1');
  await recordAttention(pool);
  await pool.query(`UPDATE attention_items SET closed_at = now() - interval '8 d'`);
  expect(await tell()).toEqual(['closed in_doubt order-1']);
  await recordAttention(pool);
  expect((await pool.query('SELECT FROM attention_items')).rowCount).toBe(0);
});

it('the held orders of one location are one need, which is published again when their number changes', async () => {
  await seed('order-1', 'held');
  await seed('order-2', 'held');
  await seed('order-3', 'held', { locationId: 'club-2' });
  expect((await tell()).toSorted()).toEqual(['opened held club-1 of 2', 'opened held club-2']);
  await seed('order-4', 'held');
  // Many orders may fail in a minute.
  await later(5);
  expect(await tell()).toEqual([]);
  await later(11);
  expect((await tell()).toSorted()).toEqual(['updated held club-1 of 3 reminder 1', 'updated held club-2 reminder 1']);
});

it('a need with a holder is published again a quarter of an hour after the number of its orders has changed', async () => {
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('club-1', 'acme', '')`);
  await takeCase(pool, { locationId: 'club-1' }, 'Anna');
  await seed('order-1', 'held');
  await tell();
  await seed('order-2', 'held');
  await later(14);
  expect(await tell()).toEqual([]);
  await later(2);
  expect(await tell()).toEqual(['updated held club-1 of 2 Anna']);
  await later(16);
  expect(await tell()).toEqual([]);
});

it('only one process at a time records needs', async () => {
  await seed('order-1', 'in_doubt');
  await inTransaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_ATTENTION]);
    expect(await recordAttention(pool)).toBe(false);
  });
  expect(await recordAttention(pool)).toBe(true);
});

it('a need is published at once when somebody takes its case', async () => {
  await seed('order-1', 'in_doubt');
  await tell();
  await takeCase(pool, { serviceOrderId: 'order-1' }, 'Anna');
  expect(await tell()).toEqual(['updated in_doubt order-1 Anna']);
});

it('a need that was handed over says who gave it to whom, at once', async () => {
  await seed('order-1', 'held');
  await tell(0);
  await takeCase(pool, { serviceOrderId: 'order-1' }, 'Ann', 'Grace');
  expect(await tell()).toEqual(['updated held club-1 Ann']);
  const said = async (): Promise<AttentionEvent> => {
    const { rows } = await pool.query<{ row: AttentionRow }>(`SELECT ${ATTENTION_ROW} AS row FROM attention_items k`);
    return attentionEvent(rows[0]?.row as AttentionRow, undefined, () => 'Acme');
  };
  expect(await said()).toMatchObject({ givenBy: 'Grace', sentence: expect.stringMatching(/^Grace gave it to Ann: 1/) });
  // It stands for two orders, and nobody has the other one.
  await seed('order-2', 'held');
  expect(await tell()).toEqual(['updated held club-1 of 2']);
  expect(await said()).toMatchObject({
    holder: null,
    givenBy: null,
    given: [{ callOutCode: 'K472', holder: 'Ann', givenBy: 'Grace', takenAt: expect.any(String) }],
    sentence: expect.stringMatching(/^Grace gave K472 to Ann: 2 orders/),
  });
  await seed('order-3', 'held');
  await takeCase(pool, { serviceOrderId: 'order-2' }, 'Ben', 'Ann');
  expect(await tell()).toEqual(['updated held club-1 of 3']);
  expect(await tell()).toEqual([]);
  expect((await said()).sentence).toMatch(
    /^(Grace gave K472 to Ann|Ann gave K472 to Ben), .* gave K472 to (Ann|Ben): 3 orders/,
  );
  // Nobody gave anything when one of them ends, or somebody takes one.
  await end('order-1');
  expect(await tell()).toEqual([]);
  await takeCase(pool, { serviceOrderId: 'order-2' }, 'Cleo');
  expect(await tell()).toEqual([]);
  await takeCase(pool, { serviceOrderId: 'order-2' }, 'Ben', 'Ann');
  expect(await tell()).toEqual(['updated held club-1 of 2']);
});

it('a need without a holder is published again every quarter of an hour, but at most eight times', async () => {
  await seed('order-1', 'in_doubt');
  await tell();
  const reminders: string[] = [];
  for (let nth = 0; nth < 10; nth += 1) {
    await later(14);
    expect(await tell()).toEqual([]);
    await later(2);
    reminders.push(...(await tell()));
  }
  expect(reminders).toHaveLength(8);
  expect(reminders.at(-1)).toBe('updated in_doubt order-1 reminder 8');
  await takeCase(pool, { serviceOrderId: 'order-1' }, 'Anna');
  await tell();
  await later(60);
  expect(await tell()).toEqual([]);
});

it('a need without a holder is published again after the configured minutes', async () => {
  await seed('order-1', 'in_doubt');
  await tell(40);
  await later(39);
  expect(await tell(40)).toEqual([]);
  await later(2);
  expect(await tell(40)).toEqual(['updated in_doubt order-1 reminder 1']);
});

it('a need other than a doubt is published as closed if it is snoozed or its case is closed', async () => {
  await seed('order-1', 'held');
  await seed('order-2', 'failed', { locationId: 'club-2' });
  await seed('order-3', 'in_doubt', { locationId: 'club-3' });
  await tell();
  await snooze(pool, { serviceOrderId: 'order-1' }, 30);
  await closeCase(pool, { serviceOrderId: 'order-2' }, { by: 'Anna', text: undefined });
  await closeCase(pool, { serviceOrderId: 'order-3' }, { by: 'Anna', text: undefined });
  await snooze(pool, { serviceOrderId: 'order-3' }, 30);
  expect((await tell()).toSorted()).toEqual(['closed failed club-2', 'closed held club-1']);
});

it("the held orders of a location have the holder of the location's case", async () => {
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings) VALUES ('club-1', 'acme', '') ON CONFLICT DO NOTHING`,
  );
  await seed('order-1', 'held');
  await takeCase(pool, { locationId: 'club-1' }, 'Anna');
  expect(await tell()).toEqual(['opened held club-1 Anna']);
  await snooze(pool, { locationId: 'club-1' }, 30);
  expect(await tell()).toEqual(['closed held club-1 Anna']);
});

it('POS systems that do not answer are one need for each location, but five of a vendor are one need together', async () => {
  const fail = (integration: string, from: number, to: number): Promise<unknown> =>
    pool.query(
      `WITH l AS (
         INSERT INTO locations (location_id, integration, settings)
         SELECT $1 || '-' || n, $1, '' FROM generate_series($2::int, $3::int) AS n RETURNING location_id
       )
       INSERT INTO kitchens (location_id, state, since, unreachable_since) SELECT location_id, 'unreachable', now(), now() FROM l`,
      [integration, from, to],
    );
  await fail('acme', 1, 4);
  await fail('other', 1, 1);
  const of = (ids: string[]): string[] => ids.map((id) => `opened unreachable ${id}`);
  expect((await tell()).toSorted()).toEqual(of(['acme-1', 'acme-2', 'acme-3', 'acme-4', 'other-1']));
  await fail('acme', 5, 6);
  await snooze(pool, { locationId: 'acme-1' }, 30);
  expect((await tell()).toSorted()).toEqual([
    ...['acme-1', 'acme-2', 'acme-3', 'acme-4'].map((id) => `closed unreachable ${id}`),
    'opened unreachable/acme of 6',
  ]);
  await takeCase(pool, { locationId: 'acme-3' }, 'Anna');
  expect(await tell()).toEqual(['updated unreachable/acme of 6 Anna']);
  await pool.query(`UPDATE kitchens SET state = 'open' WHERE location_id = ANY ($1)`, [
    ['acme-1', 'acme-4', 'acme-5', 'acme-6'],
  ]);
  expect(await tell()).toEqual([]);
  const { rows } = await pool.query<{ row: AttentionRow }>(
    `SELECT ${ATTENTION_ROW} AS row FROM attention_items k WHERE item_key = 'unreachable/acme'`,
  );
  expect(attentionEvent(rows[0]?.row as AttentionRow, undefined, () => 'Acme')).toMatchObject({
    locationId: null,
    integration: 'acme',
    sentence: 'Anna has it: The POS systems of 6 locations with Acme do not answer. Call the vendor.',
  });
});

it('a test order never becomes a need', async () => {
  await seed('order-1', 'held');
  await seed('order-2', 'failed');
  await pool.query(`UPDATE placements SET next_attempt_at = 'infinity'`);
  await pool.query(`UPDATE orders SET reason = 'This was a test order.'`);
  expect(await tell()).toEqual([]);
});

it('a need that no longer fits into a full list is not published as closed', async () => {
  await seed('order-1', 'in_doubt');
  await tell();
  await pool.query(
    `INSERT INTO placements (service_order_id, location_id, state, deadline_at, next_attempt_at, signalled_at)
     SELECT 'newer-' || n, 'club-2', 'in_doubt', now(), 'infinity', now() + n * interval '1 s' FROM generate_series(1, 2000) AS n`,
  );
  await recordAttention(pool);
  const { rows } = await pool.query(
    `SELECT FROM attention_items WHERE item_key = 'in_doubt order-1' AND closed_at IS NULL`,
  );
  expect(rows).toHaveLength(1);
});

it('a need is published as opened even if somebody takes its case before that event is published', async () => {
  await seed('order-1', 'in_doubt');
  await recordAttention(pool);
  await takeCase(pool, { serviceOrderId: 'order-1' }, 'Anna');
  expect(await tell()).toEqual(['opened in_doubt order-1 Anna']);
});

it('a need that has ended before its first event is not published', async () => {
  await seed('order-1', 'in_doubt');
  await recordAttention(pool);
  await end('order-1');
  expect(await tell()).toEqual([]);
});

it('if a need comes back before its end was published, it continues as `updated`', async () => {
  await seed('order-1', 'in_doubt');
  await tell();
  await end('order-1');
  await recordAttention(pool);
  await pool.query(`UPDATE placements SET state = 'in_doubt', finished_at = NULL`);
  expect(await tell()).toEqual(['updated in_doubt order-1']);
});

it('if a need ends during its first publishing, its end is published too, because the first event may have arrived', async () => {
  await seed('order-1', 'in_doubt');
  await recordAttention(pool);
  const told: string[] = [];
  const publisher = publishing(async ({ event }) => {
    if (told.push(event) > 1) return;
    await end('order-1');
    await recordAttention(pool);
    throw new Error('the answer was lost');
  });
  await publisher.round();
  await pool.query('UPDATE attention_items SET lease_until = now()');
  await publisher.round();
  expect(told).toEqual(['opened', 'closed']);
});

it('an event that cannot be published is tried again with the newest state', async () => {
  await seed('order-1', 'in_doubt');
  await recordAttention(pool);
  const told: string[] = [];
  const publisher = publishing(async ({ event, holder }) => {
    if (told.push(`${event} ${holder}`) === 1) {
      await takeCase(pool, { serviceOrderId: 'order-1' }, 'Anna');
      await recordAttention(pool);
      throw new Error('down');
    }
  });
  await publisher.round();
  await pool.query('UPDATE attention_items SET lease_until = now()');
  await publisher.round();
  // The first may have been told.
  expect(told).toEqual(['opened null', 'updated Anna']);
  const work = { what: 'background work', work: 'publishing of attention' };
  expect(observed.slice(-2)).toMatchObject([
    { ...work, outcome: 'failed', error: { message: 'down' } },
    { ...work, outcome: 'done' },
  ]);
});

it('an event has a sentence with the name of the location, and a link to its page, and no member data', async () => {
  await seed('order 1', 'in_doubt');
  await pool.query(
    `INSERT INTO locations (location_id, name, integration, settings) VALUES ('club-1', 'Harbour Club', 'acme', '')
     ON CONFLICT (location_id) DO UPDATE SET name = excluded.name`,
  );
  await recordAttention(pool);
  const { rows } = await pool.query<{ row: AttentionRow }>(`SELECT ${ATTENTION_ROW} AS row FROM attention_items k`);
  const event = attentionEvent(rows[0]?.row as AttentionRow, 'https://console.example.com', String);
  expect(AttentionEvent.strict().parse(event)).toEqual({
    event: 'opened',
    at: expect.any(String),
    id: 'in_doubt order 1',
    kind: 'in_doubt',
    sentence: 'Is order K472 at the POS of Harbour Club? We do not send it twice.',
    serviceOrderId: 'order 1',
    callOutCode: 'K472',
    locationId: 'club-1',
    integration: 'acme',
    count: 1,
    holder: null,
    givenBy: null,
    given: [],
    openedAt: expect.any(String),
    closedAt: null,
    reminders: 0,
    sequence: expect.any(Number),
    url: 'https://console.example.com/console/orders/order%201',
  });
});
