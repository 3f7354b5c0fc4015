import type { Pool } from 'pg';
import { z } from 'zod';
import type { SendEvent } from '../domain/cloud-event.ts';
import type { Way } from '../domain/live-message.ts';
import type { Log } from '../domain/log.ts';
import { digest } from '../domain/make-token.ts';
import { Instant } from '../domain/order.ts';
import { NotSent } from '../egress/post-signed.ts';
import { OLDEST_WAITING } from './outbox.ts';

/** An endpoint that fails for this long is stopped, so that nobody calls a dead URL for ever. */
const STOPPED_AFTER_DAYS = 3;
/** What waits is repeated every few minutes. After so many hours without a failure, it had been taken, or nobody tried. */
const FAILS_AGAIN_AFTER_H = 1;
/** How often a process writes that the endpoint fails. */
const FAILING_EVERY_MS = 1_000;
/** How often a process that succeeds removes what another process wrote. */
const WORKING_EVERY_MS = 10_000;

export type StatusEndpoint = {
  /** The name under which the endpoint is stored. It does not show the URL. */
  key: string;
  /** Notes that the endpoint took a message. */
  took(): Promise<void>;
  /** Notes that a message failed, and stops the endpoint after three days of failures, or if it is gone (410). */
  failed(error: unknown): Promise<void>;
};

/** The health of STATUS_WEBHOOK_URL, shared by all processes. */
export function statusEndpoint({
  pool,
  url,
  log,
}: {
  pool: Pool;
  url: string;
  log: Pick<Log, 'error'>;
}): StatusEndpoint {
  const key = digest(url);
  let failedAt = -Infinity;
  let workedAt = -Infinity;
  return {
    key,
    async took() {
      if (failedAt === -Infinity && performance.now() - workedAt < WORKING_EVERY_MS) return;
      failedAt = -Infinity;
      workedAt = performance.now();
      // Rows of former URLs are removed too.
      await pool.query('DELETE FROM status_endpoints WHERE endpoint <> $1 OR stopped_at IS NULL', [key]);
    },
    async failed(error) {
      const isGone = error instanceof NotSent && error.isFinal;
      if (!isGone && performance.now() - failedAt < FAILING_EVERY_MS) return;
      failedAt = performance.now();
      const problem = error instanceof NotSent ? error.message : 'the message could not be sent';
      const { rows } = await pool.query<{ stops: boolean }>(
        `INSERT INTO status_endpoints AS e (endpoint, problem, stopped_at) VALUES ($1, $2, CASE WHEN $3 THEN now() END)
         ON CONFLICT (endpoint) DO UPDATE
         SET failed_at = now(), problem = excluded.problem,
             failing_since = CASE WHEN ${IS_GOING_ON} THEN e.failing_since ELSE now() END,
             stopped_at = CASE WHEN $3 OR ${IS_GOING_ON}
                                 AND e.failing_since < now() - make_interval(days => ${STOPPED_AFTER_DAYS}) THEN now() END
         -- guard: stopped-stays
         WHERE e.stopped_at IS NULL
         RETURNING stopped_at IS NOT NULL AS stops`,
        [key, problem, isGone],
      );
      if (rows[0]?.stops === true) {
        log.error({ problem }, 'STATUS_WEBHOOK_URL is stopped; live messages wait until: expediter live resume');
      }
    },
  };
}

// guard: fails-again
const IS_GOING_ON = `e.failed_at > now() - make_interval(hours => ${FAILS_AGAIN_AFTER_H})`;

/**
 * SQL: whether the row of an endpoint `e` still counts. A URL that was changed or removed while it failed leaves a row that
 * no success removes.
 */
// guard: ill-for-an-hour
export const IS_ILL = `(e.stopped_at IS NOT NULL OR ${IS_GOING_ON})`;

/** SQL: whether an endpoint is stopped. @param key in base64, so that it needs no quoting */
export const isStopped = (key: string): string =>
  `EXISTS (SELECT FROM status_endpoints e WHERE e.endpoint = '${key}' AND e.stopped_at IS NOT NULL)`;

/** Makes a sender that sends nothing to a stopped endpoint. @throws NotSent while it is stopped */
export function unlessStopped(pool: Pool, url: string, send: SendEvent): SendEvent {
  const text = `SELECT ${isStopped(digest(url))} AS stopped`;
  return async (event) => {
    const { rows } = await pool.query<{ stopped: boolean }>(text);
    // guard: nothing-to-stopped
    if (rows[0]?.stopped === true) throw new NotSent('STATUS_WEBHOOK_URL is stopped');
    return send(event);
  };
}

const Waiting = z.int().meta({ description: 'Messages that it has not taken yet, up to 10,000.' });

/** How live messages leave the service, and what waits. */
export const LiveWays = z
  .object({
    topic: z
      .object({ name: z.string(), waiting: Waiting })
      .nullable()
      .meta({ description: 'The status topic. Null if there is none.' }),
    webhook: z
      .object({
        state: z.enum(['working', 'failing', 'stopped']),
        failingSince: Instant.nullable(),
        stoppedAt: Instant.nullable(),
        problem: z.string().nullable().meta({ description: 'Why its last message failed.' }),
        waiting: Waiting,
      })
      .nullable()
      .meta({ description: 'The receiver at STATUS_WEBHOOK_URL. Null if it is not set.' }),
    oldestAppliedAt: Instant.nullable().meta({ description: 'Of the messages that wait and were never sent.' }),
  })
  .meta({ id: 'LiveWays' });
export type LiveWays = z.infer<typeof LiveWays>;

export async function readLiveWays(
  pool: Pool,
  { topic: name, url }: { topic: string | undefined; url: string | undefined },
): Promise<LiveWays> {
  const { rows } = await pool.query<{
    topic: number;
    webhook: number;
    oldestAppliedAt: string | null;
    endpoint: { failingSince: string; stoppedAt: string | null; problem: string } | null;
  }>(
    `SELECT (SELECT count(*)::int FROM (SELECT FROM outbox WHERE NOT topic_done LIMIT 10000) AS few) AS topic,
            (SELECT count(*)::int FROM (SELECT FROM outbox WHERE NOT webhook_done LIMIT 10000) AS few) AS webhook,
            to_json(${OLDEST_WAITING}) #>> '{}' AS "oldestAppliedAt",
            (SELECT json_build_object('failingSince', failing_since, 'stoppedAt', stopped_at, 'problem', problem)
             FROM status_endpoints e WHERE endpoint = $1 AND ${IS_ILL}) AS endpoint`,
    [url === undefined ? null : digest(url)],
  );
  const { topic = 0, webhook: waiting = 0, oldestAppliedAt = null, endpoint = null } = rows[0] ?? {};
  const { failingSince = null, stoppedAt = null, problem = null } = endpoint ?? {};
  const state = endpoint === null ? 'working' : stoppedAt === null ? 'failing' : 'stopped';
  const webhook = url === undefined ? null : ({ state, failingSince, stoppedAt, problem, waiting } as const);
  return { topic: name === undefined ? null : { name, waiting: topic }, webhook, oldestAppliedAt };
}

/** Sends to stopped endpoints again. @returns whether one was stopped */
export async function resumeEndpoint(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query('DELETE FROM status_endpoints WHERE stopped_at IS NOT NULL');
  return rowCount !== 0;
}

/** Messages that one statement puts back. */
const RESENT_AT_ONCE = 1_000;

/**
 * Puts published messages of a time back into the outbox, from which they are sent once more, an order's lowest first.
 * @param about.way the only way that sends them again; by default all
 * @returns the number of messages
 */
export async function resendLive(
  pool: Pool,
  about: { since: Date; until?: Date | undefined; way?: Way | undefined },
): Promise<number> {
  // A message that was published again meanwhile has a later time, and does not count.
  const { rows } = await pool.query<{ until: Date }>('SELECT least($1::timestamptz, now()) AS until', [
    about.until ?? null,
  ]);
  let resent = 0;
  for (;;) {
    const again = await pool.query<{ count: number }>(RESEND, [about.since, rows[0]?.until, about.way ?? null]);
    const { count = 0 } = again.rows[0] ?? {};
    resent += count;
    if (count < RESENT_AT_ONCE) return resent;
  }
}

/** A message is in one place at a time, so that its followers read it once. */
const RESEND = `
  WITH again AS (
    DELETE FROM live_messages WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM live_messages WHERE published_at >= $1::timestamptz AND published_at < $2::timestamptz
      ORDER BY published_at LIMIT ${RESENT_AT_ONCE}))
    RETURNING *
  ), back AS (
    INSERT INTO outbox (service_order_id, sequence, rank, provider_order_id, reason, occurred_at, applied_at,
                        first_received_at, topic_done, webhook_done, resent)
    SELECT m.service_order_id, m.sequence, m.rank, m.provider_order_id, e.reason, e.occurred_at, m.applied_at,
           m.first_received_at, $3::text IS NOT DISTINCT FROM 'webhook', $3::text IS NOT DISTINCT FROM 'topic', true
    FROM again m
    LEFT JOIN LATERAL (SELECT reason, occurred_at FROM status_events
                       WHERE service_order_id = m.service_order_id AND sequence = m.sequence LIMIT 1) AS e ON true
    ON CONFLICT DO NOTHING
  )
  SELECT count(*)::int AS count FROM again`;
