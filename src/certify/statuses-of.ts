import { LIFECYCLE, RANK_END, type FulfillmentType, type Status } from '../core/domain/lifecycle.ts';

/** The statuses that a member sees the order go through, to its good end: a pickup is never on its way. */
export function statusesOf(fulfillment: FulfillmentType): Status[] {
  return LIFECYCLE.flatMap((step, i) =>
    step.status !== null && step.rank <= RANK_END && step[fulfillment] !== LIFECYCLE[i - 1]?.[fulfillment]
      ? [step.status]
      : [],
  );
}
