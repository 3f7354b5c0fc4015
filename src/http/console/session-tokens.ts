import { hkdfSync } from 'node:crypto';
import { SignJWT, errors, jwtVerify } from 'jose';
import type { Now } from '../../core/postgres/database-clock.ts';

export const SESSION_S = 12 * 60 * 60;
/** The purpose in both key and token, so that no other token or key of ours fits. */
export const PURPOSE = 'expediter console session';
const ALGORITHM = 'HS256';

export type SessionTokens = {
  issue(): Promise<string>;
  /** @returns the end of the session; undefined if the token is not valid, whatever the reason */
  read(token: string | undefined): Promise<Date | undefined>;
};

/**
 * Makes and reads sessions that are stored nowhere: a signed token contains its end, so every process behind the load
 * balancer accepts it. The key derives from the operator's token, so a new token ends all sessions at once.
 *
 * @param now Postgres's clock, which all processes share: by a machine's own clock, a session could be over in one
 *   process and valid in another. It throws before Postgres has first answered.
 */
export function sessionTokens(operatorToken: string, now: Now): SessionTokens {
  const key = sessionKey(operatorToken);
  return {
    issue() {
      const end = Math.floor(now().getTime() / 1000) + SESSION_S;
      return new SignJWT().setProtectedHeader({ alg: ALGORITHM }).setAudience(PURPOSE).setExpirationTime(end).sign(key);
    },
    async read(token) {
      if (token === undefined) return undefined;
      const currentDate = now();
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          audience: PURPOSE,
          requiredClaims: ['exp'],
          currentDate,
        });
        return new Date(Number(payload.exp) * 1000);
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined;
        throw error;
      }
    },
  };
}

export function sessionKey(operatorToken: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', operatorToken, '', PURPOSE, 32));
}
