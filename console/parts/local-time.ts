export const MINUTE_MS = 60_000;

/**
 * The local date and time of an instant, as an input of the type datetime-local has it. Empty if invalid.
 * @param timeZone by default the reader's
 */
export function toLocalTime(instant: string | number, timeZone?: string): string {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return '';
  // Sweden writes 2027-01-31 18:00.
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return format.format(date).replace(' ', 'T');
}

/** The instant of such a time, as RFC 3339 in UTC, which needs no encoding in an address. Empty if invalid. */
export function fromLocalTime(local: string, timeZone?: string): string {
  const shown = Date.parse(`${local}Z`);
  if (Number.isNaN(shown)) return '';
  const offsetAt = (at: number): number =>
    Date.parse(`${toLocalTime(at, timeZone)}Z`) - Math.floor(at / MINUTE_MS) * MINUTE_MS;
  // The clock may be changed before this time, so the offset is that of the result.
  return new Date(shown - offsetAt(shown - offsetAt(shown))).toISOString().replace(/\.000Z$/, 'Z');
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');

/** All countries by their two letters, and their names. A replaced code (DD) bears the name of the new one (DE). */
export function offeredCountries(): (readonly [code: string, name: string])[] {
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  return LETTERS.flatMap((one) => LETTERS.map((other) => one + other)).flatMap((code) => {
    const name = names.of(code);
    return name === undefined || new Intl.Locale(`und-${code}`).region !== code ? [] : [[code, name] as const];
  });
}

/** All time zones, and what is said of each, such as `Berlin, UTC+1`. */
export function offeredZones(): (readonly [zone: string, about: string])[] {
  return Intl.supportedValuesOf('timeZone').map((zone) => {
    const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'shortOffset' });
    const offset = format.formatToParts().find(({ type }) => type === 'timeZoneName')?.value ?? '';
    return [zone, `${zone.split('/').at(-1)?.replaceAll('_', ' ')}, ${offset.replace('GMT', 'UTC')}`] as const;
  });
}
