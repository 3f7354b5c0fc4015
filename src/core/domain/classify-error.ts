import { z } from 'zod';
import { storable } from './cause-text.ts';
import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';
import { PlacementCause, type Problem } from './placement-cause.ts';
import { Id } from './order.ts';
import { ReasonCode } from './reason-code.ts';

/**
 * Describes an error without member data and secrets. Only the messages of our own errors are used. `storable` cleans
 * them, because a provider may quote a POS in them. Any other message may hold a member's data or a credential.
 */
export function describeError(error: unknown): string {
  if (error instanceof TryAgain || error instanceof NeedsOperator || error instanceof GiveUp)
    return storable(error.message);
  return storable(`unexpected ${error instanceof Error ? error.name : typeof error}`);
}

/** Describes an error for its placement. If it has no cause of its own, its class and HTTP status decide the cause. */
export function classifyError(error: unknown): Problem {
  return { problem: describeError(error), cause: ownCause(error) ?? causeByKind(error) };
}

/** Reads the error's own cause. It is validated, because a provider's package may put any value there. */
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
  if (isLimited(error)) return { code: 'pos_busy' };
  return { code: error.sent ? 'pos_silent' : 'pos_unreachable' };
}

/**
 * Returns true if the POS may have taken the order despite the error: always if the error is not ours or has `sent:
 * true`. Otherwise only a failed connection or a 4xx proves that there is no ticket: some POS systems and gateways take
 * the order and answer 503.
 */
export function perhapsTaken(error: unknown): boolean {
  const isRefusal = error instanceof GiveUp || error instanceof NeedsOperator;
  if (!isRefusal && !(error instanceof TryAgain && !error.sent)) return true;
  // guard: unsure-503
  if (error.httpStatus === undefined) return false;
  // After a 408 the request may have arrived. A 2xx proves a refusal only if the provider found a documented one in it.
  const { httpStatus } = error;
  return httpStatus >= 500 || httpStatus === 408 || (!isRefusal && httpStatus < 400);
}

/** True if our own rate limiter allowed no request: its errors have a wait and no HTTP status. */
function isLimited(error: unknown): boolean {
  return error instanceof TryAgain && error.httpStatus === undefined && error.retryAfterMs !== undefined;
}

/** The outcome of a call that failed: `not_sent` if nothing was sent, so that nobody counts it as a silent POS. */
export function failedOutcome(error: unknown): string {
  // guard: not-sent
  if (isLimited(error) && !(error as TryAgain).sent) return 'not_sent';
  return error instanceof Error ? error.name : 'unknown';
}

/** True if the POS answered. False for a server error or no answer. Undefined if unknown, or if no request was made. */
export function isAnswer(error: unknown): boolean | undefined {
  if (error === undefined) return true;
  const { httpStatus } = (error ?? {}) as { httpStatus?: number };
  if (httpStatus !== undefined) return httpStatus < 500;
  if (error instanceof NeedsOperator || error instanceof GiveUp) return undefined;
  if (isLimited(error)) return undefined;
  return false;
}

/** The longest wait in milliseconds. After more than an hour the food is of no use. */
const MAX_MS = 3_600_000;

/**
 * Parses `Retry-After`: seconds or an HTTP date (RFC 9110, section 10.2.3). A fraction is rounded up. A date is compared
 * with the answer's own `Date`, because the two clocks may differ.
 * @param resetHeader a vendor's header with the end of the wait in seconds since the Unix epoch. It is read if
 *   `Retry-After` is missing or invalid
 * @returns milliseconds from now, or undefined if no header has a valid value
 */
export function parseRetryAfter(headers: Pick<Headers, 'get'> | undefined, resetHeader?: string): number | undefined {
  const answeredAt = Date.parse(headers?.get('date') ?? '');
  const until = (time: number): number => time - (Number.isNaN(answeredAt) ? Date.now() : answeredAt);
  const wait = headers?.get('retry-after') ?? '';
  const reset = (resetHeader && headers?.get(resetHeader)) ?? '';
  const milliseconds = [
    // `Date.parse` would read `-1` and `120.5` as years.
    /^\d+(\.\d+)?$/.test(wait) ? Math.ceil(Number(wait)) * 1000 : until(Date.parse(/^[A-Z]/i.test(wait) ? wait : '')),
    /^\d+$/.test(reset) ? until(Number(reset) * 1000) : Number.NaN,
  ].find((each) => !Number.isNaN(each));
  return milliseconds === undefined ? undefined : Math.min(Math.max(milliseconds, 0), MAX_MS);
}

/** Codes that tell a program why a POS refuses an order. */
export type RefusedFor = { reasonCode?: ReasonCode | undefined; itemIds?: readonly string[] | undefined };

const ItemIds = z.array(Id).max(100);

/** Reads a refusal's codes. They are validated, because a provider's package may put any value there. */
export function refusedFor(error: unknown): RefusedFor {
  if (!(error instanceof GiveUp)) return {};
  return { reasonCode: ReasonCode.safeParse(error.reasonCode).data, itemIds: ItemIds.safeParse(error.itemIds).data };
}
