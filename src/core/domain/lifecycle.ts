import { z } from 'zod';

/**
 * The life of an order, in one table. The code, the SQL and the README all follow it.
 * An event moves an order exactly when its rank is higher than the order's, so an order's status is the maximum of
 * all it was told: a join, whatever the order of arrival.
 */
export const LIFECYCLE = [
  { rank: 0, status: null, pickup: 'placed', delivery: 'placed' },
  { rank: 1, status: null, pickup: 'sent', delivery: 'sent' },
  { rank: 2, status: 'received', pickup: 'confirmed', delivery: 'confirmed' },
  { rank: 3, status: 'in_progress', pickup: 'preparing', delivery: 'preparing' },
  { rank: 4, status: 'ready', pickup: 'ready_for_pickup', delivery: 'ready_for_delivery' },
  { rank: 5, status: 'en_route', pickup: 'ready_for_pickup', delivery: 'out_for_delivery' },
  { rank: 6, status: 'completed', pickup: 'picked_up', delivery: 'delivered' },
  { rank: 7, status: 'failed', pickup: 'failed', delivery: 'failed' },
  { rank: 8, status: 'cancelled', pickup: 'cancelled', delivery: 'cancelled' },
] as const;

type Step = (typeof LIFECYCLE)[number];

export const FulfillmentType = z.enum(['pickup', 'delivery']);
export type FulfillmentType = z.infer<typeof FulfillmentType>;

export const STATUSES = LIFECYCLE.flatMap((step) => (step.status === null ? [] : [step.status]));
export const Status = z.enum(STATUSES).meta({ id: 'Status', description: 'What the POS reported.' });
export type Status = z.infer<typeof Status>;

export const MEMBER_STATES = [...new Set(LIFECYCLE.flatMap((step) => [step.pickup, step.delivery]))];
export const MemberState = z.enum(MEMBER_STATES).meta({ id: 'MemberState', description: 'What the member sees.' });
export type MemberState = z.infer<typeof MemberState>;

/** The order's row exists. */
export const RANK_PLACED = 0;
/** The ticket is at the POS. */
export const RANK_SENT = 1;
/** From here on nothing more is expected of the POS. */
export const RANK_END = rankOf('completed');

export function rankOf(status: Status): number {
  return LIFECYCLE.findIndex((step) => step.status === status);
}

export function statusAt(rank: number): Status | null {
  return stepAt(rank).status;
}

export function memberStateAt(rank: number, fulfillment: FulfillmentType): MemberState {
  return stepAt(rank)[fulfillment];
}

function stepAt(rank: number): Step {
  const step = LIFECYCLE[rank];
  if (step === undefined) throw new RangeError(`no step of an order's life has rank ${rank}`);
  return step;
}
