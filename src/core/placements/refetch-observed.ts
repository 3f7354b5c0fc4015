import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import type { RefetchOrder } from './refetch-order.ts';
import { isRefusal } from './refetch-unless-refused.ts';

/** Fetches the present order, and reports how that went. @throws what the fetch throws */
export async function refetchObserved(
  { refetch, observe }: { refetch: RefetchOrder; observe: Observe },
  serviceOrderId: string,
): Promise<ReadOrder | undefined> {
  const began = performance.now();
  const report = (outcome: Extract<Observed, { what: 'refetch' }>['outcome']): void =>
    observe({ what: 'refetch', serviceOrderId, outcome, milliseconds: performance.now() - began });
  try {
    const read = await refetch(serviceOrderId);
    report(read === undefined ? 'missing' : 'fetched');
    return read;
  } catch (error) {
    report(outcomeOf(error));
    throw error;
  }
}

/** An order that cannot be read is no failure of the platform, which has answered. */
function outcomeOf(error: unknown): Extract<Observed, { what: 'refetch' }>['outcome'] {
  if (error instanceof NeedsOperator) return isRefusal(error) ? 'NeedsOperator' : 'unreadable';
  return error instanceof GiveUp ? 'GiveUp' : 'TryAgain';
}
