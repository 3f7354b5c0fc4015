import { MINUTE_MS, fromLocalTime, toLocalTime } from '../parts/local-time.ts';
import type { ListedLocation } from '../wire.ts';
import { personName } from '../../src/core/domain/describe-action.ts';

export type Place = Pick<ListedLocation, 'timeZone'> & Partial<Pick<ListedLocation, 'pausedAt' | 'pausedUntil'>>;

/** How long something lasts: `for` is minutes, `morning`, `own`, or empty until somebody ends it. */
export type Length = { for: string; until: string };

const MORNING = '08:00';
const HOUR_MS = 60 * MINUTE_MS;
const zoneOf = ({ timeZone }: Place): string => timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** As a pause is, but to the end of its last minute; else the next half hour. An own time begins with the next full hour but one. @param now in milliseconds */
export function firstLength([place = { timeZone: null }]: readonly Place[], now: number): Length {
  const own = { for: '30', until: toLocalTime(Math.ceil(now / HOUR_MS + 1) * HOUR_MS, zoneOf(place)) };
  if (!place.pausedAt) return own;
  const end = place.pausedUntil && Math.ceil(Date.parse(place.pausedUntil) / MINUTE_MS) * MINUTE_MS;
  return end ? { for: 'own', until: toLocalTime(end, zoneOf(place)) } : { ...own, for: '' };
}

/** Whose clock is meant, in words. */
export function clockOf(places: readonly Place[]): string {
  const zones = new Set(places.map(zoneOf));
  return zones.size === 1 ? String([...zones][0]) : "each location's own time";
}

/** The lengths to choose from. @param ends such as `resumes it` */
export function lengthsOf(places: readonly Place[], ends: string): readonly (readonly [value: string, name: string])[] {
  const from = places.some(({ pausedAt }) => pausedAt) ? ' from now' : '';
  return [
    ['30', `for 30 minutes${from}`],
    ['60', `for 1 hour${from}`],
    ['120', `for 2 hours${from}`],
    ['morning', `until ${MORNING} in the morning (${clockOf(places)})`],
    ['own', `until another time (${clockOf(places)})`],
    ['', `until somebody ${ends}`],
  ];
}

/** The body of the request that pauses a location or makes it busy. An entered time is that minute exactly. */
export function pauseOf(
  length: Length,
  reason: string,
  place: Place,
  now: number,
): { minutes?: number; until?: string; reason?: string } {
  const zone = zoneOf(place);
  return {
    ...(length.for === 'morning' && { until: nextMorning(now, zone) }),
    ...(length.for === 'own' && { until: fromLocalTime(length.until, zone) }),
    ...(/^\d+$/.test(length.for) && { minutes: Number(length.for) }),
    ...(reason.trim() !== '' && { reason: reason.trim() }),
  };
}

/** What is wrong with an entered time. */
export function problemOf({ until }: Length, places: readonly Place[], now: number): string | undefined {
  if (until === '') return 'Enter a day and a time.';
  const isPast = places.some((place) => Date.parse(fromLocalTime(until, zoneOf(place))) <= now);
  return isPast ? 'This time is in the past. Enter a time in the future.' : undefined;
}

function nextMorning(now: number, zone: string): string {
  const [today = '', time = ''] = toLocalTime(now, zone).split('T');
  const day = new Date(today);
  if (time >= MORNING) day.setUTCDate(day.getUTCDate() + 1);
  return fromLocalTime(`${day.toISOString().slice(0, 10)}T${MORNING}`, zone);
}

type State = 'taking orders' | 'paused' | 'access ended' | 'failing';

/** Whether new orders reach the POS. */
export function stateOfOrders({
  pausedAt,
  reconnectNeededAt,
  open,
}: Pick<ListedLocation, 'pausedAt' | 'reconnectNeededAt' | 'open'>): State {
  if (pausedAt !== null) return 'paused';
  if (reconnectNeededAt !== null) return 'access ended';
  // A process of the previous version does not send it.
  return (open?.failing ?? null) === null ? 'taking orders' : 'failing';
}

type Paused = Pick<ListedLocation, 'pausedBy' | 'pausedUntil'>;

/** Whether its POS paused a location. Such a pause always has an end, and no name. */
export const isByPos = ({ pausedBy, pausedUntil }: Paused): boolean => pausedBy === null && pausedUntil !== null;

/** Who paused a location. */
export function pausedBy(paused: Paused): string {
  return personName(paused.pausedBy ?? (isByPos(paused) ? 'its POS' : 'an operator'));
}
