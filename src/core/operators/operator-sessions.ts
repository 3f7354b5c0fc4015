import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { IS_ACTIVE, digest } from './find-operator.ts';
import { Actor } from './operator.ts';

/** Seconds after which a session ends, even if it is in use. */
export const SESSION_S = 12 * 60 * 60;
/** Characters that are stored of a browser's user agent. */
const USER_AGENT_MAX = 300;

/** The person or token that signed in, and how. */
export type SignedIn = Actor & {
  kind: 'person' | 'token' | 'operator_token';
  /** Verified by the issuer. */
  email?: string | undefined;
  groups?: readonly string[] | undefined;
  operatorToken?: string | undefined;
  /** When the issuer authenticated them, which may be days ago. If omitted, the present time is stored. */
  provedAt?: Date;
  /** By default a new id. A second session with the same id throws. */
  sessionId?: string;
  source: string;
  userAgent: string | undefined;
};

export const ActiveSession = z.object({
  sessionId: z.string(),
  kind: Actor.shape.kind,
  name: z.string().meta({ description: 'Its holder.' }),
  createdAt: z.date(),
  signedInAt: z.date(),
  lastSeenAt: z.date().meta({ description: 'Accurate to a minute.' }),
  expiresAt: z.date(),
  source: z.string().nullable().meta({ description: 'The address that they signed in from.' }),
  userAgent: z.string().nullable().meta({ description: 'The user agent of their browser.' }),
});
export type ActiveSession = z.infer<typeof ActiveSession>;

/**
 * Opens a session.
 * @param replaced the earlier sessions of the same browser, which are ended
 * @returns the cookie's value, which is not stored
 */
export async function startSession(pool: Pool, who: SignedIn, replaced: readonly string[] = []): Promise<string> {
  const cookie = randomBytes(32).toString('base64url');
  await pool.query(
    `WITH ended AS (
       UPDATE operator_sessions SET ended_at = now() WHERE session_id = ANY ($11::uuid[]) AND ended_at IS NULL
     )
     INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, email, groups, operator_token_sha256, source,
                                    user_agent, expires_at, signed_in_at)
     VALUES ($1, $2, $3, $4, $5, lower($6), $7, $8, $9, $10, now() + make_interval(secs => ${SESSION_S}),
             least(now(), $12::timestamptz))`,
    [
      who.sessionId ?? randomUUID(),
      digest(cookie),
      who.kind,
      who.id,
      who.name,
      who.email ?? null,
      who.groups ?? [],
      who.operatorToken === undefined ? null : digest(who.operatorToken),
      who.source,
      who.userAgent?.slice(0, USER_AGENT_MAX) ?? null,
      replaced,
      who.provedAt ?? null,
    ],
  );
  return cookie;
}

/**
 * Opens a session for a command of a person who has a session in a browser. It has the same identity, proof and end, so
 * that no chain of sessions lasts longer than a sign-in.
 * @param from the browser's session
 * @returns the secret, which is not stored; undefined if the id was used, or the person has no session or no role any more
 */
export async function startSessionFrom(
  pool: Pool,
  from: string,
  about: { sessionId: string; source: string; userAgent: string | undefined },
): Promise<string | undefined> {
  const secret = randomBytes(32).toString('base64url');
  const { rowCount } = await pool.query(
    `INSERT INTO operator_sessions (session_id, sha256, source, user_agent, kind, actor_id, name, email, groups,
                                    created_at, signed_in_at, expires_at)
     SELECT $1::uuid, $2::bytea, $3::text, $4::text, s.kind, s.actor_id, s.name, s.email, s.groups,
            s.created_at, s.signed_in_at, s.expires_at
     FROM operator_sessions s
     WHERE s.session_id = $5::uuid AND ${IS_ACTIVE}
       AND EXISTS (SELECT FROM operator_grants g WHERE g.email = s.email OR g.group_name = ANY (s.groups))
     ON CONFLICT (session_id) DO NOTHING`,
    [about.sessionId, digest(secret), about.source, about.userAgent?.slice(0, USER_AGENT_MAX) ?? null, from],
  );
  return rowCount === 1 ? secret : undefined;
}

/**
 * Ends a session, if it has not ended already.
 * @param whose the holder that the session must have; undefined for any holder
 * @returns whether there is such a session
 */
export async function endSession(pool: Pool, sessionId: string, whose?: Pick<Actor, 'kind' | 'id'>): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE operator_sessions SET ended_at = coalesce(ended_at, now())
     WHERE session_id = $1::uuid AND ($2::text IS NULL OR (kind = $2 AND actor_id = $3::text))`,
    [sessionId, whose?.kind ?? null, whose?.id ?? null],
  );
  return rowCount === 1;
}

/** Ends all sessions of one holder. @returns the number of ended sessions */
export async function endSessionsOf(pool: Pool, { kind, id }: Pick<Actor, 'kind' | 'id'>): Promise<number> {
  const { rowCount } = await pool.query(
    'UPDATE operator_sessions SET ended_at = now() WHERE kind = $1::text AND actor_id = $2::text AND ended_at IS NULL',
    [kind, id],
  );
  return rowCount ?? 0;
}

/**
 * Lists the active sessions, most recently seen first.
 * @param whose the holder of the listed sessions; undefined for all holders
 * @param operatorToken OPERATOR_TOKEN, to leave out sessions of an earlier value; undefined to list them too
 */
export async function listSessions(
  pool: Pool,
  { whose, operatorToken }: { whose?: Pick<Actor, 'kind' | 'id'>; operatorToken: string | undefined },
): Promise<ActiveSession[]> {
  const { rows } = await pool.query<ActiveSession>(
    `SELECT s.session_id AS "sessionId", s.kind, s.name, s.created_at AS "createdAt", s.signed_in_at AS "signedInAt",
            s.last_seen_at AS "lastSeenAt", s.expires_at AS "expiresAt", s.source, s.user_agent AS "userAgent"
     FROM operator_sessions s
     WHERE ${IS_ACTIVE} AND ($1::text IS NULL OR (s.kind = $1 AND s.actor_id = $2::text))
       AND ($3::bytea IS NULL OR s.operator_token_sha256 IS NULL OR s.operator_token_sha256 = $3)
     ORDER BY s.last_seen_at DESC, s.session_id`,
    [whose?.kind ?? null, whose?.id ?? null, operatorToken === undefined ? null : digest(operatorToken)],
  );
  return rows;
}
