import { z } from 'zod';

export const PLACEMENT_STATES = ['waiting', 'held', 'in_doubt', 'sent', 'failed', 'withdrawn'] as const;
export const PlacementState = z.enum(PLACEMENT_STATES).meta({
  description:
    'waiting: tried, or to be tried. held: nothing works until one of us mends something. in_doubt: the POS may have it. ' +
    'sent: the ticket is at the POS. failed: final, but one without an `order` was never read, and can begin again. ' +
    'withdrawn: cancelled before it was sent.',
});
export type PlacementState = z.infer<typeof PlacementState>;

/** A placement that this process works on until its lease ends. */
export type Claim = {
  serviceOrderId: string;
  leaseId: string;
  /** Unknown until the order was fetched for the first time. */
  locationId: string | null;
  /** The location's integration; null if it is unknown or not configured. */
  integration: string | null;
  state: PlacementState;
  /** When it was due, to the microsecond. A later time in the row means that somebody made it due again meanwhile. */
  dueAt: string;
  problem: string | null;
  /** Failed tries since the last success. */
  failures: number;
  /** Seconds since the first signal. */
  age: number;
  /** True if the deadline has passed. */
  late: boolean;
  /** Seconds since the last request to the POS ended. */
  sinceRequest: number | null;
  /** True if a call to the POS began and its process died before the end. */
  callDied: boolean;
  /** The account that the last request for a ticket went to; see `posAccount`. */
  posAccount: string | null;
};

/**
 * Seconds for which a POS is asked to cancel an order. After that a person telephones, before the food is cooked rather
 * than after it.
 */
export const CANCEL_WITHIN_S = 600;

/** Seconds of a claim's lease: longer than any call to a platform. An attempt at a POS begins with `attemptLease`. */
export const LEASE_S = 30;

/** The states of a cancel: its own, beside those of the placement and of the order. */
export const CANCELLATION_STATES = ['due', 'asked', 'in_doubt', 'by_phone', 'cancelled', 'refused'] as const;
export const CancellationState = z.enum(CANCELLATION_STATES).meta({
  description:
    'due: the POS is to be asked. asked: it will say in a webhook. in_doubt: its answer was lost. by_phone: only a ' +
    'person can cancel it. cancelled, refused: over. Another one with an end: nobody said before the order ended.',
});
export type CancellationState = z.infer<typeof CancellationState>;
