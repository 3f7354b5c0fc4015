import type { MemberState } from './lifecycle.ts';
import type { PlacementState } from './placement.ts';

/** The facts that `memberNotified` needs. Every answer of the operator API about an order has them. */
type Facts = {
  placement: PlacementState;
  /** The last state that was put into the outbox, or null. */
  memberState: MemberState | null;
  /** Whether the order was ever read from the platform. */
  isRead: boolean;
  /** How many messages are not published yet. Undefined if the caller did not read this. */
  waiting?: number;
};

/**
 * Describes what an order's member was notified of. The board, the order's page, the operator API, the command line and
 * the documents use these sentences.
 */
export function memberNotified({ placement, memberState, isRead, waiting = 0 }: Facts): string {
  if (memberState === null) return 'The member was not notified.';
  const state = IN_WORDS[memberState] ?? `is ${memberState.replaceAll('_', ' ')}`;
  const sentences = [
    waiting === 0
      ? `The member was notified that the order ${state}.`
      : `The member was not yet notified that the order ${state}: ${waiting} ${waiting === 1 ? 'message waits' : 'messages wait'}.`,
  ];
  if (memberState === 'failed' && !isRead && placement !== 'failed')
    sentences.push('The order has started again since.');
  if (memberState !== 'failed' && placement === 'failed') {
    sentences.push('The failure of its placement was not reported, because the order had already progressed.');
  }
  return sentences.join(' ');
}

const IN_WORDS: Partial<Record<MemberState, string>> = {
  placed: 'was placed',
  sent: 'was sent to the restaurant',
  preparing: 'is being prepared',
  picked_up: 'was picked up',
  delivered: 'was delivered',
  failed: 'failed',
  cancelled: 'was cancelled',
};
