const CLOCK = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: 'longGeneric' });

/** Formats an instant to the minute in the reader's time zone, without the day. */
export function clockTime(at: string): string {
  return CLOCK.format(new Date(at));
}

const SHORT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** The same, with the day unless it is today. */
export function dayAndTime(at: string): string {
  return new Date(at).toDateString() === new Date().toDateString() ? clockTime(at) : SHORT.format(new Date(at));
}

/** Formats the beginning of a period that has not ended. */
export function soFar(at: string): string {
  return `${clockTime(at)}, so far`;
}

/** The name of the reader's time zone, such as `Central European Time`. */
export function zoneName(): string {
  return ZONE.formatToParts().find(({ type }) => type === 'timeZoneName')?.value ?? '';
}
