import { RANK_CANCELLED, RANK_FAILED } from '../domain/lifecycle.ts';
import type { ReasonCode } from '../domain/reason-code.ts';

const MEMBER: ReasonCode = 'member_cancelled';
const RESTAURANT: ReasonCode = 'restaurant_cancelled';
const OTHER: ReasonCode = 'other';

/** SQL of who wanted an order `o` cancelled: whoever asked us to, or else the restaurant. */
const CANCELLED_BY = `CASE WHEN o.cancellation = 'requested' AND (
    SELECT c.asked_by FROM cancellations c WHERE c.service_order_id = o.service_order_id) = 'platform'
  THEN '${MEMBER}' ELSE '${RESTAURANT}' END`;

/**
 * SQL of why an order `o` failed or was cancelled, as a code: never without one, whatever the POS said. A POS that confirms
 * what the member wanted may call it the restaurant's.
 * @param rank SQL of the rank that it is asked for
 * @param own SQL of the code that came with it, where that is not the order's
 */
export const reasonCodeAt = (rank: string, own = 'NULL'): string => `CASE
  WHEN ${rank} < ${RANK_FAILED} THEN NULL
  WHEN ${rank} < ${RANK_CANCELLED} THEN coalesce(${own}, o.reason_code, '${OTHER}')
  ELSE coalesce(nullif(coalesce(${own}, o.reason_code), '${RESTAURANT}'), ${CANCELLED_BY}) END`;
