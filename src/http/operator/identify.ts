import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
// What a credential is known by here: none is kept.
import { digest as keyOf, mayBeToken } from '../../core/domain/make-token.ts';
import { digest, findBySession, findByToken, isAnyoneAdmin } from '../../core/operators/find-operator.ts';
import { BY_OPERATOR_TOKEN, type Operator } from '../../core/operators/operator.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import { isDatabaseAway } from './answer-errors.ts';

/** Finds out who somebody is by what they show. Undefined for nobody, whatever the reason. */
export type Identify = {
  /** By OPERATOR_TOKEN or a named token. */
  byToken(given: string | undefined): Promise<Operator | undefined>;
  /** By a session's cookie, of which there may be several under its name: the first that is right. */
  bySession(cookies: readonly string[]): Promise<Operator | undefined>;
  /** Has everybody looked up anew, after this process has changed who may what. */
  lookAnew(): void;
};

/** Time for which who it is is not asked again. With an open stream's `LOOK_MS` it is below five seconds. */
const FRESH_MS = 2_000;
/** Time for which what was known of a credential holds while Postgres is away: nothing can be done then, and is measured. */
const KNOWN_MS = 24 * 60 * 60_000;
/** Credentials that are known at once, those that came last. */
const KNOWN_MAX = 1_000;

type Known = { operator: Operator; lookedAt: number };

/**
 * @param operatorToken OPERATOR_TOKEN. The time to compare it shows neither the first difference nor the length
 * @param hasIssuer whether people sign in by OIDC: then OPERATOR_TOKEN ends once one of them is an admin
 */
export function identifier(pool: Pool, operatorToken: string | undefined, now: Now, hasIssuer = false): Identify {
  const ours = operatorToken === undefined ? undefined : digest(operatorToken);
  // Only what was right is kept, so no guess takes room.
  const known = new LRUCache<string, Known>({
    max: KNOWN_MAX,
    ttl: KNOWN_MS,
    ttlResolution: 0,
    perf: { now: () => performance.now() },
  });
  const looking = new Map<string, { began: number; found: Promise<Operator | undefined> }>();
  let anewSince = -Infinity;

  const look = async (key: string, find: () => Promise<Operator | undefined>): Promise<Operator | undefined> => {
    const lookedAt = performance.now();
    try {
      const operator = await find();
      if (operator === undefined) known.delete(key);
      else known.set(key, { operator, lookedAt });
      return operator;
    } catch (error) {
      const seen = known.get(key);
      if (seen === undefined || !isDatabaseAway(error)) throw error;
      const operator = { ...seen.operator, isStale: true as const };
      known.set(key, { operator, lookedAt }, { noUpdateTTL: true });
      return operator;
    }
  };
  const identify = async (key: string, find: () => Promise<Operator | undefined>): Promise<Operator | undefined> => {
    const seen = known.get(key);
    const since = Math.max(anewSince, performance.now() - FRESH_MS);
    if (seen !== undefined && seen.lookedAt > since) return seen.operator;
    const under = looking.get(key);
    if (under !== undefined && under.began > anewSince) return under.found;
    const found = look(key, find).finally(() => {
      if (looking.get(key)?.found === found) looking.delete(key);
    });
    looking.set(key, { began: performance.now(), found });
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
      return mayBeToken('exo_', given) ? identify(keyOf(given), () => findByToken(pool, given)) : undefined;
    },
    async bySession(cookies) {
      for (const cookie of cookies) {
        const operator = await identify(keyOf(cookie), () => findBySession(pool, cookie, operatorToken, hasIssuer));
        // While Postgres is away nobody else would say that it is over.
        if (operator?.session !== undefined && operator.session.expiresAt > now()) return operator;
      }
      return undefined;
    },
    lookAnew() {
      anewSince = performance.now();
    },
  };
}
