import pg from 'pg';
import { randomUUID } from 'node:crypto';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { PROJECT, SHARED_ENV } from '../../world/system/fixtures.ts';
import { blind, findable } from '../../world/pos/pos-without-deduplication.ts';
import { runCli } from '../support/run-cli.ts';
import { runRefused } from '../support/run-refused.ts';
import { aMinuteLater } from '../support/resolve-a-minute-later.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startPubsub, type Pubsub } from '../../world/pubsub/start-pubsub.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { databaseUrl } from '../../world/postgres/template-database.ts';

/** Each kind of POS, its integration, and its location's id. */
const KINDS = ['standard', 'findable', 'blind'] as const;
type Kind = (typeof KINDS)[number];
const SOURCES = ['--signals', 'signals-replay', '--live', 'live-replay', '--quiet', '0.5'];

let pubsub: Pubsub;
let pos: Record<Kind, Pos>;
beforeAll(async () => {
  const [standard, other, unasked] = await Promise.all([
    startPos(),
    startPos({ deduplicates: false }),
    startPos({ deduplicates: false }),
  ]);
  pos = { standard, findable: other, blind: unasked };
  pubsub = await startPubsub();
  process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
  const client = new PubSub({ projectId: PROJECT });
  for (const topic of ['signals', 'live', 'other', 'empty']) {
    const [made] = await client.createTopic(topic === 'live' ? 'order-status' : topic);
    await made.createSubscription(`${topic}-replay`);
  }
  await client.close();
});
afterAll(() => Promise.all([...Object.values(pos ?? {}).map((each) => each.stop()), pubsub?.stop()]));

/** A copy of a database that nobody uses, as a backup. @returns its URL */
async function copyOf(url: string): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client(databaseUrl(url, 'postgres'));
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  await client.end();
  return databaseUrl(url, name);
}

/** Runs a part of the evening on one database. */
async function play<Result>(
  url: string,
  orders: readonly string[],
  work: (system: System) => Promise<Result>,
): Promise<Result> {
  const system = await startSystem({
    databaseUrl: url,
    stepped: ['placements', 'refreshes', 'cancellations', 'relay'],
    providers: [findable, blind],
    pubsub,
  });
  try {
    for (const id of orders)
      system.platform.orders.set(id, sampleOrder({ serviceOrderId: id, locationId: kindOf(id) }));
    for (const kind of KINDS) await system.addLocation(kind, { ordersUrl: pos[kind].ordersUrl }, kind);
    return await work(system);
  } finally {
    await system.stop();
  }
}

/** An order's id says at which location it is. */
const idsOf = (name: string): string[] => KINDS.map((kind) => `${name}-${kind}-${randomUUID().slice(0, 8)}`);
const kindOf = (id: string): string => id.split('-')[1] ?? '';

async function publish(ids: readonly string[], topic = 'signals'): Promise<void> {
  const client = new PubSub({ projectId: PROJECT });
  for (const orderId of ids) await client.topic(topic).publishMessage({ json: { orderId } });
  await client.close();
}

/** Publishes the platform's signals, pushes them to the service, and places the orders. */
async function signal(system: System, ids: readonly string[]): Promise<void> {
  await publish(ids);
  for (const orderId of ids) expect(await system.signal(orderId)).toBe(204);
  await system.finish('placements');
}
async function expectTold(system: System, ids: readonly string[], state: string): Promise<void> {
  await system.finish('relay');
  for (const id of ids) expect(system.live(id).map(({ memberState }) => memberState)).toContain(state);
}
/** Makes the next attempts due, and does them. */
async function tryAgain(system: System): Promise<void> {
  await system.query(`UPDATE placements SET next_attempt_at = now() WHERE next_attempt_at < 'infinity'`);
  await system.finish('placements');
}
async function report(system: System, ids: readonly string[], status: string, outcome = 'applied'): Promise<void> {
  for (const id of ids) {
    const url = await system.webhookUrl(kindOf(id));
    expect((await post(url, statusWebhook({ serviceOrderId: id, status }))).body['outcome']).toBe(outcome);
  }
}

type Told = {
  code: number | null;
  ok: boolean;
  did: string;
  orders: Record<string, string>[];
  findings: { check: string; state: string }[];
};
async function recover(env: Record<string, string>, ...args: string[]): Promise<Told> {
  const { code, out, error } = await runCli(env, ['recover', ...SOURCES, ...args, '--json']);
  expect(error).toBe('');
  return { code, ...(JSON.parse(out) as Omit<Told, 'code'>) };
}
const ticketsOf = (id: string): number =>
  Object.values(pos).flatMap(({ tickets }) => tickets.filter((ticket) => ticket.serviceOrderId === id)).length;

it('after a restore, recover finds every lost order, and no order gets a second ticket', async () => {
  const [kept, waiting, forgotten, done, refused, late] = ['kept', 'waiting', 'new', 'done', 'refused', 'late'].map(
    idsOf,
  ) as [string[], string[], string[], string[], string[], string[]];
  /** Its signal came just before the end, and it was never sent. */
  const never = `never-findable-${randomUUID()}`;
  const all = [kept, waiting, forgotten, done, refused, late, never].flat();
  const database = await createDatabase();

  // The backup has `kept`, and `waiting`, which the platform does not show yet.
  await play(database, kept, async (system) => {
    await signal(system, [...kept, ...waiting]);
    await expectTold(system, kept, 'sent');
    await report(system, kept, 'received');
    await expectTold(system, kept, 'confirmed');
  });
  const lostFrom = new Date();
  const backup = await copyOf(database);

  const env = await play(database, all, async (system) => {
    await tryAgain(system);
    await expectTold(system, waiting, 'sent');
    await signal(system, [...forgotten, ...done]);
    await expectTold(system, [...forgotten, ...done], 'sent');
    await report(system, [...kept, ...done], 'completed');
    await expectTold(system, kept, 'picked_up');
    await expectTold(system, done, 'picked_up');
    for (const each of Object.values(pos)) each.behave = () => ({ status: 422 });
    await signal(system, refused);
    await expectTold(system, refused, 'failed');
    // Tickets of which no message says anything.
    for (const each of Object.values(pos)) each.behave = undefined;
    await signal(system, late);
    for (const id of late) expect(ticketsOf(id)).toBe(1);
    return system.env;
  });
  await publish([never]);
  const published = new Map(all.map((id) => [id, sequencesOf(id)]));

  await migrate(backup);
  // A process that runs before the recovery answers webhooks about forgotten orders, which match none.
  const early = forgotten.slice(0, 1);
  await play(backup, [], (system) => report(system, early, 'ready', 'unmatched'));
  const restored = { ...env, DATABASE_URL: backup };
  const first = await recover(restored, '--lost-from', lostFrom.toISOString());
  expect(first).toMatchObject({ code: 1, ok: false });
  expect(first.did).toContain('forgotten 7, ended 6, in doubt 3');

  const { left, solved } = await play(backup, all, async (system) => {
    const again = (): Promise<Told> => recover(restored);
    await tryAgain(system);
    // It is looked up at its POS, and not believed to be absent within a minute of the recovery.
    expect(await system.placement(never)).toMatchObject({ cause: { code: 'order_absent_yet' } });
    await aMinuteLater(system, never);
    await tryAgain(system);
    const asked = await again();
    const [unknown] = late.filter((id) => id.startsWith('late-blind'));
    const resolved = await runCli(restored, ['order', 'resolve', unknown ?? '', '--there']);
    expect(resolved.error).toBe('');
    await system.finish('placements');
    const end = await again();
    // The platform signals an order again that had failed.
    await signal(system, refused);
    for (const id of [...kept, ...done]) expect((await system.order(id))?.['status'] ?? 'completed').toBe('completed');
    await expectTold(system, late, 'sent');
    expect(await system.order(early[0] ?? '')).toMatchObject({ status: 'ready' });
    return { left: asked, solved: end };
  });
  expect(left.code).toBe(1);
  expect(left.orders).toMatchObject([
    { serviceOrderId: late[2], locationId: 'blind', state: 'in_doubt', toDo: expect.stringContaining('--there') },
  ]);
  expect(solved).toMatchObject({ code: 0, ok: true, orders: [] });
  for (const id of [...kept, ...waiting, ...forgotten, ...done, ...late, never])
    expect([id, ticketsOf(id)]).toEqual([id, 1]);
  for (const id of refused) expect([id, ticketsOf(id)]).toEqual([id, 0]);
  for (const [id, before] of published) {
    const since = sequencesOf(id).slice(before.length);
    expect(Math.min(Infinity, ...since), id).toBeGreaterThan(Math.max(0, ...before));
  }
}, 120_000);

function sequencesOf(id: string): number[] {
  return pubsub
    .published('order-status')
    .filter(({ attributes }) => attributes['serviceOrderId'] === id)
    .map(({ attributes }) => Number(attributes['sequence']));
}

it('recover needs --running to begin while the service runs', async () => {
  const database = await createDatabase();
  await play(database, [], async ({ env }) => {
    const begin = ['recover', '--lost-from', '1h', ...SOURCES];
    expect(await runRefused(1, env, begin)).toContain('Stop it, then repeat');
    expect((await runCli(env, [...begin, '--running'])).error).toBe('');
  });
});

it('each run records orders that earlier runs of recover did not see', async () => {
  const id = `lost-blind-${randomUUID()}`;
  const lostFrom = new Date().toISOString();
  const database = await createDatabase();
  const backup = await copyOf(database);
  const env = await play(database, [id], async (system) => {
    await publish([id], 'other');
    expect(await system.signal(id)).toBe(204);
    await system.finish('placements');
    return { ...system.env, DATABASE_URL: backup };
  });
  await migrate(backup);
  const reading = (topic: string): Promise<Told> =>
    recover(env, '--lost-from', lostFrom, '--signals', `${topic}-replay`, '--live', 'empty-replay');
  const { findings } = await reading('empty');
  expect(findings).toContainEqual(expect.objectContaining({ state: 'failed', found: 'no order is named' }));
  expect(await reading('other')).toMatchObject({ code: 1, orders: [{ serviceOrderId: id, state: 'in_doubt' }] });
  await play(backup, [id], async (system) => {
    expect(await system.signal(id)).toBe(204);
    await system.finish('placements');
  });
  expect(ticketsOf(id)).toBe(1);
});

it('a repeated command continues the recovery, and begins another recovery only with --new', async () => {
  await play(await createDatabase(), [], async (system) => {
    const command = ['recover', '--running', '--signals', 'empty-replay', '--quiet', '0.5', '--lost-from'];
    expect((await runCli(system.env, [...command, '2h'])).error).toBe('');
    const id = `healthy-blind-${randomUUID()}`;
    expect(await system.signal(id)).toBe(204);
    expect((await runCli(system.env, [...command, '2h'])).error).toBe('');
    expect(await runRefused(1, system.env, [...command, '3h'])).toContain('If data was lost again, add --new');
    expect(await system.placement(id)).toMatchObject({ state: 'waiting' });
    expect((await runCli(system.env, [...command, '3h', '--new'])).error).toBe('');
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt' });
  });
});

it.each([
  [['--lost-from', '1h'], 'Name the platform'],
  [[...SOURCES], 'To begin, say since when data is missing'],
  [['--new', ...SOURCES], 'To begin, say since when data is missing'],
  [['--lost-from', '1h', '--signals', 'unknown', '--quiet', '0.5'], 'the subscription "unknown" cannot be read'],
  [['--lost-from', 'x'], 'Use a while ago'],
  [['--lost-from', '1h', '--quiet', '0'], 'Use a number of seconds'],
])('expediter recover %j fails with an explanation', async (args, words) => {
  const DATABASE_URL = await createDatabase();
  const { code, error } = await runCli({ ...SHARED_ENV, DATABASE_URL }, ['recover', ...args]);
  expect([code, error]).toEqual([expect.any(Number), expect.stringContaining(words)]);
  expect(code).toBeGreaterThan(0);
});
