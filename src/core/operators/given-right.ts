import type { Pool } from 'pg';
import { z } from 'zod';
import { Id } from '../domain/order.ts';
import { recordAtLocations, type Author, type Deed } from './audit.ts';
import { ROLES, Right, Role, type Scope } from './operator.ts';

export const GivenRight = z.strictObject({
  roles: z
    .array(Role)
    .min(1)
    .max(ROLES.length)
    .meta({ description: `One or more of ${ROLES.join(', ')}.` }),
  locations: z.array(Id).min(1).max(500).nullable().default(null).meta({
    description: 'Where the roles apply. With null and no groups, they apply at all locations.',
  }),
  locationGroups: z
    .array(Id)
    .max(100)
    .default([])
    .meta({
      description: 'Groups of locations where the roles apply, also to locations that join a group later.',
      examples: [['brand-nord']],
    }),
});

/** Normalizes a right, so that equal rights are stored equally. */
export function inOrder({ roles, locations, locationGroups }: Right): Right {
  return {
    roles: ROLES.filter((role) => roles.includes(role)),
    locations: locationGroups.length > 0 || locations !== null ? [...new Set(locations)].toSorted() : null,
    locationGroups: [...new Set(locationGroups)].toSorted(),
  };
}

/**
 * SQL for whether a stored right is limited to a `Scope`. False or NULL for a right at all locations.
 * @param parameter the number of the parameter with the scope's locations. The next one has its groups
 */
export function isWithin(parameter: number): string {
  return `($${parameter}::text[] IS NULL OR (locations <@ $${parameter} AND location_groups <@ $${parameter + 1}::text[]))`;
}

/** Returns why a right cannot be granted: it names a location that does not exist. Undefined if it can. */
export async function refuseUnknown(pool: Pool, { locations }: Right): Promise<string | undefined> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM locations WHERE location_id = id)`,
    [locations],
  );
  return rows.length === 0 ? undefined : `no location is called ${rows.map(({ id }) => `"${id}"`).join(', ')}`;
}

export function rightInWords({ roles, locations, locationGroups }: Right): string {
  const groups = locationGroups.length === 0 ? [] : [`the groups ${locationGroups.join(',')}`];
  const named = locations !== null && locations.length > 0 ? [locations.join(',')] : [];
  return `${roles.join(',')} at ${[...named, ...groups].join(' and ') || 'all locations'}`;
}

/** Returns the rights that apply in a scope, also by a group of one of its locations, without what they give elsewhere. */
export async function reaching<Given extends Right>(pool: Pool, all: Given[], within: Scope): Promise<Given[]> {
  if (within === undefined) return all;
  const { rows } = await pool.query<{ group: string }>(
    'SELECT unnest(groups) AS "group" FROM locations WHERE location_id = ANY ($1)',
    [within.locations],
  );
  // guard: groups-in-lists
  const groups = [...within.groups, ...rows.map(({ group }) => group)];
  return all.flatMap((right) => {
    const locations = right.locations?.filter((each) => within.locations.includes(each)) ?? [];
    const locationGroups = right.locationGroups.filter((each) => groups.includes(each));
    return locations.length + locationGroups.length === 0 ? [] : [{ ...right, locations, locationGroups }];
  });
}

/** Records a granted or removed right at each of its locations, so that the admins of a location see it. */
export async function recordAtEach(pool: Pool, by: Author, action: Deed, given: Given): Promise<void> {
  const { rows } = await pool.query<{ locationId: string; locations: string[]; locationGroups: string[] }>(
    // guard: groups-in-audit
    `SELECT location_id AS "locationId", ARRAY(SELECT location_id WHERE location_id = ANY ($1)) AS locations,
            ARRAY(SELECT unnest(groups) INTERSECT SELECT unnest($2::text[]) ORDER BY 1) AS "locationGroups"
     FROM locations WHERE location_id = ANY ($1::text[]) OR groups && $2::text[] ORDER BY 1`,
    [given.locations, given.locationGroups],
  );
  const inWords = (reached: Partial<Given>): string => givenInWords({ ...given, ...reached });
  const done = rows.map(({ locationId, ...reached }) => ({ locationId, after: inWords(reached) }));
  await recordAtLocations(pool, by, action, done);
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
