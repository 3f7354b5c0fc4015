import { locationName, NAMES } from '../parts/names.ts';
import { sum } from '../parts/series.ts';
import type { ListedLocation } from '../wire.ts';
import { errorShare, errorTone, failingTone, openShare, silence } from './assess-location.ts';
import { stateOfOrders } from './pause.ts';

export type LocationFilters = { text: string; group: string; integration: string; paused: string; by: string };

/** Filters and sorts locations: the worst first, or by name, silence, traffic or errors. */
export function findLocations(all: readonly ListedLocation[], filters: LocationFilters, now: number): ListedLocation[] {
  const wanted = filters.text.trim().toLocaleLowerCase();
  return all
    .filter(
      ({ locationId, name, groups, integration, pausedAt }) =>
        `${locationId}\n${name ?? ''}`.toLocaleLowerCase().includes(wanted) &&
        (filters.group === '' || groups.includes(filters.group)) &&
        (filters.integration === '' || filters.integration === integration) &&
        (filters.paused === '' || filters.paused === String(pausedAt !== null)),
    )
    .toSorted((one, other) => compare(filters.by, one, other, now) || byName(one, other));
}

function compare(by: string, one: ListedLocation, other: ListedLocation, now: number): number {
  switch (by) {
    case 'heard':
      return lastSeenAt(one) - lastSeenAt(other);
    case 'webhooks':
      return sum(other.webhooks) - sum(one.webhooks);
    case 'errors':
      return (errorShare(other) ?? -1) - (errorShare(one) ?? -1);
    case '':
      return badness(other, now) - badness(one, now) || openShare(other) - openShare(one);
    default:
      return 0;
  }
}

const WEIGHTS = { plain: 0, warn: 1, bad: 10 };
const OPEN_WEIGHT = 20;
/** More than all else together. */
const NO_ORDERS_WEIGHT = 100;

/** How much a location needs attention: by orders that reach no POS, then by what is open, then by silence and pause. */
function badness(location: ListedLocation, now: number): number {
  const reachesNone = [
    location.kitchen.state === 'unreachable',
    stateOfOrders(location) === 'access ended',
    failingTone(location) === 'bad',
  ];
  return (
    NO_ORDERS_WEIGHT * Number(reachesNone.includes(true)) +
    WEIGHTS[failingTone(location)] +
    OPEN_WEIGHT * (Number(errorTone(location) === 'bad') + Number((location.open?.unreported ?? 0) > 0)) +
    WEIGHTS[errorTone(location)] +
    WEIGHTS[silence(location.lastSeenAt, now)] +
    (location.pausedAt === null ? 0 : WEIGHTS.warn)
  );
}

function byName(one: ListedLocation, other: ListedLocation): number {
  return NAMES.compare(locationName(one.locationId), locationName(other.locationId));
}

function lastSeenAt({ lastSeenAt }: ListedLocation): number {
  return lastSeenAt === null ? 0 : Date.parse(lastSeenAt);
}
