const CLOCK = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const HOUR = new Intl.DateTimeFormat(undefined, { hour: 'numeric' });

/** An instant to the minute, by the reader's clock, where the day goes without saying. */
export function clockTime(at: string): string {
  return CLOCK.format(new Date(at));
}

/** The same, where what began then is under way. */
export function soFar(at: string): string {
  return `${clockTime(at)}, so far`;
}

/** The same as short as it can be. */
export function shortTime(at: string): string {
  const date = new Date(at);
  return (date.getMinutes() === 0 ? HOUR : CLOCK).format(date);
}
