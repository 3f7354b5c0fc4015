import { gives } from '../src/core/operators/gives.ts';
import { session } from './sign-in.ts';
import type { NeededRole, Right } from './wire.ts';

/**
 * Whether the operator has a role.
 * @param at a location id, or `anywhere` for a role at one location or more. Null for an action that belongs to no
 *   location, which requires the role at all locations
 */
export function may(role: NeededRole, at: string | null | { anywhere: true }): boolean {
  const matching = rightsWith(role);
  if (typeof at === 'object' && at !== null) return matching.length > 0;
  return matching.some(({ locations }) => locations === null || (at !== null && locations.includes(at)));
}

/** Whether the operator only configures locations: there are no orders, webhooks and traffic to show. */
export function onlyConfigures(at: Parameters<typeof may>[1] = { anywhere: true }): boolean {
  return !may('viewer', at);
}

function rightsWith(role: NeededRole): Right[] {
  if (session.value.state !== 'in') return [];
  return session.value.rights.filter((right) => gives(right, role));
}

/** The locations and groups at which the operator has a role. Null for all locations. */
export function scopeOf(role: NeededRole): { locations: string[]; groups: string[] } | null {
  const rights = rightsWith(role);
  if (rights.some(({ locations }) => locations === null)) return null;
  return {
    locations: [...new Set(rights.flatMap(({ locations }) => locations ?? []))],
    groups: [...new Set(rights.flatMap(({ locationGroups }) => locationGroups))],
  };
}
