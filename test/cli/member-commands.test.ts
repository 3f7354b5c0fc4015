import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eraseBatch, eraseMember } from '../../src/core/retention/erase-members.ts';
import { TryAgain } from '../../src/core/domain/errors.ts';
import type { StatusEvent } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { placesOf } from '../support/places-of.ts';
import { readPlans } from '../support/read-plans.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import { runRefused } from '../support/run-refused.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

type Erased = { dryRun: boolean; erased: string[]; left: { serviceOrderId: string; why: string }[] };

const mark = `Zuleika-${randomUUID()}`;
const otherMark = `Quentin-${randomUUID()}`;
const member = { id: `member-${randomUUID()}`, name: mark };

/** A POS that repeats whose order it is, and is busy where the order says so. */
const gossip: Provider = {
  integration: 'gossip',
  settings: z.object({}),
  deduplicates: false,
  createOrder(order) {
    const busy = new TryAgain(`${order.member.name} has to wait`, { sent: false, retryAfterMs: 3_600_000 });
    return order.notes === 'busy'
      ? Promise.reject(busy)
      : Promise.resolve({ providerOrderId: `pos-${order.serviceOrderId}` });
  },
  translateWebhook: ({ body }) => JSON.parse(body.toString()) as StatusEvent[],
};

let system: System;
let env: Record<string, string>;
let webhook: string;

beforeAll(async () => {
  system = await startSystem({ stepped: ['placements', 'refreshes', 'cancellations', 'relay'], providers: [gossip] });
  env = system.env;
  await system.addLocation('club-1', {}, 'gossip');
  webhook = await system.webhookUrl('club-1');
});
afterAll(() => system?.stop());

const place = async (about: { notes?: string; other?: boolean } = {}): Promise<string> => {
  const { serviceOrderId: id } = await system.placeOrder({
    member: about.other ? { id: 'another', name: otherMark } : member,
    notes: about.notes ?? 'none',
  });
  await system.finish('placements');
  expect(await system.placement(id)).toMatchObject({ state: about.notes === 'busy' ? 'waiting' : 'sent' });
  return id;
};
const tell = async (serviceOrderId: string, status: StatusEvent['status'], words: string): Promise<unknown> => {
  const { body } = await post(webhook, [{ serviceOrderId, status, nativeStatus: 'X', reason: words }], {
    'x-for': words,
  });
  return body['outcome'];
};

describe('expediter member erase', () => {
  let ended: string;
  let open: string;
  let others: string;

  beforeAll(async () => {
    [ended, open, others] = [await place(), await place(), await place({ other: true })];
    await tell(ended, 'received', mark);
    await tell(ended, 'completed', mark);
    await tell(open, 'received', mark);
    await tell(others, 'received', otherMark);
    // Told before anybody knew whose it is: it waits for its POS id with the words in it.
    await system.query(
      `INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank,
                                  native_status, reason)
       VALUES ('club-1', 'gossip', $1, now()::date, gen_random_uuid(), 20, 'X', $2)`,
      [`pos-${open}`, mark],
    );
  });

  it("names the member's orders in a dry run and erases nothing", async () => {
    const before = await placesOf(system, mark);
    expect(before).toEqual(expect.arrayContaining(['webhooks.body', 'order_contents.contents', 'orders.reason']));
    expect(await documentedPlaces()).toEqual(expect.arrayContaining(before));
    const done = await runJson<Erased>(env, ['member', 'erase', member.id, '--dry-run']);
    expect({ ...done, erased: done.erased.toSorted() }).toEqual({
      dryRun: true,
      erased: [ended, open].toSorted(),
      left: [],
    });
    expect(await placesOf(system, mark)).toEqual(before);
  });

  it('leaves no data of the member in the database, and all data of others', async () => {
    const waiting = await place({ notes: 'busy' });
    expect(await placesOf(system, mark)).toContain('placements.problem');
    expect(await documentedPlaces()).toEqual(expect.arrayContaining(await placesOf(system, mark)));
    const ofOthers = await placesOf(system, otherMark);
    expect(await eraseBatch(system.pool, [waiting], { sent: true })).toBe(0);

    const { code, out, error } = await runCli(env, ['member', 'erase', '-', '--json'], `${member.id}\n`);
    expect({ code, error }).toEqual({ code: 1, error: 'error: Not everything could be erased. Try again later.\n' });
    const done = JSON.parse(out) as Erased;
    expect(done.erased.toSorted()).toEqual([ended, open].toSorted());
    expect(done.left).toEqual([{ serviceOrderId: waiting, reason: expect.stringMatching(/^it is waiting, /) }]);
    expect(out + error).not.toContain(member.id);

    await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [waiting]);
    expect(await runJson(env, ['member', 'erase', member.id])).toEqual({ dryRun: false, erased: [waiting], left: [] });
    expect(await placesOf(system, mark)).toEqual([]);
    expect(await placesOf(system, member.id)).toEqual([]);
    expect(await placesOf(system, otherMark)).toEqual(ofOthers);
  });

  it('keeps the order without its contents, and later webhooks still change its status', async () => {
    const asked = system.platform.requests.length;
    expect(await system.signal(open)).toBe(204);
    expect(await tell(open, 'ready', mark)).toBe('applied');
    await Promise.all([system.finish('placements'), system.finish('relay')]);
    expect(system.live(open).at(-1)).toMatchObject({ memberState: 'ready_for_pickup' });
    expect(await placesOf(system, mark)).toEqual([]);
    expect(system.platform.requests.length).toBe(asked);
    expect(await runJson(env, ['order', 'show', open])).toMatchObject({ order: { status: 'ready', reason: null } });
  });

  it('waits for a process that has locked the order', async () => {
    const id = await place();
    const holder = await system.pool.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [id]);
    const erasing = runJson(env, ['member', 'erase', member.id]);
    await until(async () => {
      const [row] = await system.query(
        `SELECT count(*)::int AS tries FROM pg_stat_activity WHERE query LIKE '%order_contents%' AND pid <> pg_backend_pid()`,
      );
      return Number(row?.['tries']) > 0;
    });
    await holder.query('ROLLBACK');
    holder.release();
    expect(await erasing).toEqual({ dryRun: false, erased: [id], left: [] });
  });

  it('exits 0 if there is no data of the member', async () => {
    const { code, out } = await runCli(env, ['member', 'erase', member.id]);
    expect(code).toBe(0);
    expect(out).toMatch(/^No order .* names this member/);
    expect(await runJson(env, ['member', 'erase', member.id])).toEqual({ dryRun: false, erased: [], left: [] });
  });

  it('exits 2 for an invalid id of a member', async () => {
    expect(await runRefused(2, env, ['member', 'erase', '-'], '\n')).toMatch(/^error: memberId /);
  });

  it("finds a member's orders by an index", async () => {
    await system.query(
      `INSERT INTO order_contents SELECT 'many-' || n, jsonb_build_object('member', jsonb_build_object('id', 'm-' || n))
       FROM generate_series(1, 5000) AS n`,
    );
    await system.query('ANALYZE order_contents');
    const pool = new pg.Pool({ connectionString: system.databaseUrl, max: 1 });
    const { whole } = await readPlans(pool, (asked) => eraseMember(asked, 'm-42', true));
    await pool.end();
    expect(whole).not.toContain('order_contents');
  });
});

/** The columns that docs/privacy.md names, as `table.column`; `.column` is one more of the table before it. */
async function documentedPlaces(): Promise<string[]> {
  const page = await readFile(new URL('../../docs/privacy.md', import.meta.url), 'utf8');
  let table = '';
  return [...page.matchAll(/`(\w*)\.(\w+)`/g)].map(([, name = '', column = '']) => {
    table = name || table;
    return `${table}.${column}`;
  });
}
