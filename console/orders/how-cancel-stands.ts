import type { ShownOrder } from '../wire.ts';
import { helpWith } from './help-with.ts';
import type { Standing } from './what-to-do.ts';

export type CancelStanding = Pick<Standing, 'tone' | 'sentence' | 'problem' | 'toDo' | 'advice' | 'nextAt'> & {
  /** The POS can be asked to cancel it, or asked again. */
  canCancel: boolean;
  /** Somebody may say what the restaurant said on the telephone. */
  canConclude: boolean;
};

/** @returns undefined if the order is not to be cancelled, or is */
export function howCancelStands({ cancellation, order, posIds }: ShownOrder): CancelStanding | undefined {
  if (cancellation === null || cancellation.state === 'cancelled') return undefined;
  const { state, problem, cause, underWay, nextAttemptAt } = cancellation;
  const isOver = order !== null && order.endedAt !== null;
  const about = {
    problem,
    toDo: helpWith(cause, { locationId: order?.locationId ?? null, integration: order?.integration ?? null }),
    canCancel: !isOver && !underWay && state !== 'asked',
    canConclude: !isOver && !underWay && state !== 'due',
    ...(!underWay && nextAttemptAt !== null && state === 'due' && { nextAt: nextAttemptAt }),
  };
  const posId = order?.providerOrderId ?? posIds[0]?.providerOrderId;
  const ticket = posId === undefined ? 'whose ticket we do not know' : `ticket ${posId}`;
  const saying: Record<typeof state, Pick<Standing, 'tone' | 'sentence' | 'advice'>> = {
    due: problem === null ? { tone: 'busy', sentence: 'It is being cancelled', advice: '' } : NOT_YET,
    asked: { tone: 'busy', sentence: 'The POS is asked to cancel it', advice: 'It has yet to say whether it does.' },
    in_doubt: {
      tone: 'warn',
      sentence: 'Nobody knows whether the POS cancelled it',
      advice: `It is found out by itself where the POS can be asked. You may look there: ${ticket}.`,
    },
    by_phone: {
      tone: 'bad',
      sentence: `Cancel it by phone: ${order?.locationId ?? 'its location'}, ${ticket}`,
      advice: 'Nothing more happens by itself.',
    },
    refused: { tone: 'warn', sentence: 'It was not cancelled', advice: isOver ? '' : 'The order goes on.' },
  };
  return { ...about, ...saying[state] };
}

const NOT_YET = { tone: 'warn', sentence: 'It could not be cancelled yet', advice: '' } as const;

/** True if nobody has asked to cancel it, and it goes on. */
export function canBeCancelled({ cancellation, order }: ShownOrder): boolean {
  return cancellation === null && order !== null && order.endedAt === null;
}

/** Explains what follows from asking for a cancel. */
export function cancelMeans({ placement, posIds, cancellation }: ShownOrder): string {
  if (placement.state !== 'sent' && placement.state !== 'in_doubt') {
    return 'It was not sent yet: it is withdrawn, and its member is told that it was cancelled.';
  }
  const at = posIds.length === 0 ? '' : ` as ${posIds.map(({ providerOrderId }) => providerOrderId).join(', ')}`;
  const mayHaveBeenAsked = cancellation !== null && ['asked', 'in_doubt', 'by_phone'].includes(cancellation.state);
  const again = mayHaveBeenAsked ? ' The POS may have been asked already: this asks it once more.' : '';
  return (
    `Its POS has it${placement.state === 'sent' ? at : ', or may have it'}, and is asked to cancel it. Its member is told that ` +
    `it is cancelled once the POS says so. It may refuse, such as when the food is made.${again}`
  );
}
