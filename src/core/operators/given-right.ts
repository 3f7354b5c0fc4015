import type { Pool } from 'pg';
import { z } from 'zod';
import { recordAction, type Action } from './audit.ts';
import { ROLES, Right, Role, type Actor } from './operator.ts';

/** Roles to grant, and the locations at which they apply. */
export const GivenRight = z.strictObject({
  roles: z
    .array(Role)
    .min(1)
    .max(ROLES.length)
    .meta({ description: `One or more of ${ROLES.join(', ')}.` }),
  locations: Right.shape.locations
    .default(null)
    .meta({ description: 'Where the roles apply. With null, they apply at all locations.' }),
});

/** Normalizes a right, so that equal rights are stored equally. */
export function inOrder({ roles, locations }: Right): Right {
  return {
    roles: ROLES.filter((role) => roles.includes(role)),
    locations: locations && [...new Set(locations)].toSorted(),
  };
}

/** Returns why a right cannot be granted: it names a location that does not exist. Undefined if it can. */
export async function refuseUnknown(pool: Pool, { locations }: Right): Promise<string | undefined> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM locations WHERE location_id = id)`,
    [locations],
  );
  return rows.length === 0 ? undefined : `no location is called ${rows.map(({ id }) => `"${id}"`).join(', ')}`;
}

export function rightInWords({ roles, locations }: Right): string {
  return `${roles.join(',')} at ${locations?.join(',') ?? 'all locations'}`;
}

/** Records a granted or removed right at each of its locations, so that the admins of a location see it. */
export async function recordAtEach(pool: Pool, by: Actor, action: Action, given: Given): Promise<void> {
  for (const locationId of given.locations ?? []) {
    const after = givenInWords({ ...given, locations: [locationId] });
    await recordAction(pool, by, { ...action, locationId }, { outcome: 'done', after });
  }
}

type Given = Right & {
  tokenId?: string;
  grantId?: string;
  name?: string | undefined;
  email?: string | null | undefined;
  group?: string | null | undefined;
};

/** Describes a granted or removed right for the audit, with its id if it has one. */
export function givenInWords({ tokenId, grantId, name, email, group, ...right }: Given): string {
  return `${[tokenId ?? grantId ?? [], name ?? email ?? group].flat().join(' ')}: ${rightInWords(right)}`;
}
