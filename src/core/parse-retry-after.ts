/** Whoever asks for longer is asked again all the same: food that late is no use. */
const MAX_MS = 3_600_000;

/**
 * Reads a `Retry-After` header: seconds or an HTTP date (RFC 9110, section 10.2.3).
 * @returns milliseconds from now, or undefined where it says nothing
 */
export function parseRetryAfter(value: string | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(milliseconds, 0), MAX_MS);
}
