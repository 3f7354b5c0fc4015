import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { describeError } from '../domain/classify-error.ts';
import { digest, makeToken } from '../domain/make-token.ts';
import type { Log } from '../domain/log.ts';
import type { NoticeObserved, Observe } from '../domain/observed.ts';
import type { Contact } from '../contacts/contact.ts';
import type { Actor } from '../operators/operator.ts';
import { backoff, joinLoops, workLoop, type WorkLoop } from '../postgres/loops.ts';
import { retryWrite } from '../postgres/transactions.ts';
import { whenDue } from '../postgres/when-due.ts';
import { IS_OPEN, TOLD_OF_NOTICE } from './find-notices.ts';
import type { ToldOrder } from './notice-texts.ts';
import { NotSent } from '../egress/post-signed.ts';
import { UNSET, type Ways } from './ways.ts';

/** Longer than any way may take. */
const LEASE_S = 60;
/** Messages that are sent at the same time, for each way: a slow gateway does not delay e-mail. */
const AT_ONCE = 4;
const RETRY = { firstMs: 1_000, mostMs: 5 * 60_000, jitter: 0.2 };
const GIVE_UP = '1 h';

/** The path below PUBLIC_URL where contacts answer. */
export const ANSWER_PATH = '/answer';

type Deps = { pool: Pool; ways: Ways; publicUrl: string; observe: Observe; log: Log };
type Way = keyof Ways;
type Claimed = { messageId: string; leaseId: string; locationId: string; contact: Contact; failures: number };

export const MESSAGES_DUE = 'EXISTS (SELECT FROM notice_messages WHERE ended_at IS NULL AND next_attempt_at <= now())';

/**
 * Sends the messages to contacts of restaurants. A message that cannot be sent is retried, and delays no other way. A
 * process leaves the ways that it has not set up to other processes. `findNotices` gives up what nobody sends.
 */
export function workNotices(deps: Deps): WorkLoop {
  const isSetUp = (via: Way): boolean => deps.ways[via] !== undefined;
  const loops = (['email', 'webhook'] as const).filter(isSetUp).map((via) =>
    workLoop({
      capacity: AT_ONCE,
      poll: () => whenDue(deps.pool, MESSAGES_DUE),
      claim: (limit) => claim(deps.pool, via, limit),
      work: (message) =>
        // If this fails, the lease expires, and the message is sent again with the same id.
        send(deps, via, message).catch((error: unknown) =>
          deps.log.error({ messageId: message.messageId, err: error }, 'sending a notice was interrupted'),
        ),
      log: deps.log,
      failing: 'notices could not be claimed',
    }),
  );
  return joinLoops(loops);
}

async function claim(pool: Pool, via: Way, limit: number): Promise<Claimed[]> {
  const { rows } = await pool.query<Claimed>(
    `UPDATE notice_messages SET lease_id = gen_random_uuid(), lease_until = now() + interval '${LEASE_S} s'
     WHERE message_id = ANY (ARRAY(
       SELECT message_id FROM notice_messages
       WHERE ended_at IS NULL AND next_attempt_at <= now() AND contact ->> 'via' = $1
         -- guard: sent-by-one
         AND (lease_until > now()) IS NOT TRUE
       ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED))
     RETURNING message_id AS "messageId", lease_id AS "leaseId", location_id AS "locationId", contact, failures`,
    [via, limit],
  );
  return rows;
}

type Place = { name: string; timeZone: string | null; orders: (Omit<ToldOrder, 'since'> & { since: string })[] };

/** What is still to be told by a message. Orders that were settled meanwhile are left out. */
const READ = `
  SELECT coalesce(l.name, l.location_id) AS name, l.time_zone AS "timeZone",
         (SELECT coalesce(json_agg(json_build_object('noticeId', n.notice_id, 'callOutCode', o.call_out_code,
                                                     'reason', n.reason, 'since', n.since,
                                                     'told', ${TOLD_OF_NOTICE}) ORDER BY n.since), '[]')
          FROM notices n JOIN orders o USING (service_order_id)
          -- guard: settled-not-told
          WHERE n.message_id = $1 AND ${IS_OPEN}) AS orders
  FROM notice_messages m JOIN locations l USING (location_id) WHERE m.message_id = $1`;

async function send(deps: Deps, via: Way, claimed: Claimed): Promise<void> {
  const { pool, ways, publicUrl } = deps;
  const { messageId, leaseId, locationId, contact, failures } = claimed;
  const { rows } = await pool.query<Place>(READ, [messageId]);
  const place = rows[0];
  if (place === undefined) return;
  const orders = place.orders.map((order) => ({ ...order, since: new Date(order.since) }));
  const end = async (how: {
    outcome: NoticeObserved['outcome'];
    problem?: string;
    isFinal?: boolean;
    retryAfterMs?: number | undefined;
  }): Promise<void> => {
    const { outcome, problem, isFinal = false, retryAfterMs = 0 } = how;
    // guard: receiver-says-when
    const delayMs = Math.max(backoff(failures, RETRY), retryAfterMs);
    const ended = await retryWrite(() =>
      pool.query<{ outcome: 'sent' | 'gave_up' | 'settled' | null }>(END, [
        messageId,
        leaseId,
        outcome === 'failed' ? null : outcome,
        problem ?? null,
        isFinal,
        delayMs / 1_000,
        orders.map(({ noticeId }) => noticeId),
      ]),
    );
    const about = { via, messageId, locationId, orders: orders.length, ...(problem !== undefined && { problem }) };
    if (ended.rows[0] !== undefined) {
      deps.observe({ what: 'notice', outcome: ended.rows[0].outcome ?? 'failed', ...about });
    }
  };
  if (orders.length === 0) return end({ outcome: 'settled' });
  const token = makeToken('exa_');
  const { rowCount } = await pool.query(
    `UPDATE notice_messages SET links = links || $3::bytea
     WHERE message_id = $1 AND lease_id = $2::uuid AND lease_until > now() AND ended_at IS NULL`,
    [messageId, leaseId, Buffer.from(digest(token), 'base64')],
  );
  if (rowCount !== 1) return undefined;
  const told = {
    contact,
    locationId,
    locationName: place.name,
    timeZone: place.timeZone,
    orders,
    answerUrl: `${publicUrl}${ANSWER_PATH}/${token}`,
  };
  try {
    const way = ways[via];
    if (way === undefined) throw new NotSent(UNSET[via], { isFinal: true });
    await way(messageId, told);
  } catch (error) {
    const { isFinal = false, retryAfterMs }: Partial<NotSent> = error instanceof NotSent ? error : {};
    return end({ outcome: 'failed', problem: problemIn(error), isFinal, retryAfterMs });
  }
  return end({ outcome: 'sent' });
}

/** What was left out of a message is not told: if it needs an answer again, it is in another message. */
const END = `
  WITH m AS (
    UPDATE notice_messages
    SET outcome = ended.outcome, ended_at = CASE WHEN ended.outcome IS NOT NULL THEN now() END, problem = $4,
        failures = failures + CASE WHEN $4::text IS NULL THEN 0 ELSE 1 END,
        next_attempt_at = now() + make_interval(secs => $6::float8), lease_id = NULL, lease_until = NULL
    FROM (SELECT message_id AS id,
                 coalesce($3::text, CASE WHEN $5::boolean OR created_at < now() - interval '${GIVE_UP}' THEN 'gave_up' END) AS outcome
          FROM notice_messages WHERE message_id = $1) AS ended
    WHERE message_id = ended.id AND lease_id = $2::uuid
    RETURNING message_id, notice_messages.outcome
  ), untold AS (
    DELETE FROM notices n USING m
    -- guard: left-out-untold
    WHERE n.message_id = m.message_id AND m.outcome IN ('sent', 'settled') AND n.notice_id <> ALL ($7::uuid[])
      AND n.answered_at IS NULL
  )
  SELECT outcome FROM m`;

export const TestedContacts = z.object({
  locationId: z.string(),
  contacts: z.array(
    z.object({
      contact: z.string().nullable().meta({ description: 'The name of the contact.' }),
      via: z.enum(['email', 'webhook']),
      problem: z.string().nullable().meta({ description: 'Null if the message was sent.' }),
    }),
  ),
});

/** Tests of contacts that one caller can ask for in a day. A location has at most ten contacts. */
export const TESTS_A_DAY = 50;

/**
 * Says why a test is refused, from the audit, which all processes share. This test is in the audit already, because an
 * action is recorded before it runs.
 */
export async function refuseTest(pool: Pool, { kind, id }: Actor, locationId: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ there: number; theirs: number }>(
    `SELECT count(*) FILTER (WHERE location_id = $3 AND a.at > now() - interval '1 min')::int AS there,
            count(*) FILTER (WHERE (actor_kind, actor_id) = ($1, $2))::int AS theirs
     FROM audit a LEFT JOIN audit_outcomes o USING (audit_id)
     WHERE a.at > now() - interval '1 day' AND action = 'test contacts' AND o.outcome IS DISTINCT FROM 'refused'`,
    [kind, id, locationId],
  );
  const { there = 0, theirs = 0 } = rows[0] ?? {};
  // guard: few-tests
  if (there > 1) return 'The contacts of this location were tested within the last minute. Wait a minute.';
  return theirs > TESTS_A_DAY ? `You asked for ${TESTS_A_DAY} tests within a day. Try again tomorrow.` : undefined;
}

/** Sends a test message to each contact that is told about orders. @returns undefined if there is no such location */
export async function testContacts(
  pool: Pool,
  ways: Ways,
  locationId: string,
): Promise<z.infer<typeof TestedContacts> | undefined> {
  const { rows } = await pool.query<{ name: string; timeZone: string | null; contacts: Contact[] }>(
    `SELECT coalesce(name, location_id) AS name, time_zone AS "timeZone", contacts FROM locations WHERE location_id = $1`,
    [locationId],
  );
  const location = rows[0];
  if (location === undefined) return undefined;
  const { name: locationName, timeZone } = location;
  const contacts = location.contacts.flatMap(({ via, ...contact }) => (via === undefined ? [] : [{ via, contact }]));
  const tested = contacts.map(async ({ via, contact }) => {
    const told = { contact, locationId, locationName, timeZone, orders: [], answerUrl: null };
    const sending = ways[via]?.(randomUUID(), told) ?? Promise.reject(new NotSent(UNSET[via]));
    const problem = await sending.then(() => null, problemIn);
    return { contact: contact.name ?? null, via, problem };
  });
  return { locationId, contacts: await Promise.all(tested) };
}

function problemIn(error: unknown): string {
  return error instanceof NotSent ? error.message : describeError(error);
}
