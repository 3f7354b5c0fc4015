import { z } from 'zod';

export const PLACEMENT_STATES = ['waiting', 'held', 'in_doubt', 'sent', 'failed'] as const;
export const PlacementState = z.enum(PLACEMENT_STATES).meta({
  id: 'PlacementState',
  description:
    'waiting: tried, or to be tried. held: nothing works until one of us mends something. in_doubt: the POS may have it. ' +
    'sent: the ticket is at the POS. failed: final, and the member was told.',
});
export type PlacementState = z.infer<typeof PlacementState>;

/** A placement that this process works on for as long as its lease holds. */
export type Claim = {
  serviceOrderId: string;
  leaseId: string;
  /** Unknown until the order was fetched for the first time. */
  locationId: string | null;
  /** Of the location; null while that is unknown or not configured. */
  integration: string | null;
  state: PlacementState;
  /** When it was due, to the microsecond: a later time in the row means that somebody made it due again meanwhile. */
  dueAt: string;
  problem: string | null;
  /** Tries in vain since the last success. */
  failures: number;
  /** Seconds since the first signal. */
  age: number;
  /** The deadline has passed. */
  late: boolean;
  /** Seconds since the last request to the POS ended. */
  sinceRequest: number | null;
  /** A call to the POS began and its process died before it ended. */
  callDied: boolean;
  /** Whose POS the last request for a ticket went to; see `posAccount`. */
  posAccount: string | null;
};

/** Longer than any call to a platform or a POS may take, and the longest a dead process holds an order up. */
export const LEASE_S = 30;
