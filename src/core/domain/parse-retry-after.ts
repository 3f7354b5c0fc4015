/** The longest wait. Food that late is no use, so we ask earlier. */
const MAX_MS = 3_600_000;

/**
 * Parses `Retry-After`: seconds or an HTTP date (RFC 9110, section 10.2.3). A date is compared with the answer's own
 * `Date`, since the two clocks may differ.
 * @returns milliseconds from now, or undefined without a valid value
 */
export function parseRetryAfter(headers: Pick<Headers, 'get'> | undefined): number | undefined {
  const value = headers?.get('retry-after') ?? undefined;
  if (value === undefined) return undefined;
  const answeredAt = Date.parse(headers?.get('date') ?? '');
  const milliseconds = /^\d+$/.test(value)
    ? Number(value) * 1000
    : Date.parse(value) - (Number.isNaN(answeredAt) ? Date.now() : answeredAt);
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(milliseconds, 0), MAX_MS);
}
