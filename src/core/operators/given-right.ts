import type { Pool } from 'pg';
import { z } from 'zod';
import { recordAction, type Action } from './audit.ts';
import { ROLES, Right, Role, type Actor } from './operator.ts';

/** Roles to give. */
export const GivenRight = z.strictObject({
  roles: z
    .array(Role)
    .min(1)
    .max(ROLES.length)
    .meta({ description: `Of ${ROLES.join(', ')}.` }),
  locations: Right.shape.locations.default(null).meta({ description: 'Where they hold. Null: at all locations.' }),
});

/** Makes two that say the same look the same. */
export function inOrder({ roles, locations }: Right): Right {
  return {
    roles: ROLES.filter((role) => roles.includes(role)),
    locations: locations && [...new Set(locations)].toSorted(),
  };
}

/** Why a right cannot be given: it is about a location that there is not. */
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

/** Writes down what was given or taken at each location that it is about: its own admins read of it there. */
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

/** What somebody was given, or is taken, for the audit: by its id, once there is one. */
export function givenInWords({ tokenId, grantId, name, email, group, ...right }: Given): string {
  return `${[tokenId ?? grantId ?? [], name ?? email ?? group].flat().join(' ')}: ${rightInWords(right)}`;
}
