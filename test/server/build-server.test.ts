import { randomBytes } from 'node:crypto';
import { pino, type Logger } from 'pino';
import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { makeToken } from '../../src/core/domain/make-token.ts';
import { BATCH_WRITERS } from '../../src/database/open-database.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { buildServer } from '../../src/server/build-server.ts';
import { SHARED_ENV, registryWith } from '../../world/system/fixtures.ts';

// Nothing ever listens at port 9.
const env = {
  ...SHARED_ENV,
  DATABASE_URL: 'postgres://x@127.0.0.1:9/x',
  ORDER_API_URL: 'http://127.0.0.1:9/graphql',
  PUSH_AUTH: 'off',
  HOST: '127.0.0.1',
  PORT: '0',
  DRAIN_DELAY_MS: '0',
};
const build = (given: Record<string, string> = env, log: Logger = pino({ level: 'silent' })) =>
  buildServer(readConfig(given), { registry: registryWith(), env: given, log });

it('each component of the service stops before the components that it needs', async () => {
  const { parts, drain } = await build();
  expect(parts.map(({ name }) => name).toReversed()).toEqual([
    // Nobody sends anything new.
    'readiness',
    'claims',
    'load balancer',
    'listeners',
    // Nobody waits for news, and nothing comes from the spill.
    'feeds',
    'spill',
    // What was accepted is committed, and what was sent has its answer.
    'batches',
    'calls',
    'jobs',
    'notices',
    // All of that is published.
    'kitchens',
    'relay',
    // What is counted in memory is written.
    'followed orders',
    'webhooks not stored',
    'database watch',
    'Pub/Sub',
    'observability',
    'database',
  ]);
  await drain();
});

it('the connections of the batch writers know their statements before the first webhook, which writes nothing', async () => {
  const { app, parts, drain } = await build({ ...env, DATABASE_URL: await createDatabase() });
  await parts.find(({ name }) => name === 'batches')?.start?.(AbortSignal.timeout(10_000));
  const { flushPool } = app.database;
  expect(flushPool.idleCount).toBe(BATCH_WRITERS);
  const writers = await Promise.all(Array.from({ length: BATCH_WRITERS }, () => flushPool.connect()));
  for (const writer of writers) {
    const { rows } = await writer.query('SELECT name FROM pg_prepared_statements ORDER BY name');
    expect(rows).toEqual([{ name: 'apply-one-webhook' }, { name: 'apply-webhooks' }]);
    expect((await writer.query('SELECT FROM webhooks')).rows).toEqual([]);
    writer.release();
  }
  await drain();
});

it('a process starts without Postgres, whose connections cannot be prepared', async () => {
  const { parts, drain } = await build();
  await expect(
    parts.find(({ name }) => name === 'batches')?.start?.(AbortSignal.timeout(10_000)),
  ).resolves.toBeUndefined();
  await drain();
});

/** The environment of a service whose statuses leave by webhook only. */
const WITHOUT_GOOGLE = {
  ...env,
  GOOGLE_CLOUD_PROJECT: '',
  PUSH_AUTH: '',
  PUSH_AUDIENCE: '',
  PUSH_SERVICE_ACCOUNT: '',
  PUBLIC_URL: 'https://expediter.example.com',
  STATUS_WEBHOOK_URL: 'https://orders.example.com/statuses',
  STATUS_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
};

it('the service has an endpoint for pushes only if Pub/Sub may push', async () => {
  for (const [given, status] of [
    [env, 204],
    [WITHOUT_GOOGLE, 404],
    [{ ...WITHOUT_GOOGLE, PUSH_AUDIENCE: 'a', PUSH_SERVICE_ACCOUNT: 'push@test.iam.gserviceaccount.com' }, 401],
  ] as const) {
    const { app, drain } = await build(given);
    const answer = await app.inject({ method: 'POST', url: '/pubsub/push', payload: { message: {} } });
    expect(answer.statusCode).toBe(status);
    await drain();
  }
});

it('one log line at the start names the ways in and out that are on, and says if the spill is off', async () => {
  const linesOf = async (given: Record<string, string>): Promise<string[]> => {
    const lines: string[] = [];
    const { drain } = await build(given, pino({}, { write: (line: string) => void lines.push(line) }));
    await drain();
    return lines
      .filter((line) => line.includes('signals come by'))
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
  };
  const off = 'there is no spill: while Postgres is away, a webhook gets 500, and is lost unless the POS repeats it';
  expect(await linesOf(WITHOUT_GOOGLE)).toEqual([
    `signals come by POST /signal; statuses leave by STATUS_WEBHOOK_URL; ${off}`,
  ]);
  const { GOOGLE_CLOUD_PROJECT } = env;
  const all = { ...WITHOUT_GOOGLE, PUSH_AUTH: 'off', GOOGLE_CLOUD_PROJECT, SPILL_TOPIC: 'spill' };
  const follow = { FOLLOW_TOKEN_KEYS: 'https://orders.example.com/jwks.json', FOLLOW_TOKEN_AUDIENCE: 'a' };
  expect(await linesOf({ ...all, ...follow })).toEqual([
    'signals come by Pub/Sub pushes and POST /signal; statuses leave by the topic order-status and STATUS_WEBHOOK_URL; ' +
      'members follow orders by GET /follow; while Postgres is away, webhooks wait in the topic spill',
  ]);
});

it('before Postgres is reachable the service is not ready, answers webhooks with 500, and can stop', async () => {
  const { app, start, drain } = await build();
  const starting = expect(start()).rejects.toThrow('stopped before Postgres could be reached');
  expect((await app.inject('/healthz')).statusCode).toBe(200);
  expect((await app.inject('/readyz')).statusCode).toBe(503);
  const url = `/webhook/standard/club-1?token=${makeToken('exw_')}`;
  expect((await app.inject({ method: 'POST', url, payload: {} })).statusCode).toBe(500);
  await drain();
  await starting;
});
