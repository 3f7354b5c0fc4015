import type { MemberState } from './lifecycle.ts';
import type { PlacementState } from './placement.ts';

/** What says what a member was told. All of it is in whatever the operator API answers about an order. */
export type Told = {
  placement: PlacementState;
  /** The last state that was put into the outbox; null for none. */
  memberState: MemberState | null;
  /** Whether the order was ever read from the platform. */
  isRead: boolean;
  /** Whether the topic still lacks a message; undefined where that was not looked up. */
  isWaiting?: boolean;
};

/**
 * Says in sentences what an order's member has been told. The board, the order's page, the operator API, the command line
 * and the documents all say it in these words.
 */
export function memberNotified({ placement, memberState, isRead, isWaiting = false }: Told): string {
  if (memberState === null) return 'Its member was told nothing.';
  const sentences = [
    `Its member was told ${IN_WORDS[memberState] ?? `that it is ${memberState.replaceAll('_', ' ')}`}.`,
  ];
  if (isWaiting) sentences.push('The topic does not have the last message yet.');
  if (memberState === 'failed' && !isRead && placement !== 'failed') sentences.push('It has begun again since.');
  if (memberState !== 'failed' && placement === 'failed') {
    sentences.push('That it could not be placed was not told: the order had gone on already.');
  }
  return sentences.join(' ');
}

const IN_WORDS: Partial<Record<MemberState, string>> = {
  placed: 'that it was placed',
  sent: 'that it was sent to the restaurant',
  picked_up: 'that it was picked up',
  delivered: 'that it was delivered',
  failed: 'that it failed',
  cancelled: 'that it was cancelled',
};
