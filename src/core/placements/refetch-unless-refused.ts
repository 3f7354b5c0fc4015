import { classifyError } from '../domain/classify-error.ts';
import { NeedsOperator, TryAgain } from '../domain/errors.ts';
import type { PlacementCode } from '../domain/placement-cause.ts';
import type { RefetchOrder } from './refetch-order.ts';

/** Orders refused one after the other from which the platform counts as refusing us. Fewer may be about those orders. */
const ORDERS = 3;
/** Interval of asking all the same. */
const ASK_EVERY_MS = 5_000;

/**
 * Spares a platform that refuses us, our token for one: one order asks now and then, and all others are refused as it was
 * until one has an answer. Held orders come back every half a minute, each of them.
 */
export function refetchUnlessRefused(refetch: RefetchOrder): RefetchOrder {
  const refused = new Set<string>();
  let refusal: NeedsOperator | undefined;
  let askedAt = -Infinity;
  return async (serviceOrderId) => {
    const isSpared = refused.size >= ORDERS && performance.now() - askedAt < ASK_EVERY_MS;
    if (isSpared && refusal !== undefined) throw refusal;
    askedAt = performance.now();
    try {
      const read = await refetch(serviceOrderId);
      refused.clear();
      return read;
    } catch (error) {
      if (isRefusal(error)) {
        refusal = error;
        if (refused.size < ORDERS) refused.add(serviceOrderId);
      } else if (!(error instanceof TryAgain)) {
        refused.clear();
      }
      throw error;
    }
  };
}

/** Causes that are no order's own. */
const ABOUT_ALL = new Set<PlacementCode>(['platform_refuses_us', 'platform_redirects', 'query_without_order']);

/** An order that cannot be read is no refusal: the platform has answered. */
export function isRefusal(error: unknown): error is NeedsOperator {
  const { code } = classifyError(error).cause;
  return error instanceof NeedsOperator && ABOUT_ALL.has(code);
}
