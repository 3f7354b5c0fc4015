import { pino } from 'pino';
import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { makeToken } from '../../src/core/domain/make-token.ts';
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
const build = () => buildServer(readConfig(env), { registry: registryWith(), env, log: pino({ level: 'silent' }) });

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
