import type { BoardOrder } from '../wire.ts';
import { columnOf, type ColumnName } from './column-of.ts';

/** The reason why an order needs a person. */
export type Trouble = 'in_doubt' | 'held' | 'failed';

/** An order as the board holds it: never changed, only replaced. Times are milliseconds since the epoch. */
export type Ticket = {
  order: BoardOrder;
  id: string;
  column: ColumnName;
  trouble: Trouble | null;
  /** It is under way without something that the driver or the restaurant may ask for. */
  lacks: boolean;
  signalledAt: number;
  /** When it should be over: as its POS says, else as the member wants it. */
  dueAt: number | null;
  /** When the promise was kept: ready to be picked up, or at the member's. */
  storedAt: number | null;
  endedAt: number | null;
  /** The time from which it is late; null if it cannot become late any more. */
  lateFrom: number | null;
  isLate: boolean;
  /** When it moved to its column while shown; 0 if it was there before. */
  movedAt: number;
  /** 0 needs a person, 1 is late or stuck, 2 is as it should be. */
  urgency: 0 | 1 | 2;
  /** The order within the same urgency, smaller first. */
  since: number;
  /** The text that the filter searches. */
  text: string;
};

/** Tolerance: a promise is not broken by seconds. */
const GRACE_MS = 60_000;

export function ticketOf(order: BoardOrder, now: number, movedAt: number): Ticket {
  const column = columnOf(order);
  const isDone = column === 'done' || column === 'failed';
  const signalledAt = Date.parse(order.signalledAt);
  const dueAt = instant(order.estimatedAt ?? order.requestedAt);
  const endedAt = isDone ? (instant(order.endedAt ?? order.updatedAt) ?? signalledAt) : null;
  const lateFrom = isDone || dueAt === null || order.memberState === 'ready_for_pickup' ? null : dueAt + GRACE_MS;
  const trouble = troubleOf(column, order);
  const isLate = lateFrom !== null && lateFrom <= now;
  const isStuck = !isDone && order.placement !== 'sent' && order.problem !== null;
  const bad = isLate || isStuck ? 1 : 2;
  return {
    order,
    id: order.serviceOrderId,
    column,
    trouble,
    lacks: endedAt === null && order.leftOut.some(({ code }) => code !== 'field_unknown'),
    signalledAt,
    dueAt,
    storedAt: storedAt(order, endedAt),
    endedAt,
    lateFrom,
    isLate,
    movedAt,
    urgency: trouble === null ? bad : 0,
    // The latest that ended comes first.
    since: endedAt === null ? ((isLate && trouble === null ? dueAt : null) ?? signalledAt) : -endedAt,
    text: [order.serviceOrderId, order.callOutCode, order.providerOrderId, order.locationId].join('\n').toLowerCase(),
  };
}

/** Compares two tickets: first those that need a person, then the late, then the oldest. */
export function byUrgency(a: Ticket, b: Ticket): number {
  return a.urgency - b.urgency || a.since - b.since || (a.id < b.id ? -1 : Number(a.id > b.id));
}

function troubleOf(column: ColumnName, { needsOperator, placement, endedAt }: BoardOrder): Trouble | null {
  if (column === 'failed') return 'failed';
  if (endedAt !== null) return null;
  if (needsOperator) return 'in_doubt';
  return placement === 'held' ? 'held' : null;
}

function storedAt({ memberState, updatedAt }: BoardOrder, endedAt: number | null): number | null {
  if (memberState === 'ready_for_pickup') return instant(updatedAt);
  return memberState === 'picked_up' || memberState === 'delivered' ? endedAt : null;
}

function instant(time: string | null): number | null {
  return time === null ? null : Date.parse(time);
}
