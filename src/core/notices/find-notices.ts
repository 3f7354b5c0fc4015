import type { Pool, PoolClient } from 'pg';
import { Contact, type NoticeReason } from '../contacts/contact.ts';
import { clockOf } from '../kitchens/pause-location.ts';
import { DOUBT_SINCE, NEEDS, PAUSED } from '../orders/needs-person.ts';
import { inBatch, inBatches, LOCK_FIND_NOTICES } from '../postgres/transactions.ts';

/** Minutes after which an order that was due is late. */
const LATE_MIN = 2;
const LATE = `now() - interval '${LATE_MIN} min'`;
/** A contact is not told of a failure that is older than its minutes and this many more. */
const FAILED_MIN = 10;
const LONGEST_MIN = 120 + FAILED_MIN;
/** Troubles that are read at a time. */
const PAGE = 5_000;
/** A contact gets at most one message in this time, so that many orders that fail together are told together. */
const GATHER_S = 60;
/** The time is so many times longer if nobody waits for an answer: the orders are late, have failed or are called off. */
// guard: unhurried
const UNHURRIED = 15;

/**
 * SQL of the troubles that a restaurant can be told about. `since` tells two troubles of an order apart: a move to
 * another location begins a new one. The minutes of a contact count from `counts_from`.
 *
 * - `late`: not at the POS although it was due, by the clock of its deadline
 * - `in_doubt`: only a person can settle the doubt
 * - `changed`: the platform changed it after it was sent
 * @param failedFor how long a failure counts
 */
const troubles = (failedFor: string): string => `
  SELECT p.service_order_id, p.location_id, 'late' AS reason,
         -- guard: told-where-it-is
         greatest(p.absent_at, p.signalled_at, o.wanted_at - interval '1 h', p.moved_at) AS since,
         greatest(${clockOf('o.wanted_at')}, p.moved_at) AS counts_from
  FROM placements p CROSS JOIN LATERAL (
    SELECT requested_at AS wanted_at FROM orders
    WHERE service_order_id = p.service_order_id AND ended_at IS NULL AND (cancellation = 'requested') IS NOT TRUE
    OFFSET 0
  ) AS o
  -- A test order is held without a next attempt, and a doubt without one is for a person.
  WHERE p.finished_at IS NULL AND p.next_attempt_at < 'infinity' AND NOT ${PAUSED}
    AND ${clockOf('NULL::timestamptz')} < ${LATE} AND (o.wanted_at - interval '1 h' < ${LATE}) IS NOT FALSE
  UNION ALL
  SELECT p.service_order_id, p.location_id, 'in_doubt', ${DOUBT_SINCE}, ${DOUBT_SINCE}
  FROM placements p CROSS JOIN LATERAL (
    SELECT FROM orders WHERE service_order_id = p.service_order_id AND ended_at IS NULL OFFSET 0
  ) AS o
  -- The answer about the cancellation settles the doubt too.
  WHERE ${NEEDS.in_doubt} AND NOT EXISTS (SELECT FROM cancellations c
                                          WHERE c.service_order_id = p.service_order_id AND ${NEEDS.cancel_by_phone})
  UNION ALL
  SELECT service_order_id, location_id, 'cancel_by_phone', requested_at, requested_at
  FROM cancellations c WHERE ${NEEDS.cancel_by_phone}
  UNION ALL
  SELECT service_order_id, location_id, 'changed', changed_at, changed_at FROM orders o WHERE ${NEEDS.changed}
  UNION ALL
  SELECT p.service_order_id, p.location_id, 'failed', p.finished_at, p.finished_at
  FROM placements p CROSS JOIN LATERAL (
    SELECT reason FROM orders WHERE service_order_id = p.service_order_id AND failed_by_us OFFSET 0
  ) AS o
  WHERE ${NEEDS.failed} AND p.finished_at > now() - interval '${failedFor}'`;

const SAME_TROUBLE = 's.service_order_id = n.service_order_id AND s.reason = n.reason AND s.since = n.since';
/** SQL of whether a notice `n` still needs an answer: its trouble lasts, and no contact has answered. */
export const IS_OPEN = `(EXISTS (SELECT FROM (${troubles('24 h')}) AS s WHERE ${SAME_TROUBLE})
  AND NOT EXISTS (SELECT FROM notices s WHERE ${SAME_TROUBLE} AND s.answered_at IS NOT NULL))`;

/** SQL of what an order of a notice `n` is changed in; NULL if the notice is about something else. */
export const TOLD_OF_NOTICE = `(SELECT told FROM order_changes c
  WHERE n.reason = 'changed' AND c.service_order_id = n.service_order_id AND c.seen_at = n.since)`;

type Trouble = {
  serviceOrderId: string;
  locationId: string;
  reason: NoticeReason;
  since: string;
  ageS: number;
  now: Date;
  contacts: unknown[];
  timeZone: string | null;
  /** The steps that have a notice already. */
  told: readonly string[];
};

/** SQL that is true if there may be a trouble, or something to tell. */
export const MAY_NEED_NOTICE = `EXISTS (SELECT FROM placements WHERE finished_at IS NULL)
  -- EXISTS could read all that failed, by another index.
  OR (SELECT max(finished_at) FROM placements WHERE state = 'failed') > now() - interval '${LONGEST_MIN} min'
  OR EXISTS (SELECT FROM cancellations WHERE finished_at IS NULL) OR EXISTS (SELECT FROM orders o WHERE ${NEEDS.changed})
  OR EXISTS (SELECT FROM notices WHERE message_id IS NULL) OR EXISTS (SELECT FROM notice_messages WHERE ended_at IS NULL)`;

/** Reads open placements, recent failures and changes by their indexes, and nothing of other orders that were sent. */
export const FIND = `
  SELECT t.service_order_id AS "serviceOrderId", t.location_id AS "locationId", t.reason, t.since::text AS since,
         extract(epoch FROM now() - t.counts_from)::float8 AS "ageS", now() AS now, l.contacts, l.time_zone AS "timeZone", n.told
  FROM (${troubles(`${LONGEST_MIN} min`)}) AS t
  CROSS JOIN LATERAL (
    SELECT contacts, time_zone FROM locations
    WHERE location_id = t.location_id AND jsonb_path_exists(contacts, '$[*].via') OFFSET 0
  ) AS l
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(step), '{}') AS told, count(answered_at) AS answers FROM notices
    WHERE service_order_id = t.service_order_id AND reason = t.reason AND since = t.since
  ) AS n
  WHERE n.answers = 0
  ORDER BY t.since, t.service_order_id, t.reason`;

/**
 * Finds the contacts that are to be told about an order now, and puts what waits for one contact into one message. One
 * process at a time reads or gathers. Each page is committed, because all together could meet the time limit each time.
 * @returns the number of new messages
 */
export async function findNotices(pool: Pool, gatherS = GATHER_S, page = PAGE): Promise<number> {
  const due: object[] = [];
  await inBatch(pool, LOCK_FIND_NOTICES, async (client) => {
    await client.query(`DELETE FROM notices n WHERE message_id IS NULL AND NOT ${IS_OPEN}`);
    await client.query(GIVE_UP_UNSENT);
    await readDue(client, page, due);
  });
  // guard: page-committed
  while (due.length > 0) await pool.query(STORE, [JSON.stringify(due.splice(0, page))]);
  return inBatches(pool, { lock: LOCK_FIND_NOTICES, batch: page }, async (client) => {
    const made = await client.query(MAKE_MESSAGES, [gatherS, page]);
    await client.query(GATHER);
    return made;
  });
}

async function readDue(client: PoolClient, page: number, due: object[]): Promise<void> {
  await client.query(`DECLARE troubles NO SCROLL CURSOR FOR ${FIND}`);
  for (;;) {
    const { rows } = await client.query<Trouble>(`FETCH ${page} FROM troubles`);
    for (const { contacts, told, ...about } of rows) {
      for (const step of stepsDue({ contacts, told, ...about })) due.push({ ...about, ...step });
    }
    if (rows.length < page) return;
  }
}

const STORE = `
  INSERT INTO notices (service_order_id, reason, since, step, location_id, contact)
  SELECT "serviceOrderId", reason, since, step, "locationId", contact
  FROM jsonb_to_recordset($1::jsonb) AS d("serviceOrderId" text, reason text, since timestamptz, step text,
                                          "locationId" text, contact jsonb)
  -- guard: told-once
  ON CONFLICT DO NOTHING`;

/** Gives up messages whose way no process has set up: the others are given up by the worker within an hour. */
const GIVE_UP_UNSENT = `
  UPDATE notice_messages SET outcome = 'gave_up', ended_at = now(), problem = coalesce(problem, $$no process is set up to send it$$)
  WHERE ended_at IS NULL AND created_at < now() - interval '70 min' AND (lease_until > now()) IS NOT TRUE`;

/** Joins would compare each notice with each message, if their plan was made while there were few. */
const MAKE_MESSAGES = `
  INSERT INTO notice_messages (message_id, location_id, step, contact)
  SELECT gen_random_uuid(), location_id, step, contact
  FROM (SELECT location_id, step, (array_agg(contact ORDER BY created_at DESC))[1] AS contact,
               bool_or(reason IN ('in_doubt', 'changed') OR reason = 'cancel_by_phone' AND NOT EXISTS (
                 SELECT FROM cancellations c WHERE c.service_order_id = n.service_order_id AND c.fails_with IS NOT NULL)) AS hurries
        FROM notices n WHERE message_id IS NULL GROUP BY location_id, step) AS w
  -- guard: told-together
  WHERE NOT EXISTS (SELECT FROM notice_messages m WHERE m.location_id = w.location_id AND m.step = w.step
                                                    AND m.created_at > now() - make_interval(secs => $1::float8)
                                                                        * CASE WHEN w.hurries THEN 1 ELSE ${UNHURRIED} END OFFSET 0)
  LIMIT $2::int`;

const GATHER = `
  UPDATE notices n SET message_id = made.message_id
  FROM (SELECT n.ctid, m.message_id FROM notices n CROSS JOIN LATERAL (
          SELECT message_id FROM notice_messages WHERE location_id = n.location_id AND step = n.step AND created_at = now()
          OFFSET 0) AS m
        WHERE n.message_id IS NULL OFFSET 0) AS made
  WHERE n.ctid = made.ctid`;

/** @returns the contacts that are to be told about a trouble now */
export function stepsDue(
  trouble: Pick<Trouble, 'reason' | 'ageS' | 'now' | 'contacts' | 'timeZone' | 'told'>,
): { step: string; contact: Contact }[] {
  const { reason, ageS, now, timeZone, told } = trouble;
  return trouble.contacts.flatMap((stored) => {
    // A row that was edited by hand must not stop the others.
    const { data: contact } = Contact.safeParse(stored);
    if (contact?.via === undefined || contact.about?.includes(reason) === false) return [];
    const step = stepOf(contact);
    const { afterMinutes = 0 } = contact;
    const isTooOld = reason === 'failed' && ageS > (afterMinutes + FAILED_MIN) * 60;
    // guard: quiet-hours
    if (told.includes(step) || ageS < afterMinutes * 60 || isTooOld || isQuiet(contact, timeZone, now)) return [];
    return [{ step, contact }];
  });
}

/** The same address with other minutes is another step: it is told again. */
function stepOf({ via, afterMinutes = 0, email, phone }: Contact): string {
  return `${via} ${afterMinutes} ${via === 'email' ? email : (phone ?? email)}`;
}

function isQuiet({ quiet }: Contact, timeZone: string | null, now: Date): boolean {
  if (quiet === undefined) return false;
  const time = now.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: timeZone ?? 'UTC' });
  return quiet.from <= quiet.to ? quiet.from <= time && time < quiet.to : quiet.from <= time || time < quiet.to;
}
