import { locationName } from '../parts/names.ts';
import type { OperatorGrant, Right } from '../wire.ts';

/** Writes roles and where they apply. `viewer` is part of each role except `integrator`. */
export function rightInWords({ roles, locations, locationGroups }: Right): string {
  const others = roles.filter((role) => role !== 'viewer');
  const what = others.length === 0 ? 'viewer' : others.join(', ');
  if (locations === null) return `${what} at all locations`;
  const where = [...locations.map(locationName), ...locationGroups.map((group) => `all of group ${group}`)];
  return `${what} at ${where.join(', ') || 'no location'}`;
}

export const whose = ({ email, group }: OperatorGrant): string => email ?? `group ${group}`;

/** Grants without those that read the same, such as the role operator with and without viewer. */
export function eachOnce(grants: readonly OperatorGrant[]): (OperatorGrant & { grantIds: string[] })[] {
  const same = Map.groupBy(grants, (grant) => `${whose(grant)}\n${rightInWords(grant)}`);
  return [...same.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, grantIds: [first, ...others].map(({ grantId }) => grantId) }],
  );
}
