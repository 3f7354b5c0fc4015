import type { BoardOrder } from '../wire.ts';
import { columnOf, type ColumnName } from './column-of.ts';
import { LATE_MIN } from '../../src/core/domain/settled-case.ts';

/** The reason why an order needs a person. `unsent`: its time comes, and the POS does not take it. */
export type Trouble = 'in_doubt' | 'held' | 'failed' | 'unsent' | 'late';

/** An order on the board. Never changed, only replaced. Times are milliseconds since the epoch. */
export type Ticket = {
  order: BoardOrder;
  id: string;
  column: ColumnName;
  trouble: Trouble | null;
  /** True if it is open and lacks a part that the platform sent in an unusable form. */
  lacks: boolean;
  signalledAt: number;
  /** The estimate of the POS, else the time that the member requested. */
  dueAt: number | null;
  /** When it was ready for pickup, picked up or delivered. */
  fulfilledAt: number | null;
  endedAt: number | null;
  isLate: boolean;
  /** When it needs a person because of the time. */
  neededFrom: number | null;
  /** When it becomes late, or needs a person because of the time. Infinity if time alone changes nothing. */
  turnsAt: number;
  /** When it moved to its column; 0 if it was already there when the board was loaded. */
  movedAt: number;
  /** 0 needs a person, 1 is late or stuck, 2 is normal. */
  urgency: 0 | 1 | 2;
  /** The sort key within the same urgency, smallest first. */
  since: number;
  /** The text that the filter searches, besides the name of the location. */
  text: string;
};

/** Time after the due time before an order is overdue: the columns count it, and nobody has to act yet. */
const GRACE_MS = 60_000;
/** Time after the due time before an order is late: it needs a person. */
export const LATE_MS = LATE_MIN * 60_000;
/** Time before the due time, or after the signal of an order for now, when an order that is retried needs a person. */
const UNSENT_MS = 10 * 60_000;

export function ticketOf(order: BoardOrder, now: number, movedAt: number): Ticket {
  const column = columnOf(order);
  const isDone = column === 'done' || column === 'failed';
  const signalledAt = Date.parse(order.signalledAt);
  const dueAt = instant(order.estimatedAt ?? order.requestedAt);
  const endedAt = isDone ? (instant(order.endedAt ?? order.updatedAt) ?? signalledAt) : null;
  const lateFrom = isDone || dueAt === null || order.memberState === 'ready_for_pickup' ? null : dueAt + GRACE_MS;
  const isRetried = ['waiting', 'in_doubt'].includes(order.placement) && order.problem !== null;
  const unsentFrom = dueAt === null ? signalledAt + UNSENT_MS : dueAt - UNSENT_MS;
  const neededFrom = isRetried && !isDone ? unsentFrom : lateFrom && lateFrom - GRACE_MS + LATE_MS;
  const isNeeded = neededFrom !== null && neededFrom <= now;
  const trouble = troubleOf(column, order) ?? (isNeeded ? (isRetried ? 'unsent' : 'late') : null);
  const isLate = lateFrom !== null && lateFrom <= now;
  const isStuck = !isDone && order.placement !== 'sent' && order.problem !== null;
  const otherUrgency = isLate || isStuck ? 1 : 2;
  return {
    order,
    id: order.serviceOrderId,
    column,
    trouble,
    lacks: endedAt === null && order.leftOut.some(({ code }) => code !== 'field_unknown'),
    signalledAt,
    dueAt,
    fulfilledAt: fulfilledAt(order, endedAt),
    endedAt,
    isLate,
    neededFrom,
    turnsAt: Math.min(...[lateFrom ?? 0, neededFrom ?? 0].filter((at) => at > now)),
    movedAt,
    urgency: trouble === null ? otherUrgency : 0,
    // Among ended orders, the latest comes first.
    since: endedAt === null ? ((isLate && (trouble ?? 'late') === 'late' ? dueAt : null) ?? signalledAt) : -endedAt,
    text: [order.serviceOrderId, order.callOutCode, order.providerOrderId].join('\n').toLowerCase(),
  };
}

/** Compares tickets: those that need a person come first, then late or stuck ones, then the oldest. */
export function byUrgency(a: Ticket, b: Ticket): number {
  return a.urgency - b.urgency || a.since - b.since || (a.id < b.id ? -1 : Number(a.id > b.id));
}

function troubleOf(column: ColumnName, order: BoardOrder): Trouble | null {
  const { needsOperator, placement, endedAt, nextAttemptAt } = order;
  if (column === 'failed') return 'failed';
  // An order that a pause holds needs nobody.
  if (endedAt !== null || !needsOperator) return null;
  if (placement === 'held') return 'held';
  // While the POS is still asked, only the order's cancellation may need somebody.
  return placement === 'in_doubt' && nextAttemptAt === null ? 'in_doubt' : null;
}

function fulfilledAt({ memberState, updatedAt }: BoardOrder, endedAt: number | null): number | null {
  if (memberState === 'ready_for_pickup') return instant(updatedAt);
  return memberState === 'picked_up' || memberState === 'delivered' ? endedAt : null;
}

function instant(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}
