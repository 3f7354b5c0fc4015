import type { Right } from '../wire.ts';

/** Writes roles and their locations. `viewer` is part of each role. */
export function rightInWords({ roles, locations }: Right): string {
  const others = roles.filter((role) => role !== 'viewer');
  const what = others.length === 0 ? 'viewer' : others.join(', ');
  return `${what} at ${locations === null ? 'all locations' : locations.join(', ')}`;
}
