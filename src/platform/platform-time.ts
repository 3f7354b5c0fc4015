import { MappingError } from './mapping-error.ts';

/** Years that a time of an order may have. What lies outside was read in the wrong unit. */
const FIRST_MS = Date.UTC(2000);
const LAST_MS = Date.UTC(2100);

/**
 * Reads a time without a zone, such as "2026-11-21T18:00" or "2026-11-21 18:00:00", by the clocks of a zone. One with an
 * offset is the instant that it says. Of an hour that the clocks show twice it is the first, of one that they leave out
 * the one after.
 * @param zone an IANA name, such as "Europe/Berlin"
 * @returns RFC 3339 with the offset
 * @throws MappingError
 */
export function timeInZone(time: string, zone: string, field?: string): string {
  const text = time.trim();
  // A date alone would be midnight.
  if (!/\d[t ]\d\d/i.test(text)) throw new MappingError('time_unreadable', field);
  let zoned: Temporal.ZonedDateTime;
  try {
    zoned = hasOffset(text)
      ? Temporal.Instant.from(text).toZonedDateTimeISO(zone)
      : Temporal.PlainDateTime.from(text).toZonedDateTime(zone);
  } catch {
    throw new MappingError(isZone(zone) ? 'time_unreadable' : 'zone_unknown', field);
  }
  return zoned.toString({ timeZoneName: 'never', smallestUnit: 'second' });
}

/**
 * Reads a count of seconds or milliseconds since 1970, as a number or as text.
 * @returns RFC 3339 in UTC
 * @throws MappingError also for a time before 2000 or after 2100: then the unit is the other one
 */
export function timeSinceEpoch(count: number | string, unit: 's' | 'ms', field?: string): string {
  const milliseconds = Number(count) * (unit === 's' ? 1000 : 1);
  if (count === '' || !(milliseconds >= FIRST_MS && milliseconds < LAST_MS)) {
    throw new MappingError('time_unreadable', field);
  }
  return new Date(milliseconds).toISOString();
}

function hasOffset(text: string): boolean {
  // Behind the date, which has hyphens of its own.
  return /(?:z|[+-]\d\d(?::?\d\d)?)$/i.test(text.slice(text.search(/[t ]/i)));
}

function isZone(zone: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone);
    return true;
  } catch {
    return false;
  }
}
