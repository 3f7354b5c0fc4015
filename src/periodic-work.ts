import type { Pool } from 'pg';
import type { Config } from './config.ts';
import type { Log } from './core/domain/log.ts';
import type { BackgroundWorkName, Observe } from './core/domain/observed.ts';
import type { Credentials } from './core/domain/provider.ts';
import { sweepCancellations } from './core/cancellations/sweep-cancellations.ts';
import type { QuietAsker } from './core/asks/quiet-asker.ts';
import { deleteOldGrants } from './core/locations/credential-store.ts';
import { endPosPauses } from './core/locations/end-pos-pauses.ts';
import type { OpenSettings } from './core/locations/locations.ts';
import { renewConnections } from './core/locations/renew-connections.ts';
import { deleteOldSessions } from './core/operators/operator-sessions.ts';
import type { DatabaseClock } from './core/postgres/database-clock.ts';
import { databaseState } from './core/postgres/database-state.ts';
import { ensureWebhookPartitions } from './core/postgres/ensure-webhook-partitions.ts';
import { runEvery } from './core/postgres/run-every.ts';
import type { DatabaseWatch } from './core/postgres/watch-database.ts';
import { deleteOldAudit } from './core/retention/delete-old-audit.ts';
import { deleteRefused } from './core/retention/delete-refused.ts';
import { deleteUnmatched } from './core/retention/delete-unmatched.ts';
import { dropOldPartitions } from './core/retention/drop-old-partitions.ts';
import { endLeftTestOrders } from './core/placements/end-test-order.ts';
import { endOrders } from './core/retention/end-orders.ts';
import { eraseMembers } from './core/retention/erase-members.ts';
import { scoreHours } from './core/orders/score-hours.ts';
import type { PosId } from './core/domain/webhook.ts';
import { sweepParked } from './core/statuses/sweep-parked.ts';
import { tellEstimates } from './core/statuses/tell-estimates.ts';
import { deleteOldTraffic } from './core/traffic/delete-old-traffic.ts';
import type { Observing } from './observe/start-observing.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A token that was revoked during an outage that only this process sees is refused after it. */
const TOKENS_MS = 3 * SECOND_MS;
const FOLLOWED_MS = 5 * SECOND_MS;
/** Each looks at all open orders, and a location is asked once a minute. */
const ASK_MS = 10 * SECOND_MS;
const SCORE_MS = 10 * MINUTE_MS;
/** Time from the start to work that may be long overdue: a process may never live for an hour. */
const SOON_MS = 5_000;
/** Seconds that unmatched webhooks are kept, or longer while they may still match an order. */
const UNMATCHED_KEPT_S = 2 * 86_400;

/** The work that every process repeats by the clock. It starts once the database is ready. */
export function periodicWork(deps: {
  config: Config;
  pool: Pool;
  flushPool: Pool;
  clock: DatabaseClock;
  log: Log;
  observe: Observe;
  open: OpenSettings;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
  redrive: (posIds: readonly PosId[]) => Promise<void>;
  asker: QuietAsker;
  /** Has the workers look at once. */
  wake: () => void;
  watch: DatabaseWatch;
  /** Undefined if nobody needs the tokens in memory. */
  refreshTokens: (() => Promise<void>) | undefined;
  /** Undefined if members cannot follow orders. */
  writeFollowed: (() => Promise<void>) | undefined;
  tasks: Observing['tasks'];
}): { start(): void; stop(): Promise<void> } {
  const { config, pool, flushPool, clock, log, observe, redrive, asker, watch, refreshTokens, writeFollowed, tasks } =
    deps;
  const unmatchedKeptS = Math.max(UNMATCHED_KEPT_S, config.PARK_TTL_S);
  const stopping = new AbortController();
  let timers: ReturnType<typeof runEvery>[] = [];

  const checkDatabase = async (): Promise<void> => {
    // Idle connections of the flushers, too: a webhook should not be the one to find out. And they are kept by it: in a
    // quiet hour each webhook would wait for a new connection and the statement's plan. One of them is the watch's.
    // guard: kept-connections
    const flushing = Array.from({ length: flushPool.idleCount - 1 }, () => databaseState(flushPool));
    await Promise.all([watch.look(), databaseState(pool), clock.follow().catch(() => {})]);
    await Promise.all(flushing);
  };
  const endPauses = async (): Promise<void> => {
    const resumed = await endPosPauses(pool);
    for (const { locationId, integration } of resumed) {
      observe({ what: 'POS pause', did: 'resume', by: integration, locationId });
    }
    if (resumed.length > 0) deps.wake();
  };
  const tell = async (): Promise<void> => {
    if ((await tellEstimates(pool)) > 0) deps.wake();
  };
  const sweep = async (): Promise<void> => {
    for (const swept of await sweepCancellations(pool)) observe({ what: 'cancellation', ...swept });
  };
  const renew = async (): Promise<void> => {
    await renewConnections({ ...deps, now: clock.now, signal: stopping.signal });
    await deleteOldGrants(pool);
  };
  const repeat = (name: BackgroundWorkName, everyMs: number, work: () => Promise<unknown>, firstMs = everyMs): void =>
    void timers.push(runEvery(everyMs, work, observe, name, firstMs));

  return {
    start() {
      repeat('sweep of parked events', 2 * SECOND_MS, async () => redrive(await sweepParked(pool)));
      repeat('telling of estimates', SECOND_MS, tell);
      repeat('sweep of cancellations', SECOND_MS, sweep);
      repeat('end of pauses by a POS', 2 * SECOND_MS, endPauses);
      repeat('look at Postgres', 2 * SECOND_MS, checkDatabase);
      if (refreshTokens !== undefined) repeat('reading of webhook tokens', TOKENS_MS, refreshTokens);
      repeat('asking about quiet orders', ASK_MS, () => asker.ask(), SOON_MS);
      if (writeFollowed !== undefined) repeat('recording of followed orders', FOLLOWED_MS, writeFollowed);
      for (const { name, work, everyMs } of tasks) repeat(name, everyMs ?? 10 * SECOND_MS, work, everyMs ?? SECOND_MS);
      repeat('end of orders', MINUTE_MS, async () => {
        await endLeftTestOrders(pool);
        await endOrders(pool, config.ORDER_END_S);
      });
      repeat('creation of partitions', HOUR_MS, () => ensureWebhookPartitions(pool));
      const keptDays = config.WEBHOOK_RETENTION_DAYS;
      repeat('dropping of partitions', HOUR_MS, () => dropOldPartitions(pool, keptDays), SOON_MS);
      repeat('deletion of unmatched webhooks', HOUR_MS, () => deleteUnmatched(pool, unmatchedKeptS), SOON_MS);
      const refusedKeptS = (config.REFUSED_KEEP * HOUR_MS) / SECOND_MS;
      repeat('deletion of refused webhooks', HOUR_MS, () => deleteRefused(pool, refusedKeptS), SOON_MS);
      repeat('deletion of old traffic', HOUR_MS, () => deleteOldTraffic(pool), SOON_MS);
      repeat('deletion of old sessions', HOUR_MS, () => deleteOldSessions(pool), SOON_MS);
      repeat('deletion of old audit', HOUR_MS, () => deleteOldAudit(pool, config.AUDIT_RETENTION_DAYS), SOON_MS);
      repeat('scoring of vendors', SCORE_MS, () => scoreHours(pool, (0.9 * SCORE_MS) / SECOND_MS), SOON_MS);
      const memberDays = config.PII_RETENTION_DAYS;
      repeat('erasure of member data', HOUR_MS, () => eraseMembers(pool, memberDays, log), SOON_MS);
      repeat('renewal of connections', DAY_MS, renew, MINUTE_MS);
    },
    async stop() {
      stopping.abort();
      await asker.stop();
      await Promise.all(timers.map((timer) => timer.stop()));
      timers = [];
    },
  };
}
