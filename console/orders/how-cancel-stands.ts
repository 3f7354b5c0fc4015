import { printable } from '../../src/observe/terminal-text.ts';
import type { ShownOrder } from '../wire.ts';
import { locationName } from '../parts/names.ts';
import { words } from '../parts/tones.ts';
import { helpWith } from '../../src/core/domain/explain-cause.ts';
import type { Standing } from './what-to-do.ts';

export type CancelStanding = Pick<Standing, 'tone' | 'sentence' | 'problem' | 'toDo' | 'advice' | 'nextAt'> & {
  /** True if an operator can request the cancellation, for the first time or again. */
  canCancel: boolean;
  /** True if an operator may enter the restaurant's answer. */
  canConclude: boolean;
};

/** @returns undefined if no cancellation was requested, or the order is cancelled */
export function howCancelStands({ cancellation, order, posIds }: ShownOrder): CancelStanding | undefined {
  if (cancellation === null || cancellation.state === 'cancelled') return undefined;
  const { state, problem, cause, underWay, nextAttemptAt } = cancellation;
  const isOver = order !== null && order.endedAt !== null;
  const about = {
    problem,
    toDo: helpWith(cause, { locationId: order?.locationId ?? null, integration: order?.integration ?? null }),
    canCancel: !isOver && !underWay && state !== 'asked' && cause?.code !== 'pos_cannot_cancel',
    // A refusal without a cause is the restaurant's answer already.
    canConclude: !isOver && !underWay && state !== 'due' && (state !== 'refused' || cause !== null),
    ...(!underWay && nextAttemptAt !== null && state === 'due' && { nextAt: nextAttemptAt }),
  };
  const posId = order?.providerOrderId ?? posIds[0]?.providerOrderId;
  const ticket = posId === undefined ? 'ticket id unknown' : `ticket ${printable(posId)}`;
  const saying: Record<typeof state, Pick<Standing, 'tone' | 'sentence' | 'advice'>> = {
    due: problem === null ? { tone: 'busy', sentence: 'The order is being cancelled', advice: '' } : NOT_YET,
    asked: {
      tone: 'busy',
      sentence: 'The cancellation was sent to the POS',
      advice: 'The POS has not confirmed it yet.',
    },
    in_doubt: {
      tone: 'warn',
      sentence: 'It is unknown whether the POS cancelled the order',
      advice: `If the POS can be queried, this is resolved automatically. You can also check the POS: ${ticket}.`,
    },
    by_phone: {
      tone: 'bad',
      sentence: `Cancel ${order?.callOutCode ?? 'the order'} by phone: ${order?.locationId ? locationName(order.locationId) : 'its location'}`,
      advice: `Nothing more happens automatically. At the POS: ${ticket}.`,
    },
    refused: isOver
      ? { tone: 'plain', sentence: `Too late to cancel: the order ${endOf(order)}`, advice: '' }
      : { tone: 'warn', sentence: 'The order was not cancelled', advice: 'The order continues.' },
  };
  return { ...about, ...saying[state] };
}

function endOf({ memberState }: NonNullable<ShownOrder['order']>): string {
  if (memberState === 'picked_up' || memberState === 'delivered') return `was ${words(memberState)}`;
  return memberState === 'failed' ? 'failed' : 'has ended';
}

const NOT_YET = { tone: 'warn', sentence: 'The order could not be cancelled yet', advice: '' } as const;

/** True if the order is open and no cancellation was requested. */
export function canBeCancelled({ cancellation, order }: ShownOrder): boolean {
  return cancellation === null && order !== null && order.endedAt === null;
}

/** Explains the consequences of a cancellation. @param posCancels false if the POS cannot be asked to cancel */
export function cancelMeans({ placement, posIds, cancellation }: ShownOrder, posCancels = true): string {
  if (placement.state !== 'sent' && placement.state !== 'in_doubt') {
    return 'The order was not sent yet. It is withdrawn, and the member is notified that it is cancelled.';
  }
  const at =
    posIds.length === 0 ? '' : ` as ${posIds.map(({ providerOrderId }) => printable(providerOrderId)).join(', ')}`;
  const mayHaveBeenAsked = cancellation !== null && ['asked', 'in_doubt', 'by_phone'].includes(cancellation.state);
  const again = mayHaveBeenAsked ? ' The POS may already have the request: this sends it again.' : '';
  const has = `The POS ${placement.state === 'sent' ? `has the order${at}` : 'has or may have the order'}`;
  return posCancels
    ? `${has}. The cancellation is sent there. The member is notified once the POS confirms it. The POS may refuse, for example when the food is ready.${again}`
    : `${has}, but cannot be asked to cancel it: nothing is sent there. Telephone the restaurant, then enter its answer here. The member is notified of that answer.`;
}
