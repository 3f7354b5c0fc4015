import { z } from 'zod';

export const PLACEMENT_STATES = ['waiting', 'held', 'in_doubt', 'sent', 'failed', 'withdrawn'] as const;
export const PlacementState = z.enum(PLACEMENT_STATES).meta({
  description:
    'waiting: will be tried, or tried again. held: an operator must fix something first. in_doubt: the POS may have it. ' +
    'sent: the ticket is at the POS. failed: final; only a placement without an `order`, which was never read, can start ' +
    'again. withdrawn: cancelled before it was sent, or skipped by the mapper.',
});
export type PlacementState = z.infer<typeof PlacementState>;

/** What can happen to an order besides its next attempt. */
export const HAPPENINGS = ['cancelled', 'changed', 'moved', 'late', 'reported'] as const;
type Happening = (typeof HAPPENINGS)[number];
/** What becomes of it then. */
export const CONSEQUENCES = {
  withdrawn: 'The order is withdrawn.',
  replaced: 'The new order takes its place.',
  fails: 'The order fails.',
  deferred: 'The platform is asked again after the doubt.',
  cancelled: 'The POS is asked to cancel the order.',
  'called off': 'The POS is asked to cancel the order, which then fails.',
  sent: 'The order is sent.',
  shown: 'Operators see the difference.',
  conflict: 'Operators are told of the conflict.',
  nothing: 'Nothing.',
} as const;

/**
 * The life of a placement: what follows in each state if the platform cancels the order, changes it, or moves it to
 * another location; if its deadline passes; or if its POS reports it.
 */
export const PLACEMENT_LIFE: Readonly<Record<PlacementState, Readonly<Record<Happening, keyof typeof CONSEQUENCES>>>> =
  {
    waiting: { cancelled: 'withdrawn', changed: 'replaced', moved: 'replaced', late: 'fails', reported: 'sent' },
    held: { cancelled: 'withdrawn', changed: 'replaced', moved: 'replaced', late: 'fails', reported: 'sent' },
    in_doubt: { cancelled: 'cancelled', changed: 'deferred', moved: 'deferred', late: 'called off', reported: 'sent' },
    sent: { cancelled: 'cancelled', changed: 'shown', moved: 'shown', late: 'nothing', reported: 'nothing' },
    failed: { cancelled: 'nothing', changed: 'nothing', moved: 'nothing', late: 'nothing', reported: 'conflict' },
    withdrawn: { cancelled: 'nothing', changed: 'nothing', moved: 'nothing', late: 'nothing', reported: 'conflict' },
  };

/** A placement that this process works on until its lease ends. */
export type Claim = {
  serviceOrderId: string;
  leaseId: string;
  /** Null until the order was fetched for the first time. */
  locationId: string | null;
  /** The location's integration; null if it is unknown or not configured. */
  integration: string | null;
  state: PlacementState;
  /** When it was due, to the microsecond. A later time in the row means that it has become due again since then. */
  dueAt: string;
  problem: string | null;
  failures: number;
  /** Seconds since the first signal. */
  age: number;
  late: boolean;
  /** Seconds since the last request to the POS ended. Null if none has ended. */
  sinceRequest: number | null;
  /** True if a call to the POS began and its process died before the end. */
  callDied: boolean;
  /** True for a late signal about a past order. Its placement is gone. */
  isPast: boolean;
  /** The account that the last request for a ticket went to, see `posAccount`. Null if there was no request. */
  posAccount: string | null;
};

/** Seconds for which we try to cancel an order at its POS. Then a person must telephone before the food is cooked. */
export const CANCEL_WITHIN_S = 600;

/** Seconds of a claim's lease, which is longer than any call to a platform. For a call to a POS see `attemptLease`. */
export const LEASE_S = 30;

export const CANCELLATION_STATES = ['due', 'asked', 'in_doubt', 'by_phone', 'cancelled', 'refused'] as const;
export const CancellationState = z.enum(CANCELLATION_STATES).meta({
  description:
    'due: the POS will be asked. asked: the POS will report it in a webhook. in_doubt: its answer was lost. by_phone: ' +
    'only a person can cancel the order. cancelled, refused: final. Other states with `finishedAt`: the order ended.',
});
export type CancellationState = z.infer<typeof CancellationState>;
