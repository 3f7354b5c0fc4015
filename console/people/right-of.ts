import type { Right, Role } from '../wire.ts';

/** The form for giving roles. */
export type Draft = { roles: Role[]; where: '' | 'all' | 'some'; ids: string; groups: string };

export const NOTHING: Draft = { roles: [], where: '', ids: '', groups: '' };

/**
 * `viewer` is part of each role except `integrator`.
 * @returns undefined while no location is chosen
 */
export function rightOf({ roles, where, ids, groups }: Draft): Right | undefined {
  const [locations, locationGroups] = [linesOf(ids), linesOf(groups)];
  if (where === '' || (where === 'some' && locations.length + locationGroups.length === 0)) return undefined;
  const all: Role[] = roles.length === 1 && roles[0] === 'integrator' ? roles : ['viewer', ...roles];
  return where === 'all'
    ? { roles: all, locations: null, locationGroups: [] }
    : { roles: all, locations, locationGroups };
}

/** The lines of a text, each once, without blanks. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split('\n').flatMap((line) => line.trim() || []))];
}
