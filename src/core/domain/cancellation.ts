import { z } from 'zod';

/** The states of a cancel: its own, beside those of the placement and of the order. */
export const CANCELLATION_STATES = ['due', 'asked', 'in_doubt', 'by_phone', 'cancelled', 'refused'] as const;
export const CancellationState = z.enum(CANCELLATION_STATES).meta({
  description:
    'due: the POS is to be asked. asked: it will say in a webhook. in_doubt: its answer was lost. by_phone: only a ' +
    'person can cancel it. cancelled, refused: over. Another one with an end: nobody said before the order ended.',
});
export type CancellationState = z.infer<typeof CancellationState>;
