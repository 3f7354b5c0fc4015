import { storable } from './cause-text.ts';
import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';

/**
 * Describes an error safely, in words that Postgres can store: a provider may repeat a POS's. Our own errors have safe
 * messages; any other may hold a member's data or a credential.
 */
export function describeError(error: unknown): string {
  if (error instanceof TryAgain || error instanceof NeedsOperator || error instanceof GiveUp)
    return storable(error.message);
  return storable(`unexpected ${error instanceof Error ? error.name : typeof error}`);
}
