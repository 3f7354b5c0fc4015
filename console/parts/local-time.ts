/** The value of an `<input type="datetime-local">` for an instant, to the minute. Empty if invalid. */
export function toLocalTime(instant: string): string {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return '';
  const pad = (part: number): string => String(part).padStart(2, '0');
  const day = [date.getFullYear(), pad(date.getMonth() + 1), pad(date.getDate())].join('-');
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** The instant of such an input, as RFC 3339 in UTC, which needs no encoding in an address. Empty if invalid. */
export function fromLocalTime(local: string): string {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().replace(/\.000Z$/, 'Z');
}
