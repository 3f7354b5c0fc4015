import { hkdfSync } from 'node:crypto';
import { SignJWT, errors, jwtVerify } from 'jose';
import type { Now } from '../../core/postgres/database-clock.ts';

export const SESSION_S = 12 * 60 * 60;
/** What the key is for and who the token is for: no other token or key of ours fits. */
export const PURPOSE = 'expediter console session';
const ALGORITHM = 'HS256';

export type SessionTokens = {
  issue(): Promise<string>;
  /** @returns until when it holds; undefined where it does not, whatever the reason */
  read(token: string | undefined): Promise<Date | undefined>;
};

/**
 * Sessions that nobody keeps: a signed token with its end in it, so every process behind the load balancer knows it. Its
 * key comes from the operator's token: another one ends all sessions at once.
 *
 * @param now Postgres's clock, which all processes share: a session that one began would otherwise be over, or begin
 *   anew, at another whose machine's clock is off. It throws before Postgres has first answered.
 */
export function sessionTokens(tokenGate: string, now: Now): SessionTokens {
  const key = sessionKey(tokenGate);
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

export function sessionKey(tokenGate: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', tokenGate, '', PURPOSE, 32));
}
