import type { ListedLocation } from '../wire.ts';

/** How long a pause lasts: minutes, `morning`, or empty until somebody resumes it. */
export const PAUSES = [
  ['30', 'for 30 minutes'],
  ['morning', 'until 8:00 in the morning there'],
  ['', 'until somebody resumes it'],
] as const;

const MORNING_HOUR = 8;

/** The body of the request that pauses a location. */
export function pauseOf(
  length: string,
  reason: string,
  { timeZone }: Pick<ListedLocation, 'timeZone'>,
  now: number,
): { minutes?: number; until?: string; reason?: string } {
  return {
    ...(length === 'morning' && { until: nextMorning(now, timeZone ?? undefined) }),
    ...(/^\d+$/.test(length) && { minutes: Number(length) }),
    ...(reason.trim() !== '' && { reason: reason.trim() }),
  };
}

/** The next eight in the morning in a time zone, or in that of the browser. */
function nextMorning(now: number, timeZone: string | undefined): string {
  const today = new Date(wallClock(now, timeZone));
  const days = today.getUTCHours() < MORNING_HOUR ? 0 : 1;
  const morning = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() + days, MORNING_HOUR);
  const offset = (at: number): number => wallClock(at, timeZone) - at;
  // The clock may be changed in the night.
  return new Date(morning - offset(morning - offset(now))).toISOString();
}

/** The local date and time in a time zone, as if it were in UTC. */
function wallClock(at: number, timeZone: string | undefined): number {
  const format = new Intl.DateTimeFormat('en', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts as Record<string, number>;
  return Date.UTC(year, month - 1, day, hour, minute);
}

/** Whether new orders are sent to the POS. */
export function stateOfOrders({
  pausedAt,
  reconnectNeededAt,
}: Pick<ListedLocation, 'pausedAt' | 'reconnectNeededAt'>): 'taking orders' | 'paused' | 'access ended' {
  if (pausedAt !== null) return 'paused';
  return reconnectNeededAt === null ? 'taking orders' : 'access ended';
}

/** Who paused a location. A pause of its POS always has an end, and no name. */
export function pausedBy({ pausedBy, pausedUntil }: Pick<ListedLocation, 'pausedBy' | 'pausedUntil'>): string {
  return pausedBy ?? (pausedUntil === null ? 'an operator' : 'its POS');
}
