import { hash } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { BY_OPERATOR_TOKEN, type Operator, type Right, type RoleAt } from './operator.ts';

/** SQL of a right. Its locations include those of its groups, in order, so that equal rights are equal arrays. */
const RIGHT = (of: string): string => `jsonb_build_object(
  'roles', ${of}.roles, 'locationGroups', ${of}.location_groups,
  'locations', CASE WHEN ${of}.location_groups = '{}' THEN to_jsonb(${of}.locations) ELSE to_jsonb(ARRAY(
    SELECT unnest(${of}.locations) UNION SELECT l.location_id FROM locations l WHERE l.groups && ${of}.location_groups ORDER BY 1)) END)`;

/** SQL for whether a named token `t` is valid. */
export const IS_VALID = `t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

/** A session ends after this long without use. An open page of the console counts as use. */
const IDLE = `interval '1 hour'`;

/** SQL for whether a session `s` is active. The caller also compares the hash of OPERATOR_TOKEN. */
export const IS_ACTIVE = `s.ended_at IS NULL AND s.expires_at > now() AND s.last_seen_at > now() - ${IDLE} AND CASE s.kind WHEN 'token'
  THEN EXISTS (SELECT FROM operator_tokens t WHERE t.token_id = s.actor_id::uuid AND ${IS_VALID}) ELSE true END`;

/** If the recorded last use of a token or session is older than this, a new use is recorded. */
const SEEN = `interval '1 minute'`;

/** SQL for whether a grant or a token makes its holder an admin of everything. */
export const IS_ADMIN = `roles @> '{admin}' AND locations IS NULL`;
const HAS_ADMIN = `EXISTS (SELECT FROM operator_grants WHERE ${IS_ADMIN})`;

/** Returns whether any person who signs in by OIDC is an admin of everything. */
export async function isAnyoneAdmin(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ is: boolean }>(`SELECT ${HAS_ADMIN} AS is`);
  return rows[0]?.is === true;
}

/** Reads the roles that people and valid tokens have at groups. */
export async function readRolesAt(client: PoolClient, groups: readonly string[]): Promise<RoleAt[]> {
  const { rows } = await client.query<RoleAt>(
    `SELECT DISTINCT role, "group" FROM (
       SELECT roles, location_groups FROM operator_grants
       UNION ALL SELECT roles, location_groups FROM operator_tokens t WHERE ${IS_VALID}
     ) AS given, unnest(roles) AS role, unnest(location_groups) AS "group" WHERE "group" = ANY ($1::text[])`,
    [groups],
  );
  return rows;
}

/** Hashes a token or a session's cookie for storage. Both contain 32 random bytes. */
export function digest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Finds the holder of a named token. @returns undefined if the token is not valid, for any reason */
export async function findByToken(pool: Pool, token: string): Promise<Operator | undefined> {
  const { rows } = await pool.query<Omit<Operator, 'kind'> & { unseen: boolean }>({
    name: 'find-operator-by-token',
    text: `SELECT t.token_id::text AS id, t.name, jsonb_build_array(${RIGHT('t')}) AS rights,
                  coalesce(t.last_used_at < now() - ${SEEN}, true) AS unseen
           FROM operator_tokens t WHERE t.sha256 = $1 AND ${IS_VALID}`,
    values: [digest(token)],
  });
  if (rows[0] === undefined) return undefined;
  const { unseen, ...found } = rows[0];
  if (unseen) void noteUsed(pool, found.id).catch(() => {});
  return { kind: 'token', ...found };
}

/** The request does not wait for this. If it fails, the next request with the token tries again. */
async function noteUsed(pool: Pool, tokenId: string): Promise<void> {
  await pool.query(
    `UPDATE operator_tokens SET last_used_at = now()
     WHERE token_id = $1::uuid AND coalesce(last_used_at < now() - ${SEEN}, true)`,
    [tokenId],
  );
}

/**
 * Finds the holder of a session, with their present rights.
 * @param operatorToken OPERATOR_TOKEN; sessions of an earlier value are invalid
 * @param hasIssuer true if people sign in by OIDC. Then sessions of OPERATOR_TOKEN are invalid if a person is an admin
 * @returns undefined if the session is not valid, or its holder has no rights
 */
export async function findBySession(
  pool: Pool,
  cookie: string,
  operatorToken: string | undefined,
  hasIssuer: boolean,
): Promise<Operator | undefined> {
  const { rows } = await pool.query<
    Omit<Operator, 'rights' | 'session'> &
      NonNullable<Operator['session']> & {
        rights: readonly Right[] | null;
        unseen: boolean;
      }
  >({
    name: 'find-operator-by-session',
    text: `SELECT s.kind, s.actor_id AS id, s.name, s.session_id AS "sessionId", s.created_at AS "openedAt", s.signed_in_at AS "signedInAt",
                  s.expires_at AS "expiresAt", s.last_seen_at < now() - ${SEEN} AS "unseen",
                  CASE s.kind
                    WHEN 'person' THEN (SELECT jsonb_agg(${RIGHT('g')} ORDER BY g.grant_id) FROM operator_grants g
                                        WHERE g.email = s.email OR g.group_name = ANY (s.groups))
                    WHEN 'token' THEN (SELECT jsonb_agg(${RIGHT('t')}) FROM operator_tokens t
                                       WHERE t.token_id = s.actor_id::uuid)
                    ELSE CASE WHEN $4::boolean AND ${HAS_ADMIN} THEN NULL ELSE $3::jsonb END END AS rights
           FROM operator_sessions s
           WHERE s.sha256 = $1 AND ${IS_ACTIVE}
             AND (s.operator_token_sha256 IS NULL OR s.operator_token_sha256 = $2)`,
    values: [
      digest(cookie),
      operatorToken === undefined ? null : digest(operatorToken),
      JSON.stringify(BY_OPERATOR_TOKEN.rights),
      hasIssuer,
    ],
  });
  const [found] = rows;
  if (found === undefined || found.rights === null) return undefined;
  const { kind, id, name, rights, unseen, ...session } = found;
  // The request does not wait for this. If it fails, the next request in the session tries again.
  if (unseen) void noteSeen(pool, session.sessionId).catch(() => {});
  return { kind, id, name, rights, session };
}

async function noteSeen(pool: Pool, sessionId: string): Promise<void> {
  await pool.query(
    `UPDATE operator_sessions SET last_seen_at = now()
     WHERE session_id = $1::uuid AND last_seen_at < now() - ${SEEN}`,
    [sessionId],
  );
}
