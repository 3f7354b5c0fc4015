import { session } from './sign-in.ts';
import type { Role } from './wire.ts';

/**
 * Whether whoever is signed in has a role somewhere.
 * @param at a location; null for what belongs to none, which takes the role at all of them; `anywhere` for a list
 */
export function may(role: Role, at: string | null | { anywhere: true }): boolean {
  if (session.value.state !== 'in') return false;
  const having = session.value.rights.filter(({ roles }) => role === 'viewer' || roles.includes(role));
  if (typeof at === 'object' && at !== null) return having.length > 0;
  return having.some(({ locations }) => locations === null || (at !== null && locations.includes(at)));
}

/** The locations of which somebody is an admin: null for all. */
export function adminOf(): readonly string[] | null {
  if (may('admin', null)) return null;
  const rights = session.value.state === 'in' ? session.value.rights : [];
  return rights.flatMap(({ roles, locations }) => (roles.includes('admin') ? (locations ?? []) : []));
}
