import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';

/**
 * Judges whether the POS may have taken the order all the same. Where a repeat is harmless the provider is believed.
 * Otherwise only a proven refusal says that there is no ticket: a connection never made, or a 4xx. There are POS systems
 * that take the order and answer 503, and gateways that do it for them.
 */
export function perhapsTaken(error: unknown, { deduplicates }: { deduplicates: boolean }): boolean {
  const isRefusal = error instanceof GiveUp || error instanceof NeedsOperator;
  if (!isRefusal && !(error instanceof TryAgain && !error.sent)) return true;
  // guard: unsure-503
  if (deduplicates || error.httpStatus === undefined) return false;
  // 408: the request came late, or not at all. An error of ours that reads a documented refusal out of a 2xx counts.
  const { httpStatus } = error;
  return httpStatus >= 500 || httpStatus === 408 || (!isRefusal && httpStatus < 400);
}
