import { dayAndTime } from '../parts/clock-time.ts';
import type { Attention } from '../wire.ts';
import { words } from '../parts/tones.ts';
import { inShort } from '../../src/core/domain/explain-cause.ts';
import { saysOf } from '../../src/core/domain/explain-failure.ts';
import type { Ticket } from './ticket-of.ts';

export type Wrong = {
  words: string;
  tone: 'bad' | 'warn';
  /** False if the problem may resolve automatically, or if a single need covers all orders with this problem. */
  needsPerson: boolean;
};

/** Facts from `attention`, by order id or location id. */
export type Elsewhere = {
  conflicts: ReadonlyMap<string, string>;
  byPhone: ReadonlySet<string>;
  /** When the last dropped webhook of the location arrived. */
  dropped: ReadonlyMap<string, number>;
  /** When the oldest ticket without a report was sent to the silent location. It has sent nothing since. */
  silent: ReadonlyMap<string, string>;
};

export function elsewhere(attention: Attention | undefined): Elsewhere {
  return {
    conflicts: new Map(attention?.conflicts.map(({ serviceOrderId, status }) => [serviceOrderId, words(status)])),
    byPhone: new Set(attention?.cancelByPhone.map(({ serviceOrderId }) => serviceOrderId)),
    dropped: new Map(
      attention?.dropped.map(({ locationId, lastReceivedAt }) => [locationId, Date.parse(lastReceivedAt)]),
    ),
    silent: new Map(attention?.silent.map(({ locationId, oldestSentAt }) => [locationId, oldestSentAt])),
  };
}

/** What is wrong with a ticket, in a few words; undefined if nothing is. */
export function wrongWith(ticket: Ticket, known: Elsewhere): Wrong | undefined {
  const { order, id, trouble, endedAt } = ticket;
  const why = inShort(order.cause);
  const conflict = known.conflicts.get(id);
  if (trouble === 'in_doubt') return { words: named('in doubt', why), tone: 'bad', needsPerson: true };
  if (known.byPhone.has(id)) return { words: 'cancel by phone', tone: 'bad', needsPerson: true };
  if (conflict !== undefined) return { words: `POS reported ${conflict}`, tone: 'bad', needsPerson: true };
  if (trouble === 'failed') return { words: why ?? failedBy(order), tone: 'bad', needsPerson: true };
  if (trouble === 'held') return { words: named('held', why), tone: 'warn', needsPerson: true };
  const tried = order.placement === 'in_doubt' ? 'in doubt' : 'retrying';
  if (trouble === 'unsent') return { words: named(tried, why), tone: 'bad', needsPerson: true };
  if (endedAt !== null) return undefined;
  if (order.change === 'not_applied' && order.needsOperator) {
    return { words: 'changed: tell the restaurant', tone: 'bad', needsPerson: true };
  }
  if (order.cancellation !== null)
    return { words: `cancel ${words(order.cancellation)}`, tone: 'warn', needsPerson: false };
  if (order.placement === 'held') return { words: named('held', why), tone: 'warn', needsPerson: false };
  if (order.placement === 'in_doubt' || (order.placement === 'waiting' && order.problem !== null)) {
    return { words: named(tried, why), tone: 'warn', needsPerson: false };
  }
  // A process of the previous version does not send it.
  const failure = (order as Partial<typeof order>).refreshFailure ?? undefined;
  if (failure) {
    const about = inShort(failure.cause) ?? saysOf(failure.problem) ?? undefined;
    return { words: named('not fetched again', about), tone: 'warn', needsPerson: false };
  }
  const unheard = mayHaveMissedStatus(ticket, known) ? 'its webhooks are dropped' : silence(ticket, known);
  return unheard === undefined ? undefined : { words: unheard, tone: 'warn', needsPerson: false };
}

/** Since when the POS of a ticket without a report has sent nothing, as the board and the location say it too. */
function silence({ order, column }: Ticket, { silent }: Elsewhere): string | undefined {
  const since = column === 'sent' ? silent.get(order.locationId ?? '') : undefined;
  return since && `no report since ${dayAndTime(since)}`;
}

/** True if a dropped webhook of its location may have reported the ticket's status. */
function mayHaveMissedStatus({ order, column }: Ticket, { dropped }: Elsewhere): boolean {
  const droppedAt = order.locationId === null ? undefined : dropped.get(order.locationId);
  return column === 'sent' && droppedAt !== undefined && droppedAt > Date.parse(order.updatedAt ?? order.signalledAt);
}

function failedBy({ placement }: Ticket['order']): string {
  return placement === 'failed' ? 'not placed' : 'failed at POS';
}

function named(state: string, why: string | undefined): string {
  return why === undefined ? state : `${state}: ${why}`;
}
