import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { Id } from '../domain/order.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { GivenRight, inOrder, isWithin, reaching, refuseUnknown } from './given-right.ts';
import { gives } from './gives.ts';
import { Right, ROLES, type Scope } from './operator.ts';

export async function hasGrant(pool: Pool, email: string | undefined, groups: readonly string[]): Promise<boolean> {
  const { rowCount } = await pool.query(
    'SELECT FROM operator_grants WHERE email = $1::text OR group_name = ANY ($2::text[]) LIMIT 1',
    [email ?? null, groups],
  );
  return rowCount === 1;
}

export const NewOperatorGrant = GivenRight.extend({
  email: z
    .email({ error: 'is not an e-mail address' })
    .toLowerCase()
    .max(254)
    .optional()
    .meta({
      description: 'The address of the person, which the issuer has verified.',
      examples: ['anna@example.com'],
    }),
  group: Id.optional().meta({
    description: "The issuer's name of the group whose members get the roles.",
    examples: ['kitchen-managers'],
  }),
}).refine(({ email, group }) => (email === undefined) !== (group === undefined), {
  error: 'takes either an email or a group',
});
type NewOperatorGrant = z.infer<typeof NewOperatorGrant>;

export const OperatorGrant = Right.extend({
  grantId: z.string(),
  email: z.string().nullable(),
  group: z.string().nullable(),
  createdAt: z.date(),
}).meta({ id: 'OperatorGrant' });
export type OperatorGrant = z.infer<typeof OperatorGrant>;

const SHOWN =
  'grant_id AS "grantId", email, group_name AS "group", roles, locations, location_groups AS "locationGroups", created_at AS "createdAt"';

const READERS = ROLES.filter((role) => gives({ roles: [role] }, 'viewer'));

/** Grants roles to an address or a group. An existing equal grant is returned instead. */
export async function addOperatorGrant(
  pool: Pool,
  { email, group, ...given }: NewOperatorGrant,
): Promise<OperatorGrant | { refused: string }> {
  const right = inOrder(given);
  const refused = await refuseUnknown(pool, right);
  if (refused !== undefined) return { refused };
  // Without the lock, two equal requests at the same time could both find no grant and add one each.
  const { rows } = await inTransaction(pool, async (client) => {
    await client.query('LOCK TABLE operator_grants IN SHARE ROW EXCLUSIVE MODE');
    return client.query<OperatorGrant>(
      `WITH same AS (
       SELECT * FROM operator_grants
       WHERE email IS NOT DISTINCT FROM $2::text AND group_name IS NOT DISTINCT FROM $3::text
         -- A role that includes viewer is the same with it.
         AND array_remove(roles, 'viewer') = array_remove($4::text[], 'viewer')
         AND (roles && $7::text[]) = ($4::text[] && $7::text[]) AND locations IS NOT DISTINCT FROM $5::text[] AND location_groups = $6::text[]
     ), added AS (
       INSERT INTO operator_grants (grant_id, email, group_name, roles, locations, location_groups)
       SELECT $1::uuid, $2::text, $3::text, $4::text[], $5::text[], $6::text[] WHERE NOT EXISTS (SELECT FROM same) RETURNING *
     )
     SELECT ${SHOWN} FROM (SELECT * FROM same UNION ALL SELECT * FROM added) AS grants LIMIT 1`,
      [randomUUID(), email ?? null, group ?? null, right.roles, right.locations, right.locationGroups, READERS],
    );
  });
  if (rows[0] === undefined) throw new Error('a grant was not stored');
  return rows[0];
}

/** @param within the scope in which a listed grant must apply. Nothing outside of it is shown. Undefined for all grants */
export async function listOperatorGrants(pool: Pool, within?: Scope): Promise<OperatorGrant[]> {
  const { rows } = await pool.query<OperatorGrant>(
    `SELECT ${SHOWN} FROM operator_grants ORDER BY created_at, grant_id`,
  );
  return reaching(pool, rows, within);
}

/**
 * Removes a grant. Processes stop using it within five seconds. Also ends the sessions of people who have no grant
 * left, because a later grant would make these sessions work again.
 * @param within the scope to which the grant must be limited; undefined for all grants
 * @returns the removed grant; undefined if there is none
 */
export async function removeOperatorGrant(
  pool: Pool,
  grantId: string,
  within?: Scope,
): Promise<OperatorGrant | undefined> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<OperatorGrant>(
      `DELETE FROM operator_grants WHERE grant_id::text = $1::text AND ${isWithin(2)}
       RETURNING ${SHOWN}`,
      [grantId, within?.locations ?? null, within?.groups ?? null],
    );
    await client.query(
      `UPDATE operator_sessions s SET ended_at = now()
       WHERE s.kind = 'person' AND s.ended_at IS NULL AND s.expires_at > now()
         AND NOT EXISTS (SELECT FROM operator_grants g WHERE g.email = s.email OR g.group_name = ANY (s.groups))`,
    );
    return rows[0];
  });
}
