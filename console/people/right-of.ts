import type { Right, Role } from '../wire.ts';

/** The form for giving roles. */
export type Draft = { roles: Role[]; where: '' | 'all' | 'some'; ids: string };

export const NOTHING: Draft = { roles: [], where: '', ids: '' };

/** @returns undefined while no location is chosen */
export function rightOf({ roles, where, ids }: Draft): Right | undefined {
  const locations = [...new Set(ids.split('\n').flatMap((id) => id.trim() || []))];
  if (where === '' || (where === 'some' && locations.length === 0)) return undefined;
  return { roles: ['viewer', ...roles], locations: where === 'all' ? null : locations };
}
