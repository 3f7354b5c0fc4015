import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
// This digest is the key of a credential in the cache, so that no credential stays in memory.
import { atMost } from '../../core/domain/at-most.ts';
import { digest as keyOf, mayBeToken } from '../../core/domain/make-token.ts';
import { digest, findBySession, findByToken, isAnyoneAdmin } from '../../core/operators/find-operator.ts';
import { BY_OPERATOR_TOKEN, type Operator } from '../../core/operators/operator.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import { isDatabaseAway } from './answer-errors.ts';

/** The prefix of a session's secret that a command uses as a token: see login-routes.ts. */
export const SESSION_TOKEN = 'exs_';

/** Authenticates an operator by a credential. The result is undefined if the credential is not valid for any reason. */
export type Identify = {
  /** Accepts OPERATOR_TOKEN, a named token, or the session of a command. */
  byToken(given: string | undefined): Promise<Operator | undefined>;
  /** Accepts a session's cookie. A request may have several cookies with this name. The first valid one counts. */
  bySession(cookies: readonly string[]): Promise<Operator | undefined>;
  /** Call this after this process has changed permissions. */
  invalidateCache(): void;
};

/** How long a result is reused. A lost permission ends a stream after this time plus event-stream.ts's `RECHECK_MS`. */
const FRESH_MS = 2_000;
/** While Postgres is unavailable, a known credential stays valid for this long, but only for reading metrics. */
const KNOWN_MS = 24 * 60 * 60_000;
/** Maximum number of known credentials. The least recently used ones are dropped. */
const KNOWN_MAX = 1_000;

type Known = { operator: Operator; checkedAt: number };

/**
 * @param operatorToken OPERATOR_TOKEN. The duration of its comparison reveals nothing about it
 * @param hasIssuer whether people sign in by OIDC. If so, OPERATOR_TOKEN is refused as soon as one of them is an admin
 */
export function identifier(pool: Pool, operatorToken: string | undefined, now: Now, hasIssuer = false): Identify {
  const ours = operatorToken === undefined ? undefined : digest(operatorToken);
  // Only valid credentials are cached, so failed authentications take no memory.
  const known = new LRUCache<string, Known>({
    ...atMost(KNOWN_MAX),
    ttl: KNOWN_MS,
    ttlResolution: 0,
    perf: { now: () => performance.now() },
  });
  const pending = new Map<string, { began: number; found: Promise<Operator | undefined> }>();
  let invalidatedAt = -Infinity;

  const lookUp = async (key: string, find: () => Promise<Operator | undefined>): Promise<Operator | undefined> => {
    const checkedAt = performance.now();
    try {
      const operator = await find();
      if (operator === undefined) known.delete(key);
      else known.set(key, { operator, checkedAt });
      return operator;
    } catch (error) {
      const seen = known.get(key);
      if (seen === undefined || !isDatabaseAway(error)) throw error;
      const operator = { ...seen.operator, isStale: true as const };
      known.set(key, { operator, checkedAt }, { noUpdateTTL: true });
      return operator;
    }
  };
  const identify = async (key: string, find: () => Promise<Operator | undefined>): Promise<Operator | undefined> => {
    const seen = known.get(key);
    const since = Math.max(invalidatedAt, performance.now() - FRESH_MS);
    if (seen !== undefined && seen.checkedAt > since) return seen.operator;
    const running = pending.get(key);
    if (running !== undefined && running.began > invalidatedAt) return running.found;
    const found = lookUp(key, find).finally(() => {
      if (pending.get(key)?.found === found) pending.delete(key);
    });
    pending.set(key, { began: performance.now(), found });
    return found;
  };

  return {
    async byToken(given) {
      if (given === undefined) return undefined;
      if (ours !== undefined && timingSafeEqual(digest(given), ours)) {
        return identify(keyOf(given), async () =>
          hasIssuer && (await isAnyoneAdmin(pool)) ? undefined : BY_OPERATOR_TOKEN,
        );
      }
      if (given.startsWith(SESSION_TOKEN)) return this.bySession([given.slice(SESSION_TOKEN.length)]);
      return mayBeToken('exo_', given) ? identify(keyOf(given), () => findByToken(pool, given)) : undefined;
    },
    async bySession(cookies) {
      for (const cookie of cookies) {
        const operator = await identify(keyOf(cookie), () => findBySession(pool, cookie, operatorToken, hasIssuer));
        // While Postgres is unavailable, this is the only check that the session has not expired.
        if (operator?.session !== undefined && operator.session.expiresAt > now()) return operator;
      }
      return undefined;
    },
    invalidateCache() {
      invalidatedAt = performance.now();
    },
  };
}
