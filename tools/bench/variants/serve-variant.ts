/**
 * Serves one variant in its own process. The arguments are the variant's name and the database's URL. One message has
 * the senders, and is answered with the port. The process ends when its parent disconnects.
 */
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import type { FastifyInstance } from 'fastify';
import { buildListener } from '../../../src/server/listener.ts';
import { applyWebhooks } from '../../../src/core/statuses/apply-webhooks.ts';
import type { WebhookOutcome } from '../../../src/core/domain/webhook.ts';
import { databaseClock } from '../../../src/core/postgres/database-clock.ts';
import { watchDatabase } from '../../../src/core/postgres/watch-database.ts';
import { tokenJudge } from '../../../src/http/judge-token.ts';
import { batchWebhooks } from '../../../src/core/statuses/batch-webhooks.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { tokenAuthenticator } from '../../../src/core/locations/webhook-tokens.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { logOutput } from '../../../src/observe/log-output.ts';
import { BATCH_WRITERS, openDatabase } from '../../../src/database/open-database.ts';
import { boundConnections, mostConnections } from '../../../src/http/bound-connections.ts';
import { ANSWER_LIMITS, type WebhookDeps } from '../../../src/http/webhook-routes.ts';
import { logJourneys } from '../../../src/observe/events.ts';
import { registry } from '../../../src/providers/index.ts';
import { acceptNaively } from './accept-naively.ts';
import { bareFastify } from './bare-fastify.ts';
import { SETTINGS_KEY, type Sender } from '../stage/prepare-bench-database.ts';
import type { Variant } from './variants.ts';

const POOL_SIZE = 10;
const MIB = 2 ** 20;

type Accept = WebhookDeps['accept'];

/** Serves the service's endpoints, with everything on except the relay. The variants differ in `accept`. */
async function serveEndpoints(databaseUrl: string, accept: Accept): Promise<FastifyInstance> {
  const { pool } = openDatabase(databaseUrl, POOL_SIZE, () => {});
  const clock = databaseClock(pool);
  const watch = watchDatabase(pool);
  await clock.follow();
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const log = createLog(
    'info',
    logOutput(() => {}),
  );
  const observe = logJourneys(log);
  const recordSignal = (): Promise<never> => Promise.reject(new Error('no signals here'));
  return buildListener({
    log,
    connections: boundConnections(mostConnections().connections, log),
    readiness: () => ({ ready: true, database: 'up' }),
    outside: {
      push: { verifyPushToken: undefined, recordSignal, observe },
      signal: { authenticateToken: () => undefined, verify: async () => {}, recordSignal, observe },
      webhook: {
        now: clock.now,
        judgeToken: tokenJudge(
          tokenAuthenticator(pool, settingsDecrypter({ registry, keys, publicUrl: undefined }), clock.now),
          watch,
          undefined,
        ),
        accept,
        watch,
        spill: undefined,
        storeRefused: undefined,
        observe,
        keys,
        quota: { take: async () => 'whole' },
        publicUrl: '',
        bodyLimit: MIB,
        bodyBudget: 64 * MIB,
        // All locations send the same load, so the limit for a flood is not the subject.
        limits: { ...ANSWER_LIMITS, perSecond: 1_000_000 },
      },
    },
  });
}

function gathered(databaseUrl: string): Accept {
  const { flushPool } = openDatabase(databaseUrl, POOL_SIZE, () => {});
  return batchWebhooks({
    pool: flushPool,
    writers: BATCH_WRITERS,
    observe: () => {},
    onApplied: () => {},
    onRefused: () => {},
    onLocked: () => {},
  }).accept;
}

/** Opens as many connections as the service has. */
function openPool(databaseUrl: string, settings = ''): pg.Pool {
  return new pg.Pool({
    connectionString: databaseUrl,
    max: POOL_SIZE,
    // Never closed: it would be idle for too long while other variants are measured, and its plans would be lost.
    idleTimeoutMillis: 0,
    options: `-c synchronous_commit=on ${settings}`,
  });
}

function oneStatement(databaseUrl: string): Accept {
  const pool = openPool(databaseUrl, '-c enable_seqscan=off -c plan_cache_mode=force_generic_plan');
  return async (webhook) => {
    const { webhooks } = await withClient(pool, (client) => applyWebhooks(client, [webhook]));
    return withoutIds(webhooks[0] ?? 'ignored');
  };
}

async function serve(variant: Variant, databaseUrl: string, senders: readonly Sender[]): Promise<FastifyInstance> {
  if (variant === 'bare') return bareFastify(senders);
  if (variant === 'service') return serveEndpoints(databaseUrl, gathered(databaseUrl));
  if (variant === 'one-statement') return serveEndpoints(databaseUrl, oneStatement(databaseUrl));
  const naively = acceptNaively(openPool(databaseUrl));
  return serveEndpoints(databaseUrl, async (webhook) => withoutIds(await naively(webhook)));
}

function withoutIds(outcome: WebhookOutcome): Awaited<ReturnType<Accept>> {
  return { outcome, serviceOrderIds: [] };
}

const [variant, databaseUrl] = process.argv.slice(2) as [Variant, string];
process.once('message', (senders: Sender[]) => {
  void (async () => {
    const app = await serve(variant, databaseUrl, senders);
    await app.listen({ host: '127.0.0.1', port: 0 });
    process.send?.({ port: (app.server.address() as AddressInfo).port });
  })();
});
