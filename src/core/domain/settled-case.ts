/** A case as it hides a problem from people. Times are RFC 3339. */
type Case = {
  kind: 'order' | 'location';
  snoozedUntil: string | null;
  snoozedAt: string | null;
  closedAt: string | null;
};

/** Whether the problem was snoozed. A later problem of an order is new. A location's problems go on. Times in milliseconds. */
export function isSnoozed(its: Case | undefined, since: number, now: number): boolean {
  if (its === undefined || its.snoozedUntil === null || Date.parse(its.snoozedUntil) <= now) return false;
  return its.kind === 'location' || its.snoozedAt === null || since <= Date.parse(its.snoozedAt);
}

/** Whether the case was closed after the problem appeared. A later problem is a new one. */
export function isClosed(its: Case | undefined, since: number): boolean {
  return typeof its?.closedAt === 'string' && Date.parse(its.closedAt) >= since;
}
