import { session } from './sign-in.ts';
import type { Role } from './wire.ts';

/**
 * Whether the operator has a role.
 * @param at a location id, or `anywhere` for a role at one location or more. Null for an action that belongs to no
 *   location, which requires the role at all locations
 */
export function may(role: Role, at: string | null | { anywhere: true }): boolean {
  if (session.value.state !== 'in') return false;
  const matching = session.value.rights.filter(({ roles }) => role === 'viewer' || roles.includes(role));
  if (typeof at === 'object' && at !== null) return matching.length > 0;
  return matching.some(({ locations }) => locations === null || (at !== null && locations.includes(at)));
}

/** The locations of which the operator is an admin. Null for all. */
export function adminOf(): readonly string[] | null {
  if (may('admin', null)) return null;
  const rights = session.value.state === 'in' ? session.value.rights : [];
  return rights.flatMap(({ roles, locations }) => (roles.includes('admin') ? (locations ?? []) : []));
}
