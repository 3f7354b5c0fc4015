import { createHash, timingSafeEqual } from 'node:crypto';
import type { Pool } from 'pg';
import { findBySession, findByToken } from '../../core/operators/find-operator.ts';
import { BY_OPERATOR_TOKEN, type Operator } from '../../core/operators/operator.ts';

/** Finds out who somebody is by what they show. Undefined for nobody, whatever the reason. */
export type Identify = {
  /** By OPERATOR_TOKEN or a named token. */
  byToken(given: string | undefined): Promise<Operator | undefined>;
  /** By a session's cookie, of which there may be several under its name. */
  bySession(cookies: readonly string[]): Promise<Operator | undefined>;
};

/** @param operatorToken OPERATOR_TOKEN. The time to compare it shows neither the first difference nor the length */
export function identifier(pool: Pool, operatorToken: string | undefined): Identify {
  const ours = operatorToken === undefined ? undefined : digest(operatorToken);
  return {
    async byToken(given) {
      if (given === undefined) return undefined;
      if (ours !== undefined && timingSafeEqual(digest(given), ours)) return BY_OPERATOR_TOKEN;
      return findByToken(pool, given);
    },
    bySession: async (cookies) => (cookies.length === 0 ? undefined : findBySession(pool, cookies, operatorToken)),
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
