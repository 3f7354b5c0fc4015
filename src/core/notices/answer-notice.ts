import type { Pool, PoolClient } from 'pg';
import { answerChange } from '../cancellations/answer-change.ts';
import { concludeByPhone } from '../cancellations/operator-cancellations.ts';
import { digest, mayBeToken } from '../domain/make-token.ts';
import type { Refused } from '../domain/placement-cause.ts';
import type { Contact, NoticeReason } from '../contacts/contact.ts';
import { audited, type Action } from '../operators/audit.ts';
import type { Actor } from '../operators/operator.ts';
import { resolveNotThere, resolveThere } from '../placements/resolve-doubt.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { IS_OPEN, TOLD_OF_NOTICE } from './find-notices.ts';
import { ANSWERS, type Answer, type ToldOrder } from './notice-texts.ts';

const VALID_FOR = '24 h';

export type AnswerPage = {
  locationId: string;
  locationName: string;
  timeZone: string | null;
  contact: Contact;
  orders: (ToldOrder & {
    serviceOrderId: string;
    isOpen: boolean;
    /** The first answer of any contact. */
    answered: { answer: Answer; by: string; at: Date } | null;
  })[];
};

/** Finds the message of a link by its token. Reading changes nothing, so programs that open links do no harm. */
export async function findAnswerPage(pool: Pool, token: string): Promise<AnswerPage | undefined> {
  if (!mayBeToken('exa_', token)) return undefined;
  const { rows } = await pool.query<Omit<AnswerPage, 'orders'> & { orders: Stored[] }>(
    `SELECT m.location_id AS "locationId", coalesce(l.name, l.location_id) AS "locationName", l.time_zone AS "timeZone",
            m.contact, (
       SELECT coalesce(json_agg(json_build_object(
                'noticeId', n.notice_id, 'serviceOrderId', n.service_order_id,
                -- An order that was moved to another location has another code there.
                'callOutCode', CASE WHEN o.location_id = m.location_id THEN o.call_out_code ELSE '–' END,
                'reason', n.reason, 'since', n.since, 'told', ${TOLD_OF_NOTICE}, 'isOpen', ${IS_OPEN},
                'answered', (SELECT json_build_object('answer', a.answer, 'at', a.answered_at,
                                                      'by', coalesce(a.contact ->> 'name', a.contact ->> 'email',
                                                                     a.contact ->> 'phone'))
                             FROM notices a
                             WHERE a.service_order_id = n.service_order_id AND a.reason = n.reason AND a.since = n.since
                               AND a.answered_at IS NOT NULL
                             ORDER BY a.answered_at LIMIT 1)) ORDER BY n.since), '[]')
       FROM notices n JOIN orders o USING (service_order_id) WHERE n.message_id = m.message_id) AS orders
     FROM notice_messages m JOIN locations l USING (location_id)
     -- guard: answer-in-a-day
     WHERE m.links @> ARRAY[$1::bytea] AND m.created_at > now() - interval '${VALID_FOR}'`,
    [Buffer.from(digest(token), 'base64')],
  );
  const found = rows[0];
  return (
    found && {
      ...found,
      orders: found.orders.map((order) => ({
        ...order,
        since: new Date(order.since),
        answered: order.answered && { ...order.answered, at: new Date(order.answered.at) },
      })),
    }
  );
}
type Stored = Omit<AnswerPage['orders'][number], 'since' | 'answered'> & {
  since: string;
  answered: { answer: Answer; by: string; at: string } | null;
};

/** The actions in the audit, as for an operator who says the same. */
const ACTIONS = {
  late: 'answer notice',
  failed: 'answer notice',
  in_doubt: 'resolve',
  cancel_by_phone: 'conclude cancel',
  changed: 'answer change',
};

/**
 * Does what an operator's answer would do, and records it as the contact's. An order that is settled already, or by an
 * answer at the same moment, does not change, because the order is locked before this is decided.
 * @returns a refusal; `unusable` if the page has no such order or answer; undefined if no answer is needed any more
 */
export async function answerNotice(
  pool: Pool,
  page: AnswerPage,
  given: { noticeId: string; answer: string },
  from: Pick<Action, 'source' | 'requestId' | 'log'>,
): Promise<object | Refused | 'unusable' | undefined> {
  const order = page.orders.find(({ noticeId }) => noticeId === given.noticeId);
  const answer = ANSWERS[order?.reason ?? 'late'].find((each) => each === given.answer);
  if (order === undefined || answer === undefined) return 'unusable';
  // Not an action for the audit.
  if (!order.isOpen) return undefined;
  const { serviceOrderId, noticeId, reason } = order;
  const { locationId, locationName, contact } = page;
  const who = contact.name ?? contact.email ?? contact.phone ?? '';
  const by: Actor = { kind: 'nobody', id: 'answer link', name: `contact: ${who} at ${locationName}` };
  const action = { action: ACTIONS[reason], serviceOrderId, locationId, ...from };
  return audited(
    pool,
    by,
    action,
    () =>
      inTransaction(pool, async (client) => {
        await client.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [serviceOrderId]);
        const open = await client.query(`SELECT FROM notices n WHERE notice_id = $1::uuid AND ${IS_OPEN}`, [noticeId]);
        // guard: answered-once
        if (open.rowCount === 0) return undefined;
        const done = await act(client, serviceOrderId, answer, reason);
        if (done === undefined || 'refused' in done) return done;
        const store = 'UPDATE notices SET answer = $2, answered_at = now() WHERE notice_id = $1::uuid';
        await client.query(store, [noticeId, answer]);
        return done;
      }),
    () => answer,
  );
}

async function act(
  client: PoolClient,
  serviceOrderId: string,
  answer: Answer,
  reason: NoticeReason,
): Promise<object | Refused | undefined> {
  if (answer === 'seen') return {};
  // Whether it is the change that the page shows was decided under the same lock.
  if (reason === 'changed')
    return answerChange(client, serviceOrderId, { answer: answer === 'done' ? answer : 'too_late' });
  if (answer === 'there') return resolveThere(client, serviceOrderId, {});
  if (answer === 'not_there') return resolveNotThere(client, serviceOrderId);
  return concludeByPhone(client, serviceOrderId, answer === 'cancelled');
}
