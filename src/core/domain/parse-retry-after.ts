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
