/**
 * What needs a person. Lists, the board, the pager, metrics, messages to restaurants and the command line all use these
 * conditions. Each may add what else it requires, such as that a restaurant is told of an open order only.
 */
import type { AttentionKind } from '../domain/attention-event.ts';
import { PAUSES } from '../domain/explain-cause.ts';
import { TEST_REASON } from '../test-orders/test-order.ts';
import { UNREPORTED } from '../transitions/placement-sql.ts';

/** SQL of the time since which a need of the past counts. */
export const RECENT = `now() - interval '24 h'`;

/** SQL of whether a pause of its location holds a placement `p`. It continues when the location takes orders again. */
export const PAUSED = `((p.cause ->> 'code' IN ('${PAUSES.join(`', '`)}')) IS TRUE)`;

/** SQL of when the doubt about a placement `p` began. The previous version does not record it. */
export const DOUBT_SINCE = 'coalesce(greatest(p.doubt_since, p.absent_at), p.signalled_at)';

/** Minutes after which the POS should have confirmed a ticket. */
export const SILENT_MIN = 5;
/** SQL of a placement `p` with a ticket that the POS should have confirmed by now. */
export const SENT_LONG_AGO = `p.state = 'sent' AND p.finished_at < now() - interval '${SILENT_MIN} min'`;

/** Seconds after which a message is late. Normally it is published in milliseconds. Retries are at most 5 s apart. */
export const UNNOTIFIED_S = 5;

/** SQL of the condition of each kind, which a row of the named tables meets. */
export const NEEDS = {
  /** A placement `p`. A test order is held without a next attempt, and needs nobody. */
  held: `(p.state = 'held' AND p.finished_at IS NULL AND p.next_attempt_at < 'infinity' AND NOT ${PAUSED})`,
  /** A placement `p`. The answer to its cancellation settles the doubt, as long as the POS is asked. */
  in_doubt: `(p.state = 'in_doubt' AND p.finished_at IS NULL AND p.next_attempt_at = 'infinity'
    AND NOT EXISTS (SELECT FROM cancellations c WHERE c.service_order_id = p.service_order_id AND c.finished_at IS NULL
                                                  AND c.next_attempt_at < 'infinity'))`,
  /** A cancellation `c`. */
  cancel_by_phone: `(c.finished_at IS NULL AND (c.state = 'by_phone' OR c.next_attempt_at = 'infinity'))`,
  /** A placement `p` and its order `o`, if it has one. */
  failed: `(p.state = 'failed' AND p.finished_at > ${RECENT} AND o.reason IS DISTINCT FROM '${TEST_REASON}')`,
  /** A status event `e`. */
  conflict: `(e.conflict AND e.recorded_at > ${RECENT})`,
  /** An order `o` that the platform changed when it had a ticket. While it is to be cancelled, nobody is asked. */
  // guard: change-of-open
  changed: `(o.change = 'not_applied' AND o.ended_at IS NULL AND o.erased_at IS NULL
    AND (o.cancellation = 'requested') IS NOT TRUE)`,
  /** A dropped webhook `d`. */
  dropped: `NOT EXISTS (SELECT FROM webhooks r WHERE r.replay_of = d.id AND r.day >= d.day AND r.outcome <> 'dropped')`,
  /** The tickets of a location, as placements `p` and orders `o`: it was not seen since the first of them. */
  silent: `(${SENT_LONG_AGO} AND p.finished_at >= ${RECENT} AND ${UNREPORTED})`,
  /** A kitchen `k`. */
  unreachable: `(k.state = 'unreachable' AND k.unreachable_since IS NOT NULL)`,
  /** A message `m` to a contact of a location `l`. After a change of the location, its contacts may be right. */
  contacts: `(m.outcome = 'gave_up' AND m.ended_at > greatest(${RECENT}, l.updated_at)
    AND NOT EXISTS (SELECT FROM notice_messages s WHERE s.location_id = m.location_id AND s.step = m.step
                                                    AND s.created_at > m.created_at AND s.outcome = 'sent'))`,
  /** Live messages `m` that are not published. */
  unnotified: `min(m.applied_at) < now() - interval '${UNNOTIFIED_S} s'`,
} as const satisfies Record<AttentionKind, string>;

/** The most needs of a kind that are read. The newest are read, because they can still be solved in time. */
export const NEEDS_READ = 2_000;
