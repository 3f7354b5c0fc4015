import { z } from 'zod';

/**
 * The life of an order, in one table that the code, the SQL and the docs follow. An event moves an order only if the
 * event's rank is higher. So the status is the maximum of all events, whatever their order of arrival. Ranks are
 * stored. They are ten apart, so that a new step fits between two. A process of the previous version treats an unknown
 * rank as the highest known step below it.
 */
export const LIFECYCLE = [
  { rank: 0, status: null, pickup: 'placed', delivery: 'placed' },
  { rank: 10, status: null, pickup: 'sent', delivery: 'sent' },
  { rank: 20, status: 'received', pickup: 'confirmed', delivery: 'confirmed' },
  { rank: 30, status: 'in_progress', pickup: 'preparing', delivery: 'preparing' },
  { rank: 40, status: 'ready', pickup: 'ready_for_pickup', delivery: 'ready_for_delivery' },
  { rank: 50, status: 'en_route', pickup: 'ready_for_pickup', delivery: 'out_for_delivery' },
  { rank: 60, status: 'completed', pickup: 'picked_up', delivery: 'delivered' },
  { rank: 70, status: 'failed', pickup: 'failed', delivery: 'failed' },
  { rank: 80, status: 'cancelled', pickup: 'cancelled', delivery: 'cancelled' },
] as const;

export type Step = (typeof LIFECYCLE)[number];

export const FulfillmentType = z.enum(['pickup', 'delivery']);
export type FulfillmentType = z.infer<typeof FulfillmentType>;

export const STATUSES = LIFECYCLE.flatMap((step) => (step.status === null ? [] : [step.status]));
/** Has no zod id, because a provider's copy of this file shares our zod, and zod refuses the same id twice. */
export const Status = z.enum(STATUSES).meta({ description: 'What the POS reported.' });
export type Status = z.infer<typeof Status>;
/** A status in the history. It is any text, because a newer version may have written it. */
export const RecordedStatus = z.string().meta({ description: 'A `Status`, or one of a newer version.' });

export const MEMBER_STATES = [...new Set(LIFECYCLE.flatMap((step) => [step.pickup, step.delivery]))];
export const MemberState = z.enum(MEMBER_STATES).meta({ description: 'What the member sees.' });
export type MemberState = z.infer<typeof MemberState>;

/** The rank of a new order row. */
export const RANK_PLACED = LIFECYCLE[0].rank;
/** The rank of an order whose ticket is at the POS. */
export const RANK_SENT = LIFECYCLE[1].rank;
/** From this rank on, the POS is expected to report nothing more. */
export const RANK_END = rankOf('completed');
/** The rank of a cancelled order, the highest. */
export const RANK_CANCELLED = rankOf('cancelled');
/** From this rank on, an order has failed or is cancelled. */
export const RANK_FAILED = rankOf('failed');

export function rankOf(status: Status): number {
  const step = LIFECYCLE.find((each) => each.status === status);
  if (step === undefined) throw new RangeError(`no step of an order's life is called ${status}`);
  return step.rank;
}

export function statusAt(rank: number): Status | null {
  return stepAt(rank).status;
}

/** @param fulfillment null for an order that was never read: `placed` and `failed` have the same name in both types */
export function memberStateAt(rank: number, fulfillment: FulfillmentType | null): MemberState {
  return stepAt(rank)[fulfillment ?? 'pickup'];
}

function stepAt(rank: number): Step {
  return LIFECYCLE.findLast((step) => step.rank <= rank) ?? LIFECYCLE[0];
}
