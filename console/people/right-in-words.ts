import { locationName } from '../parts/names.ts';
import type { Right } from '../wire.ts';

/** Writes roles and where they apply. `viewer` is part of each role except `integrator`. */
export function rightInWords({ roles, locations, locationGroups }: Right): string {
  const others = roles.filter((role) => role !== 'viewer');
  const what = others.length === 0 ? 'viewer' : others.join(', ');
  if (locations === null) return `${what} at all locations`;
  const where = [...locations.map(locationName), ...locationGroups.map((group) => `all of group ${group}`)];
  return `${what} at ${where.join(', ') || 'no location'}`;
}
