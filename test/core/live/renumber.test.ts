import pg from 'pg';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../../src/database/migrate.ts';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import { asService } from '../../support/as-service.ts';
import { createDatabase } from '../../support/create-database.ts';
import { runCli } from '../../support/run-cli.ts';
import { startPos, type Pos } from '../../support/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../support/start-system.ts';
import { databaseUrl } from '../../support/template-database.ts';
import { until } from '../../support/until.ts';

let pos: Pos;
let refusing: Pos;
beforeAll(async () => {
  [pos, refusing] = await Promise.all([startPos(), startPos()]);
});
afterAll(() => Promise.all([pos?.stop(), refusing?.stop()]));

/** A copy of a database that nobody uses, as a backup. @returns its URL */
async function copyOf(url: string): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client(databaseUrl(url, 'postgres'));
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  await client.end();
  return databaseUrl(url, name);
}

/** Sends statuses until the order's messages say that they are applied. */
async function report(system: System, url: string, serviceOrderId: string, status: string): Promise<void> {
  expect((await post(url, statusWebhook({ serviceOrderId, status }))).body['outcome']).toBe('applied');
  await until(() => system.live(serviceOrderId).some((message) => message.status === status));
}

/** What is new to a reader who knows some messages, and drops what is not above the last that it has. */
function news(known: readonly LiveMessage[], messages: readonly LiveMessage[]): string[] {
  let last = Math.max(0, ...known.map(({ sequence }) => sequence));
  return messages.flatMap(({ sequence, memberState }) => {
    if (sequence <= last) return [];
    last = sequence;
    return [memberState];
  });
}

/** Plays an evening: an order before a backup and after it, one that no POS takes, and one that the backup lacks. */
async function evening(prepare: (databaseUrl: string) => Promise<void>): Promise<{
  before: LiveMessage[][];
  after: LiveMessage[][];
}> {
  const [kept, forgotten, refused] = [randomUUID(), randomUUID(), randomUUID()];
  const database = await createDatabase();
  const told = (system: System, serviceOrderId: string, state: string): Promise<unknown> =>
    until(() => system.live(serviceOrderId).some(({ memberState }) => memberState === state));
  const placed = async (system: System, serviceOrderId: string): Promise<void> => {
    await system.placeOrder({ serviceOrderId, locationId: 'club-1' });
    await told(system, serviceOrderId, 'sent');
  };
  let before: LiveMessage[][] = [[], [], []];
  const play = async (
    url: string,
    work: (system: System, webhook: string) => Promise<void>,
  ): Promise<LiveMessage[][]> => {
    const system = await startSystem({ databaseUrl: url });
    try {
      await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
      await system.addLocation('club-2', { ordersUrl: refusing.ordersUrl });
      await work(system, await system.webhookUrl('club-1'));
      return [system.live(kept), system.live(forgotten), system.live(refused)];
    } finally {
      await system.stop();
    }
  };
  const add = (live: LiveMessage[][]): void => {
    before = before.map((known, nth) => [...known, ...(live[nth] ?? [])]);
  };
  refusing.behave = () => ({ status: 503 });
  add(
    await play(database, async (system, webhook) => {
      await system.placeOrder({ serviceOrderId: refused, locationId: 'club-2' });
      await told(system, refused, 'placed');
      await placed(system, kept);
      await report(system, webhook, kept, 'received');
    }),
  );
  const backup = await copyOf(database);
  refusing.behave = () => ({ status: 422 });
  add(
    await play(database, async (system, webhook) => {
      await report(system, webhook, kept, 'in_progress');
      await report(system, webhook, kept, 'ready');
      await placed(system, forgotten);
      await report(system, webhook, forgotten, 'received');
      await told(system, refused, 'failed');
    }),
  );
  // As docs/recovery.md says: a backup has no settings of roles.
  await migrate(backup);
  await prepare(backup);
  const after = await play(backup, async (system, webhook) => {
    await report(system, webhook, kept, 'ready');
    await report(system, webhook, kept, 'completed');
    await placed(system, forgotten);
    await report(system, webhook, forgotten, 'in_progress');
    await told(system, refused, 'failed');
  });
  return { before, after };
}

const newsOf = ({ before, after }: Awaited<ReturnType<typeof evening>>): string[][] =>
  before.map((known, nth) => news(known, after[nth] ?? []));

it('renumbered after a restore, no message is dropped as a repeat', async () => {
  const played = await evening(async (DATABASE_URL) => {
    const { code, out, error } = await runCli({ DATABASE_URL }, ['order', 'renumber', '--json']);
    expect(code, error).toBe(0);
    expect(JSON.parse(out)).toEqual({ floor: expect.any(Number) });
  });
  const numbers = played.before.map((messages) => messages.map(({ sequence }) => sequence));
  expect(numbers).toEqual([
    [1, 2, 3, 4, 5],
    [1, 2, 3],
    [1, 2],
  ]);
  expect(newsOf(played)).toEqual([['ready_for_pickup', 'picked_up'], ['placed', 'sent', 'preparing'], ['failed']]);
  for (const messages of played.after) {
    const [first = 0, ...others] = messages.map(({ sequence }) => sequence);
    expect(others).toEqual(others.map((_, nth) => first + nth + 1));
  }
});

it('not renumbered, all are', async () => {
  expect(newsOf(await evening(async () => {}))).toEqual([[], [], []]);
});

it('a second time it raises the numbers again, by more than an order has messages', async () => {
  const DATABASE_URL = asService(await createDatabase());
  const raise = async (): Promise<number> => {
    const { out } = await runCli({ DATABASE_URL }, ['order', 'renumber', '--json']);
    return (JSON.parse(out) as { floor: number }).floor;
  };
  const first = await raise();
  expect((await raise()) - first).toBeGreaterThanOrEqual(10);
});
