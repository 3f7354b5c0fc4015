import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';

/** Describes an error safely. Our own errors have safe messages; any other may hold a member's data or a credential. */
export function describeError(error: unknown): string {
  if (error instanceof TryAgain || error instanceof NeedsOperator || error instanceof GiveUp) return error.message;
  return `unexpected ${error instanceof Error ? error.name : typeof error}`;
}
