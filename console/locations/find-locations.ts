import { sum } from '../parts/series.ts';
import type { ListedLocation } from '../wire.ts';

export type LocationFilters = { text: string; integration: string; paused: string; by: string };

/** Filters and sorts locations: by name, or by silence, traffic or errors. */
export function findLocations(all: readonly ListedLocation[], filters: LocationFilters): ListedLocation[] {
  const wanted = filters.text.trim().toLocaleLowerCase();
  return all
    .filter(
      ({ locationId, integration, pausedAt }) =>
        locationId.toLocaleLowerCase().includes(wanted) &&
        (filters.integration === '' || filters.integration === integration) &&
        (filters.paused === '' || filters.paused === String(pausedAt !== null)),
    )
    .toSorted((one, other) => compare(filters.by, one, other) || byName(one, other));
}

function compare(by: string, one: ListedLocation, other: ListedLocation): number {
  switch (by) {
    case 'heard':
      return lastSeenAt(one) - lastSeenAt(other);
    case 'webhooks':
      return sum(other.webhooks) - sum(one.webhooks);
    case 'errors':
      return (errorShare(other) ?? -1) - (errorShare(one) ?? -1);
    default:
      return 0;
  }
}

/** Sorts `club-9` before `club-10`. */
function byName(one: ListedLocation, other: ListedLocation): number {
  return NAMES.compare(one.locationId, other.locationId);
}
const NAMES = new Intl.Collator(undefined, { numeric: true });

function lastSeenAt({ lastSeenAt }: ListedLocation): number {
  return lastSeenAt === null ? 0 : Date.parse(lastSeenAt);
}

export function integrationsOf(all: readonly ListedLocation[]): string[] {
  return [...new Set(all.map(({ integration }) => integration))].toSorted();
}

/** The share of errors in the last hour, from 0 to 1; undefined without webhooks. */
export function errorShare({ webhooks, errors }: Pick<ListedLocation, 'webhooks' | 'errors'>): number | undefined {
  const all = sum(webhooks);
  return all === 0 ? undefined : sum(errors) / all;
}
