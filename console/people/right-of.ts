import type { Right, Role } from '../wire.ts';

/** The form for giving roles. */
export type Draft = { roles: Role[]; where: '' | 'all' | 'some'; locations: string[]; groups: string[] };

export const NOTHING: Draft = { roles: [], where: '', locations: [], groups: [] };

/**
 * `viewer` is part of each role except `integrator`.
 * @returns undefined while no location is chosen
 */
export function rightOf({ roles, where, locations, groups }: Draft): Right | undefined {
  if (where === '' || (where === 'some' && locations.length + groups.length === 0)) return undefined;
  const all: Role[] = roles.length === 1 && roles[0] === 'integrator' ? roles : ['viewer', ...roles];
  return where === 'all'
    ? { roles: all, locations: null, locationGroups: [] }
    : { roles: all, locations, locationGroups: groups };
}

/** The lines of a text, each once, without blanks. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split('\n').flatMap((line) => line.trim() || []))];
}
