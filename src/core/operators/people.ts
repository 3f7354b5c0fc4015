import type { Pool } from 'pg';
import { IS_ACTIVE, IS_VALID } from './find-operator.ts';
import type { Role } from './operator.ts';

/** A person without a grant to their address has the groups of their last sign-in, if it was within this time. */
const SEEN_WITHIN = `interval '7 d'`;
/** Who has it may take cases. */
export const TAKES_CASES: Role = 'operator';
/** The newest actions that are read for the names of their authors. */
const READ = 10_000;

/** SQL for whether a grant or a token gives the role `$1` at the location of `here`. */
const GIVES = (of: string): string => `$1 = ANY (${of}.roles) AND (
  ${of}.locations IS NULL AND ${of}.location_groups = '{}' OR here.location_id = ANY (${of}.locations) OR ${of}.location_groups && here.groups)`;

/**
 * SQL of the people who have the role `$1` at the location of `here`, by their names in the audit: named tokens, addresses
 * with a grant, and who signed in.
 */
export const PEOPLE = `ARRAY(
  SELECT t.name COLLATE "C" FROM operator_tokens t WHERE ${IS_VALID} AND ${GIVES('t')}
  UNION
  SELECT g.email FROM operator_grants g WHERE g.email IS NOT NULL AND ${GIVES('g')}
  UNION
  SELECT s.name COLLATE "C" FROM operator_sessions s WHERE s.kind = 'operator_token' AND ${IS_ACTIVE}
  UNION
  SELECT s.name FROM (
    SELECT DISTINCT ON (actor_id) name COLLATE "C" AS name, email, groups FROM operator_sessions
    WHERE kind = 'person' AND created_at > now() - ${SEEN_WITHIN} ORDER BY actor_id, created_at DESC) AS s
  WHERE EXISTS (
    SELECT FROM operator_grants g WHERE (g.email = s.email OR g.group_name = ANY (s.groups)) AND ${GIVES('g')})
  ORDER BY 1)`;

/** @returns the names of those who may take the case of an order or a location; undefined if it does not exist */
export async function peopleForCase(
  pool: Pool,
  subject: { serviceOrderId: string } | { locationId: string },
): Promise<string[] | undefined> {
  const from =
    'serviceOrderId' in subject
      ? 'placements AS p LEFT JOIN locations l USING (location_id) WHERE p.service_order_id = $2'
      : 'locations l WHERE l.location_id = $2';
  const { rows } = await pool.query<{ names: string[] }>(
    `SELECT ${PEOPLE} AS names
     FROM (SELECT location_id, coalesce(l.groups, '{}') AS groups FROM ${from}) AS here`,
    [TAKES_CASES, 'serviceOrderId' in subject ? subject.serviceOrderId : subject.locationId],
  );
  return rows[0]?.names;
}

/** The names of those who acted lately. @param locations only actions there; undefined for all */
export async function readAuthors(pool: Pool, locations: readonly string[] | undefined): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT DISTINCT actor_name AS name
     FROM (SELECT actor_name, location_id FROM audit ORDER BY audit_id DESC LIMIT ${READ}) AS newest
     WHERE $1::text[] IS NULL OR location_id = ANY ($1) ORDER BY 1`,
    [locations ?? null],
  );
  return rows.map(({ name }) => name);
}
