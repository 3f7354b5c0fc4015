import { z } from 'zod';
import { storable } from './cause-text.ts';
import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';
import { PlacementCause, type Why } from './placement-cause.ts';
import { Id } from './order.ts';
import { ReasonCode } from './reason-code.ts';

/**
 * Describes an error safely, in words that Postgres can store: a provider may repeat a POS's. Our own errors have safe
 * messages; any other may hold a member's data or a credential.
 */
export function describeError(error: unknown): string {
  if (error instanceof TryAgain || error instanceof NeedsOperator || error instanceof GiveUp)
    return storable(error.message);
  return storable(`unexpected ${error instanceof Error ? error.name : typeof error}`);
}

/** Describes an error for its placement: its sentence, and its cause or, without one, the cause of its kind. */
export function classifyError(error: unknown): Why {
  return { problem: describeError(error), cause: ownCause(error) ?? causeByKind(error) };
}

/** Reads the error's own cause. A provider's package may put anything there, and Postgres must be able to store it. */
function ownCause(error: unknown): PlacementCause | undefined {
  return error instanceof Error ? PlacementCause.safeParse(error.cause).data : undefined;
}

function causeByKind(error: unknown): PlacementCause {
  const { httpStatus } = (error ?? {}) as { httpStatus?: number };
  if (error instanceof GiveUp) return { code: 'pos_rejected_order', httpStatus };
  if (error instanceof NeedsOperator) {
    return { code: httpStatus === 401 || httpStatus === 403 ? 'pos_refused_us' : 'pos_set_up_wrong', httpStatus };
  }
  if (!(error instanceof TryAgain)) return { code: 'unexpected_error' };
  if (httpStatus === 429) return { code: 'pos_busy', httpStatus };
  if (httpStatus !== undefined) return { code: 'pos_failing', httpStatus };
  // If we keep to a vendor's limit ourselves, there is a wait and no status.
  if (error.retryAfterMs !== undefined) return { code: 'pos_busy' };
  return { code: error.sent ? 'pos_silent' : 'pos_unreachable' };
}

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

/** The longest wait. Food that late is no use, so we ask earlier. */
const MAX_MS = 3_600_000;

/**
 * Parses `Retry-After`: seconds or an HTTP date (RFC 9110, section 10.2.3). A time is compared with the answer's own
 * `Date`, since the two clocks may differ.
 * @param resetHeader the header, if a vendor has one, that says the same in seconds since the Unix epoch. It is read where
 *   `Retry-After` is missing or not valid
 * @returns milliseconds from now, or undefined without a valid value
 */
export function parseRetryAfter(headers: Pick<Headers, 'get'> | undefined, resetHeader?: string): number | undefined {
  const answeredAt = Date.parse(headers?.get('date') ?? '');
  const until = (time: number): number => time - (Number.isNaN(answeredAt) ? Date.now() : answeredAt);
  const wait = headers?.get('retry-after') ?? '';
  const reset = (resetHeader && headers?.get(resetHeader)) ?? '';
  const milliseconds = [
    /^\d+$/.test(wait) ? Number(wait) * 1000 : until(Date.parse(wait)),
    /^\d+$/.test(reset) ? until(Number(reset) * 1000) : Number.NaN,
  ].find((each) => !Number.isNaN(each));
  return milliseconds === undefined ? undefined : Math.min(Math.max(milliseconds, 0), MAX_MS);
}

/** Why a POS refuses, for programs. */
export type RefusedFor = { reasonCode?: ReasonCode | undefined; itemIds?: readonly string[] | undefined };

const ItemIds = z.array(Id).max(100);

/** Reads what a refusal says to programs. A provider's package may put anything there. */
export function refusedFor(error: unknown): RefusedFor {
  if (!(error instanceof GiveUp)) return {};
  return { reasonCode: ReasonCode.safeParse(error.reasonCode).data, itemIds: ItemIds.safeParse(error.itemIds).data };
}
