import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { endAttempt } from '../../src/core/transitions/record-attempt.ts';
import { createLog } from '../../src/observe/create-log.ts';
import { eraseMembers } from '../../src/core/retention/erase-members.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const PII_DAYS = 30;
const words = 'Ada waits outside';

let system: System;
let pool: pg.Pool;
const closing: pg.Pool[] = [];

beforeAll(async () => {
  system = await startSystem();
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/' });
  const opened = openDatabase(system.env['DATABASE_URL'] ?? '', 5, () => {});
  pool = opened.pool;
  closing.push(opened.pool, opened.flushPool);
});
afterAll(async () => {
  await Promise.all(closing.map((each) => each.end()));
  await system.stop();
});
beforeEach(() => system.query('TRUNCATE orders, order_contents, status_events'));

/** Orders that ended one after the other, each a second after the one before, 40 days ago. */
async function seedEnded(...ids: string[]): Promise<void> {
  await system.query(
    `WITH o AS (
       INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, reason, ended_at)
       SELECT id, 'K472', 'club-1', 'pickup', 60, $2, now() - interval '40 days' + make_interval(secs => n)
       FROM unnest($1::text[]) WITH ORDINALITY AS t(id, n)
     )
     INSERT INTO order_contents (service_order_id, contents) SELECT id, '{}' FROM unnest($1::text[]) AS id`,
    [ids, words],
  );
}

const left = async (): Promise<unknown[]> =>
  (await system.query('SELECT service_order_id AS id FROM orders WHERE reason IS NOT NULL')).map((row) => row['id']);

describe('erasing the member data of ended orders', () => {
  it('happens within seconds after the start of a process, although the job runs hourly', async () => {
    await seedEnded('overdue');
    const another = await startSystem({ databaseUrl: system.databaseUrl, jobs: ['erasure of member data'] });
    await until(async () => (await left()).length === 0);
    await another.stop();
  });

  it('succeeds for an order with 400,000 repeated webhooks, while another webhook arrives', async () => {
    await seedEnded('flooded', 'other');
    await system.query(
      `INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, recorded_at)
       SELECT 'flooded', gen_random_uuid(), 'received', 'x', 'duplicate', now() - interval '31 days'
       FROM generate_series(1, 400000)`,
    );
    await system.query('ANALYZE status_events');
    const url = await system.webhookUrl('club-1');
    const erasing = eraseMembers(pool, PII_DAYS);
    await sleep(100);
    const answer = await post(url, statusWebhook({ serviceOrderId: 'flooded', status: 'COMPLETED' }));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'duplicate' } });
    let erased = await erasing;
    // An order whose webhook is just being applied is skipped, and the next round erases it.
    while (erased < 2) erased += await eraseMembers(pool, PII_DAYS);
    expect(erased).toBe(2);
    expect(await left()).toEqual([]);
  });

  it('includes a webhook in the partition of the day after its status event', async () => {
    await seedEnded('night');
    const [row] = await system.query(
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
       SELECT min(i.day), 'club-1', gen_random_uuid(), 'standard', now(), '{"x":"y"}', 'Ada', 1, 'applied'
       FROM (SELECT to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') AS day
             FROM pg_inherits WHERE inhparent = 'webhooks'::regclass) AS i
       RETURNING id, day::text`,
    );
    await system.query(
      `INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, recorded_at)
       VALUES ('night', $1, 'completed', 'x', 'applied', ($2::date - interval '1 second') AT TIME ZONE 'UTC')`,
      [row?.['id'], row?.['day']],
    );
    expect(await eraseMembers(pool, PII_DAYS)).toBe(1);
    const [kept] = await system.query('SELECT body, headers FROM webhooks WHERE id = $1', [row?.['id']]);
    expect(kept).toEqual({ body: Buffer.alloc(0), headers: {} });
  });

  it('skips and logs an order whose erasure takes too long, and does not make webhooks fail', async () => {
    await seedEnded('before', 'stuck', 'after');
    await system.query(
      `CREATE FUNCTION stick() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF old.service_order_id = 'stuck' THEN PERFORM pg_sleep(6); END IF; RETURN old; END $$;
       CREATE TRIGGER stick BEFORE DELETE ON order_contents FOR EACH ROW EXECUTE FUNCTION stick()`,
    );
    const logged: string[] = [];
    const log = createLog('info', { write: (line: string) => void logged.push(line) });
    const url = await system.webhookUrl('club-1');
    const erasing = eraseMembers(pool, PII_DAYS, log);
    await sleep(200);
    const answer = await post(url, statusWebhook({ serviceOrderId: 'after', status: 'COMPLETED' }));
    expect(await erasing).toBe(2);
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'duplicate' } });
    expect(await left()).toEqual(['stuck']);
    expect(logged.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { serviceOrderId: 'stuck', err: { code: '57014' } },
    ]);
    expect(logged.join('')).not.toContain(words);

    await system.query('DROP TRIGGER stick ON order_contents');
    expect(await eraseMembers(pool, PII_DAYS, log)).toBe(1);
    expect(await left()).toEqual([]);
  });

  it('includes the answer of a POS to a call that ends after the erasure', async () => {
    await seedEnded('under-way', 'known');
    await system.query(
      `WITH p AS (
         INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
         SELECT id, 'club-1', 'sent', now(), now() FROM unnest($1::text[]) AS id RETURNING service_order_id
       )
       INSERT INTO placement_attempts (service_order_id, attempt, call)
       SELECT id, 1, 'createOrder' FROM unnest($1::text[]) AS id`,
      [['under-way', 'known']],
    );
    await system.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'known'`);
    expect(await eraseMembers(pool, PII_DAYS)).toBe(1);
    const end = { attempt: 1, outcome: 'GiveUp', milliseconds: 9, error: words };
    for (const id of ['under-way', 'known']) await endAttempt(pool, id, end);
    expect(
      await system.query('SELECT service_order_id AS id, outcome, error FROM placement_attempts ORDER BY 1'),
    ).toEqual([
      { id: 'known', outcome: 'GiveUp', error: words },
      { id: 'under-way', outcome: 'GiveUp', error: null },
    ]);
  });
});
