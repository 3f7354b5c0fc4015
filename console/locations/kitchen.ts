import type { Tone } from '../parts/tones.ts';
import type { Kitchen } from '../wire.ts';
import { personName } from '../../src/core/domain/describe-action.ts';

export const EXTRA_MINUTES = ['10', '20', '30', '45', '60'] as const;

export const KITCHEN_TONES: Record<Kitchen['state'], Tone> = {
  open: 'good',
  busy: 'warn',
  closed: 'warn',
  unreachable: 'bad',
};

/** Whether a kitchen takes orders, in a few words. */
export function kitchenInShort({ state, extraMinutes }: Pick<Kitchen, 'state' | 'extraMinutes'>): string {
  return extraMinutes === null ? state : `${state}, ${extraMinutes} minutes more`;
}

/** Who said it, in words that follow a comma. */
export function saidBy({ source, state, by }: Pick<Kitchen, 'source' | 'state' | 'by'>): string {
  if (source === 'operator') return `as ${personName(by ?? 'an operator')} said`;
  if (source === 'pos') return 'as its POS reported';
  return state === 'unreachable' ? 'because its POS does not answer, or answers with errors' : '';
}
