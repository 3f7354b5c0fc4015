import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { digest } from './find-operator.ts';
import type { Actor } from './operator.ts';

/** Seconds for which a session lives, however it is used. */
export const SESSION_S = 12 * 60 * 60;

/** Who signed in, and how. */
export type SignedIn = Actor & {
  kind: 'person' | 'token' | 'operator_token';
  /** Verified by the issuer. */
  email?: string | undefined;
  groups?: readonly string[] | undefined;
  /** OPERATOR_TOKEN, if that was shown. */
  operatorToken?: string | undefined;
  source: string;
  userAgent: string | undefined;
};

/** Opens a session. @returns the cookie's value, which is stored nowhere */
export async function openSession(pool: Pool, who: SignedIn): Promise<string> {
  const cookie = randomBytes(32).toString('base64url');
  await pool.query(
    `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, email, groups, operator_token_sha256, source,
                                    user_agent, expires_at)
     VALUES ($1, $2, $3, $4, $5, lower($6), $7, $8, $9, $10, now() + make_interval(secs => ${SESSION_S}))`,
    [
      randomUUID(),
      digest(cookie),
      who.kind,
      who.id,
      who.name,
      who.email ?? null,
      who.groups ?? [],
      who.operatorToken === undefined ? null : digest(who.operatorToken),
      who.source,
      who.userAgent ?? null,
    ],
  );
  return cookie;
}

/** Ends a session. @returns whether it was open */
export async function endSession(pool: Pool, sessionId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'UPDATE operator_sessions SET ended_at = now() WHERE session_id = $1::uuid AND ended_at IS NULL',
    [sessionId],
  );
  return rowCount === 1;
}
