import type { AttentionKind } from './attention-event.ts';

/** A case as it hides a problem from people. Times are RFC 3339. */
type Case = {
  kind: 'order' | 'location';
  snoozedUntil: string | null;
  snoozedAt: string | null;
  closedAt: string | null;
};

/** A kind of need. The board also lists parts that were left out of orders, and orders whose time has come. */
export type NeedKind = AttentionKind | 'left_out' | 'unsent' | 'late';
/** Minutes after its time from which an open order is late. */
export const LATE_MIN = 15;

/** Only an answer ends these, so they are never snoozed. */
const URGENT: ReadonlySet<NeedKind> = new Set(['in_doubt', 'cancel_by_phone']);
/** Each new webhook or message is a part of the same problem. */
const GOES_ON: ReadonlySet<NeedKind> = new Set(['dropped', 'contacts']);
/** Closing the case settles these. */
const SETTLED: ReadonlySet<NeedKind> = new Set(['conflict', 'failed', 'changed']);

/** Whether nobody is told of a need any more, because of its case. Times in milliseconds. */
export function isHidden(kind: NeedKind, its: Case | undefined, since: number, now: number): boolean {
  return (!URGENT.has(kind) && isSnoozed(kind, its, since, now)) || (SETTLED.has(kind) && isClosed(its, since));
}

/** Whether the problem was snoozed. A later problem is new. */
function isSnoozed(kind: NeedKind, its: Case | undefined, since: number, now: number): boolean {
  if (its === undefined || its.snoozedUntil === null || Date.parse(its.snoozedUntil) <= now) return false;
  // guard: later-than-snoozed
  return GOES_ON.has(kind) || its.snoozedAt === null || since <= Date.parse(its.snoozedAt);
}

/** Whether the case was closed after the problem appeared. A later problem is a new one. */
export function isClosed(its: Pick<Case, 'closedAt'> | undefined, since: number): boolean {
  return typeof its?.closedAt === 'string' && Date.parse(its.closedAt) >= since;
}
