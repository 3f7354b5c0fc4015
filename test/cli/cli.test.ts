import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GiveUp, TryAgain } from '../../src/core/domain/errors.ts';
import type { OrderRef } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { createEmptyDatabase } from '../../world/postgres/create-database.ts';
import { runCli as cli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { aMinuteLater } from '../support/resolve-a-minute-later.ts';
import { runJson as json } from '../support/run-json.ts';
import { runRefused as refused } from '../support/run-refused.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
/** Where nobody listens. */
const ordersUrl = 'http://127.0.0.1:9/orders';
const SETTINGS = { ordersUrl, unsigned: true };

type Environment = Record<string, string>;

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage?.stop());

const putting = (locationId: string, file = '-'): string[] => [
  'location',
  'put',
  '--location',
  locationId,
  '--integration',
  'standard',
  '--settings',
  file,
];
const put = (env: Environment, locationId: string, settings: unknown): Promise<Ended> =>
  cli(env, putting(locationId), JSON.stringify(settings));

describe('expediter migrate', () => {
  let url: string;
  let pool: pg.Pool;

  beforeAll(async () => {
    url = await createEmptyDatabase();
    pool = new pg.Pool({ connectionString: url, max: 1 });
  });
  afterAll(() => pool?.end());

  it('is named in the error of another command while there is no schema', async () => {
    const error = await refused(1, { DATABASE_URL: url }, ['location', 'list']);
    expect(error).toMatch(/^error: The schema lacks .*Run: expediter migrate\n$/);
  });

  it('creates the schema and its partitions, and changes nothing when repeated', async () => {
    const { migrated } = await json<{ migrated: string[] }>({ DATABASE_URL: url }, ['migrate']);
    expect(migrated.length).toBeGreaterThan(0);
    const partitions = `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                        WHERE i.inhparent = 'webhooks'::regclass ORDER BY 1`;
    const { rows } = await pool.query<{ relname: string }>(partitions);
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
    expect(rows.map((row) => row.relname)).toContain(`webhooks_${today}`);
    expect(rows.length).toBeGreaterThanOrEqual(8);

    expect(await json({ DATABASE_URL: url }, ['migrate'])).toEqual({ migrated: [] });
    expect((await pool.query(partitions)).rows).toEqual(rows);
    expect(await json({ DATABASE_URL: url }, ['location', 'list'])).toEqual([]);
  });

  it('refuses a schema with a breaking change of a newer version', async () => {
    await pool.query(`INSERT INTO schema_migrations (name, run_on) VALUES ('9999-from-tomorrow.breaking', now())`);
    const error = await refused(1, { DATABASE_URL: url }, ['migrate']);
    expect(error).toMatch(/^error: The schema is too new .*9999-from-tomorrow\.breaking.*\n$/);
  });
});

describe('the command line', () => {
  let env: Environment;

  beforeAll(() => {
    ({ env } = stage);
  });

  it('encrypts settings, and prints no secret', async () => {
    const otherKey = `other:${Buffer.alloc(32, 7).toString('base64')}`;
    const said = [
      await put(env, 'sealed', { ordersUrl, secret: SECRET }),
      await cli(env, ['location', 'show', 'sealed']),
      await cli(env, ['location', 'show', 'sealed', '--json']),
      await cli(env, ['location', 'list', '--json']),
      await cli({ ...env, SETTINGS_KEY: otherKey }, ['location', 'show', 'sealed']),
    ];
    for (const { code, out, error } of said) {
      expect({ code, error }).toEqual({ code: 0, error: '' });
      expect(out).not.toMatch(/whsec|eyJ/);
    }
    expect(JSON.parse(said[2]?.out ?? '')).toMatchObject({
      locationId: 'sealed',
      integration: 'standard',
      paused: false,
      validTokens: 0,
      settings: {
        ordersUrl: { origin: 'http://127.0.0.1:9/…' },
        secret: { fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/) as string },
      },
    });
    expect(said[4]?.out).toContain('SETTINGS_KEY has no key with id "test"');

    const [row] = await stage.query('SELECT settings FROM locations');
    // A compact JWE: five parts, the second empty as the key is direct.
    expect(row?.['settings']).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  it('reads settings from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'expediter-'));
    try {
      const file = join(folder, 'club.json');
      await writeFile(file, JSON.stringify(SETTINGS));
      expect(await json(env, putting('filed', file))).toMatchObject({
        locationId: 'filed',
        created: true,
        validTokens: 0,
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it.each([
    ['a field that is wrong', { ordersUrl, secret: 'hunter2-hunter2' }, /settings\.secret is not a Standard Webhooks/],
    ['a field that is missing', {}, /settings\.ordersUrl is missing; a string is required$/m],
    [
      'a secret that is forgotten',
      { ordersUrl },
      /settings\.secret is missing, .*set unsigned if the POS cannot sign$/m,
    ],
    ['a secret with unsigned: true', { ...SETTINGS, secret: SECRET }, /settings\.unsigned contradicts secret/],
    ['an unknown field', { ...SETTINGS, colour: 'hunter2' }, /settings has no field colour$/m],
    ['an array instead of an object', 'hunter2', /settings is a string; an object is required/],
    [
      'a URL without TLS',
      { ordersUrl: 'http://pos.example.com/hunter2', unsigned: true },
      /settings: ordersUrl is not allowed: .* http, and ALLOW_PRIVATE_HOSTS does not name its host: use https/,
    ],
    [
      'a URL of a private host',
      { ordersUrl: 'https://10.0.0.1/hunter2', unsigned: true },
      /settings: ordersUrl is not allowed: .* private address, and ALLOW_PRIVATE_HOSTS/,
    ],
  ])('exits 2 and names %s in settings, without its value', async (_, settings, problem) => {
    const error = await refused(2, env, putting('bad'), JSON.stringify(settings));
    expect(error).toMatch(problem);
    expect(error).toMatch(/^error: [^\n]+\n$/);
    expect(error).not.toContain('hunter2');
  });

  it.each([
    ['settings on the command line', putting('x', '{"secret":"hunter2"}'), /--settings takes a file/],
    ['settings cut up by the shell', [...putting('x'), '"hunter2"'], /too many arguments/],
    ['settings that are not JSON', putting('x'), /--settings: .* not valid JSON/],
    ['a file that is not there', putting('x', '/nowhere'), /--settings: .*ENOENT/],
    ['an option that is missing', ['location', 'put', '--location', 'x'], /--integration/],
    ['an unknown option', ['token', 'list', '--secret=hunter2'], /unknown option '--secret'/],
    ['an unknown command', ['location', 'shwo'], /unknown command/],
    ['no command', [], /Usage/],
    ['half a command', ['order'], /Usage/],
    ['an invalid expiry', ['token', 'issue', '--location', 'x', '--expires', 'soon'], /90d/],
    ['an expiry in the past', ['token', 'issue', '--location', 'x', '--expires', '2020-01-01T00:00:00Z'], /future/],
    ['neither --there nor --not-there', ['order', 'resolve', 'x'], /--there .* --not-there/],
    ['both --there and --not-there', ['order', 'resolve', 'x', '--there', '--not-there'], /cannot be used with/],
    ['an empty POS id', ['order', 'resolve', 'x', '--not-there', '--pos-id', '1'], /cannot be used with/],
  ])('exits 2 on %s', async (_, args, problem) => {
    const error = await refused(2, env, args, '{"secret": hunter2}');
    expect(error).toMatch(problem);
    expect(error).not.toContain('hunter2');
  });

  it('exits 2 for an unknown integration, and lists the known ones', async () => {
    const args = putting('x').map((word) => word.replace('standard', 'abacus'));
    expect(await refused(2, env, args, '{}')).toMatch(/"abacus"; there are .*standard/);
  });

  it.each([
    [['token', 'list', '--location', 'nowhere']],
    [['webhook', 'list', '--order', 'nowhere']],
    [['provider', 'schema', 'nowhere']],
  ])('exits 3 for an unknown location, order or integration: %j', async (args) => {
    expect(await refused(3, env, args)).toMatch(/^error: [^\n]+\n$/);
  });

  it('exits 1 with the address and what to do if Postgres cannot be reached', async () => {
    const nowhere = { ...env, DATABASE_URL: 'postgres://expediter:hunter2@127.0.0.1:9/expediter' };
    for (const args of [['location', 'list'], ['migrate']]) {
      const error = await refused(1, nowhere, args);
      expect(error).toMatch(
        /^error: [^\n]*ECONNREFUSED 127\.0\.0\.1:9; start Postgres, or correct host and port in DATABASE_URL\n$/,
      );
      expect(error).not.toContain('hunter2');
    }
  });

  it('names every wrong variable that the command needs, with an example', async () => {
    const error = await refused(1, { SETTINGS_KEY: 'none', PORT: 'eighty' }, ['location', 'show', 'x']);
    expect(error).toMatch(/^ {2}DATABASE_URL: is required\. Example: postgres:\/\//m);
    expect(error).toMatch(/^ {2}SETTINGS_KEY: .+\. Example: 2026-01:/m);
    expect(error).toMatch(/^Or use the API of a service: expediter login <url>/m);
    expect(error).not.toMatch(/PORT|ORDER_API_URL/);
  });

  it('applies parked events of an order that it resolves', async () => {
    await stage.query(`
      WITH p AS (
        INSERT INTO placements (service_order_id, location_id, state, deadline_at, next_attempt_at)
        VALUES ('alone', 'club', 'in_doubt', now(), 'infinity')
      ), e AS (
        INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id,
                                   rank, native_status)
        VALUES ('club', 'standard', 'slip', now()::date, gen_random_uuid(), 40, 'READY')
      )
      INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, sequence)
      VALUES ('alone', 'K472', 'club', 'standard', 'pickup', 1)`);
    const resolved = await json(env, ['order', 'resolve', 'alone', '--there', '--pos-id', 'slip']);
    expect(resolved).toMatchObject({ redriven: 1 });
    expect(await json(env, ['order', 'show', 'alone'])).toMatchObject({
      order: { memberState: 'ready_for_pickup', providerOrderId: 'slip' },
      live: [
        { memberState: 'sent', publishedAt: null },
        { memberState: 'ready_for_pickup', publishedAt: null },
      ],
    });
  });

  it('lists the integrations without a database', async () => {
    expect(await json({}, ['provider', 'list'])).toContainEqual(
      expect.objectContaining({ integration: 'standard', deduplicates: true, canBeAsked: false }),
    );
    expect(await json({}, ['provider', 'schema', 'standard'])).toMatchObject({
      type: 'object',
      required: ['ordersUrl'],
      properties: { ordersUrl: { type: 'string', writeOnly: true }, secret: { type: 'string', writeOnly: true } },
    });
  });
});

describe('a webhook token', () => {
  type Issued = { token: string; url: string; tokenId: string };
  const locationId = 'club 1/Süd?';
  let env: Environment;
  const knock = async (url: string): Promise<number> =>
    (await post(url, statusWebhook({ serviceOrderId: 'nobody', status: 'READY' }))).status;

  beforeAll(async () => {
    env = { ...stage.env, PUBLIC_URL: `${await stage.listen()}/` };
    expect(await put(env, locationId, SETTINGS)).toMatchObject({ code: 0 });
  });

  const issue = (...more: string[]): Promise<Issued> =>
    json<Issued>(env, ['token', 'issue', '--location', locationId, ...more]);

  it('works in addition to the earlier tokens, until it is itself revoked', async () => {
    const first = await issue('--label', 'till, old');
    const second = await issue('--expires', '90d');
    expect(first.url).toBe(`${env['PUBLIC_URL']}webhook/standard/club%201%2FS%C3%BCd%3F?token=${first.token}`);
    expect(await Promise.all([knock(first.url), knock(second.url)])).toEqual([200, 200]);

    const third = await issue();
    for (const { tokenId } of [first, third]) {
      expect(await json(env, ['token', 'revoke', tokenId])).toEqual({ tokenId, revoked: true });
    }
    expect(await Promise.all([knock(third.url), knock(second.url)])).toEqual([401, 200]);

    const listed = await cli(env, ['token', 'list', '--location', locationId, '--json']);
    expect(listed.out).not.toContain(first.token);
    expect(listed.out).not.toContain(second.token);
    const rows = JSON.parse(listed.out) as { tokenId: string; expiresAt: string | null }[];
    const rowOf = ({ tokenId }: Issued) => rows.find((row) => row.tokenId === tokenId);
    expect(rowOf(first)).toMatchObject({ state: 'revoked', label: 'till, old' });
    expect(rowOf(second)).toMatchObject({ state: 'valid', label: null });
    expect(Date.parse(rowOf(second)?.expiresAt ?? '') - Date.now()).toBeGreaterThan(89.9 * 86_400_000);
    expect(await json(env, ['location', 'show', locationId])).toMatchObject({ validTokens: 1 });
  });

  it('is not issued while PUBLIC_URL is unset', async () => {
    const list = () => json(env, ['token', 'list']);
    const before = await list();
    const error = await refused(1, { ...env, PUBLIC_URL: '' }, ['token', 'issue', '--location', locationId]);
    expect(error).toContain('PUBLIC_URL is not set');
    expect(await list()).toEqual(before);
  });
});

describe('an operator', () => {
  /** What the next calls for an order do; without more, a ticket is made. */
  const script = new Map<string, (() => Promise<OrderRef>)[]>();
  const calls: string[] = [];
  const pos = (integration: string, deduplicates: boolean): Provider => ({
    integration,
    settings: z.object({}),
    deduplicates,
    // A slow machine looks at a call that is under way.
    attemptWithinS: 60,
    async createOrder({ serviceOrderId }) {
      calls.push(serviceOrderId);
      const step = script.get(serviceOrderId)?.shift();
      return step === undefined ? { providerOrderId: `pos-${serviceOrderId}` } : step();
    },
    translateWebhook: ({ body }) => [{ status: 'ready', providerOrderId: body.toString(), nativeStatus: 'READY' }],
  });
  const noAnswer = (): Promise<OrderRef> => Promise.reject(new TryAgain('no answer', { sent: true }));
  const callsFor = (id: string): number => calls.filter((each) => each === id).length;

  let system: System;
  let env: Environment;

  beforeAll(async () => {
    system = await startSystem({
      stepped: ['placements', 'refreshes', 'cancellations', 'relay'],
      providers: [pos('paper', false), pos('careful', true)],
    });
    env = system.env;
    await system.addLocation('paper-1', {}, 'paper');
    await system.addLocation('careful-1', {}, 'careful');
  });
  afterAll(() => system?.stop());

  const place = async (locationId: string, ...steps: (() => Promise<OrderRef>)[]): Promise<string> => {
    const serviceOrderId = `order-${randomUUID()}`;
    script.set(serviceOrderId, steps);
    await system.placeOrder({ serviceOrderId, locationId });
    return serviceOrderId;
  };
  const expectState = async (id: string, state: string): Promise<void> => {
    // Once: a further turn might do a retry that has become due meanwhile.
    await system.round('placements');
    expect(await system.placement(id)).toMatchObject({ state, lease_until: null });
  };
  const expectTold = async (id: string, memberState: string): Promise<void> => {
    await system.finish('placements');
    await system.finish('relay');
    expect(system.live(id).at(-1)).toMatchObject({ memberState });
  };

  it('can retry a waiting order at once', async () => {
    const id = await place('paper-1', () =>
      Promise.reject(new TryAgain('busy', { sent: false, retryAfterMs: 600_000 })),
    );
    await expectState(id, 'waiting');
    expect(await system.placement(id)).toMatchObject({ attempts: 1 });
    expect(await json(env, ['order', 'retry', id])).toEqual({ serviceOrderId: id, retry: 'due' });
    await expectState(id, 'sent');
    expect(await refused(1, env, ['order', 'retry', id])).toContain('at the POS already');
  });

  it('cannot retry a failed order, because a failure is final', async () => {
    const id = await place('paper-1', () => Promise.reject(new GiveUp('no such burger', { reason: 'Sold out' })));
    await expectState(id, 'failed');
    expect(await refused(1, env, ['order', 'retry', id])).toMatch(/^error: .*failed, which is final/);
    expect(await refused(1, env, ['order', 'resolve', id, '--there'])).toContain('not in doubt but failed');
    expect(callsFor(id)).toBe(1);
  });

  it('can retry an order that failed before it was read, because such an order has no ticket', async () => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const id = await place('paper-1', async () => ({ providerOrderId: 'again-1' }));
    await expectState(id, 'failed');
    system.platform.answer = undefined;
    expect(await json(env, ['order', 'retry', id])).toEqual({ serviceOrderId: id, retry: 'due' });
    await expectState(id, 'sent');
  });

  it('can resolve an order in doubt if the process of its call died', async () => {
    const id = await place('paper-1', noAnswer);
    await expectState(id, 'in_doubt');
    await system.query(
      `UPDATE placement_attempts SET ended_at = NULL, outcome = 'started' WHERE service_order_id = $1`,
      [id],
    );
    await aMinuteLater(system, id);
    await json(env, ['order', 'resolve', id, '--not-there']);
    await expectState(id, 'sent');
    expect(callsFor(id)).toBe(2);
    expect(
      await system.query('SELECT FROM placement_attempts WHERE service_order_id = $1 AND ended_at IS NULL', [id]),
    ).toEqual([]);
  });

  it('makes an order past its deadline fail by the answer that the POS has no ticket', async () => {
    const id = await place('paper-1', noAnswer);
    await expectState(id, 'in_doubt');
    await system.query('UPDATE placements SET deadline_at = now() WHERE service_order_id = $1', [id]);
    await aMinuteLater(system, id);
    expect(await json(env, ['order', 'resolve', id, '--not-there'])).toMatchObject({ late: true });
    await expectTold(id, 'failed');
    expect(callsFor(id)).toBe(1);
  });

  it('cannot resolve an order during a call for it', async () => {
    const answered = Promise.withResolvers<OrderRef>();
    const id = await place('careful-1', noAnswer, () => answered.promise);
    await expectState(id, 'in_doubt');
    await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
    const calling = system.round('placements');
    await until(() => callsFor(id) === 2);
    try {
      for (const seen of ['--there', '--not-there']) {
        expect(await refused(1, env, ['order', 'resolve', id, seen])).toContain('is running');
      }
      expect(await json(env, ['order', 'retry', id])).toMatchObject({ retry: 'under_way' });
      const { placement } = await json<{ placement: object }>(env, ['order', 'show', id]);
      expect(placement).toMatchObject({ state: 'in_doubt', underWay: true });
    } finally {
      answered.resolve({ providerOrderId: `pos-${id}` });
      await calling;
    }
    await expectState(id, 'sent');
  });

  it('sees an order without its member and contents', async () => {
    const id = await place('paper-1', noAnswer);
    await expectState(id, 'in_doubt');
    const words = await cli(env, ['order', 'show', id]);
    expect(words.out).toContain(`expediter order resolve ${id} --there | --not-there`);
    await json(env, ['order', 'resolve', id, '--there', '--pos-id', `slip-${id}`]);
    await post(await system.webhookUrl('paper-1'), `slip-${id}`);
    await expectTold(id, 'ready_for_pickup');

    const shown = await json(env, ['order', 'show', id]);
    expect(shown).toMatchObject({
      placement: { state: 'sent', underWay: false, attempts: 1, nextAttemptAt: null, finishedAt: expect.any(String) },
      attempts: [{ attempt: 1, call: 'createOrder', outcome: 'TryAgain', error: 'no answer' }],
      posIds: [{ locationId: 'paper-1', integration: 'paper', providerOrderId: `slip-${id}` }],
      history: [{ status: 'ready', nativeStatus: 'READY', outcome: 'applied', sequence: 3 }],
    });
    const inWords = await cli(env, ['order', 'show', id]);
    for (const { out } of [words, inWords, { out: JSON.stringify(shown) }]) {
      expect(out).not.toMatch(/Lovelace|ada@|\+4930|Burger|member-42/);
    }
    expect(inWords.out).toMatch(/^Attempts\nattempt {2}call/m);
    expect(inWords.out).toMatch(/^History\nrecorded/m);
  });

  it('sees live messages of an order that are not yet published', async () => {
    await system.seedOrder({ serviceOrderId: 'unheard', locationId: 'paper-1' });
    await system.query(
      `INSERT INTO outbox (service_order_id, sequence, rank, lease_until)
       VALUES ('unheard', 2, 10, now() + interval '1 hour')`,
    );
    expect(await json(env, ['order', 'show', 'unheard'])).toMatchObject({
      live: [{ sequence: 2, memberState: 'sent', publishedAt: null, attempts: 0 }],
    });
    expect((await cli(env, ['order', 'show', 'unheard'])).out).toContain('not yet, after 0 attempts');
  });
});
