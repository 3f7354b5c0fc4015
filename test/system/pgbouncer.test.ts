import { execFileSync } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, afterAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { examine } from '../../src/diagnostics/doctor.ts';
import { ANSWER_LIMITS } from '../../src/http/webhook-routes.ts';
import { asService } from '../../world/system/as-service.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { startPgBouncer, type PgBouncer } from '../../world/postgres/start-pgbouncer.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { needsTool } from './needs-tool.ts';

const OTHERS = 100;
const program = needsTool('pgbouncer', 'pgbouncer');
const [, version = '', minor = '0'] =
  /PgBouncer (1\.(\d+)\.\d+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' })) ?? [];
/** Prepared statements with transaction pooling. */
const SINCE = 21;
const modes = Number(minor) >= SINCE ? ['transaction', 'session'] : ['session'];
process.stdout.write(`PgBouncer ${version}: ${modes.join(' and ')} pooling\n`);

describe.each(modes)('PgBouncer as in docs/deploy.md, with %s pooling', (mode) => {
  let direct: string;
  let owner: pg.Client;
  let bouncer: PgBouncer;
  let pos: Pos;
  let system: System;
  let webhookUrl: string;

  beforeAll(async () => {
    direct = await createDatabase();
    const service = asService(direct);
    await migrate(direct, { serviceUrl: service });
    owner = new pg.Client(direct);
    await owner.connect();
    const old = Number(minor) < SINCE ? { max_prepared_statements: undefined } : {};
    bouncer = await startPgBouncer(program, service, { pool_mode: mode, ...old });
    [system, pos] = await Promise.all([
      startSystem({ databaseUrl: bouncer.through(service), limits: ANSWER_LIMITS, jobs: 'all' }),
      startPos(),
    ]);
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    webhookUrl = await system.webhookUrl('club-1');
  });
  afterAll(async () => {
    await system?.stop();
    await pos?.stop();
    await bouncer?.stop();
    await owner?.end();
  });

  it('an order becomes one ticket, and the member gets every step', async () => {
    const { serviceOrderId } = await system.placeOrder();
    const { providerOrderId } = await until(() => pos.tickets.find((each) => each.serviceOrderId === serviceOrderId));
    for (const status of ['RECEIVED', 'READY', 'COMPLETED']) {
      const answer = await pos.sendStatus(webhookUrl, { serviceOrderId, providerOrderId, status });
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    }
    await until(() => system.live(serviceOrderId).at(-1)?.status === 'completed');
    expect(system.live(serviceOrderId).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
  });

  it('one locked row does not delay other webhooks', async () => {
    await owner.query(
      `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
       SELECT 'order-' || nth, 'K472', 'club-1', 'standard', 'pickup', 10, 2 FROM generate_series(0, $1::int) AS nth`,
      [OTHERS],
    );
    await owner.query(`BEGIN; SELECT FROM orders WHERE service_order_id = 'order-0' FOR UPDATE`);
    const send = (nth: number): ReturnType<typeof post> =>
      post(webhookUrl, statusWebhook({ serviceOrderId: `order-${nth}`, status: 'RECEIVED' }));
    const locked: ReturnType<typeof post>[] = [];
    const others: ReturnType<typeof post>[] = [];
    for (let nth = 1; nth <= OTHERS; nth += 1) {
      if (nth % 10 === 1) locked.push(send(0));
      others.push(send(nth));
      await turn();
    }
    expect((await Promise.all(others)).filter(({ status }) => status === 200)).toHaveLength(OTHERS);
    expect(new Set((await Promise.all(locked)).map(({ status }) => status))).toEqual(new Set([500]));
    await owner.query('ROLLBACK');
    expect((await send(0)).status).toBe(200);
  });

  it('`expediter doctor` has only one complaint about the database, which all tests have', async () => {
    const findings = await examine(system.env, ['database']);
    expect(findings.filter(({ state }) => state !== 'ok').map(({ check }) => check)).toEqual(['writing']);
    expect(findings.find(({ check }) => check === 'connection')?.found).toMatch(/through a connection pooler/);
  });

  it('a process stops using the pooler when the role loses its settings, and uses it again with them', async () => {
    const databaseIs = async (state: string): Promise<boolean> =>
      ((await (await fetch(`${system.urls[0]}/readyz`)).json()) as { database: string }).database === state;
    const cut = async (): Promise<void> => {
      await bouncer.command('KILL ' + new URL(direct).pathname.slice(1));
      await bouncer.command('RESUME ' + new URL(direct).pathname.slice(1));
    };
    await owner.query(`ALTER ROLE expediter IN DATABASE ${new URL(direct).pathname.slice(1)} RESET lock_timeout`);
    await cut();
    await until(() => system.logged.some((line) => line.includes('was refused: A pooler drops')));
    await until(() => databaseIs('down'));
    await migrate(direct, { serviceUrl: asService(direct) });
    await cut();
    await until(() => databaseIs('up'));
  });

  it('a migration through the pooler fails, because it needs a session', async () => {
    await expect(migrate(bouncer.through(direct))).rejects.toThrow('let OWNER_DATABASE_URL name Postgres itself');
  });
});
