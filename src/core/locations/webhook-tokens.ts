import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Now } from '../postgres/database-clock.ts';
import { WrongLocation, type OpenSettings } from './locations.ts';
import { digest, makeToken } from './make-token.ts';
import type { ListedToken } from './token-list.ts';
import type { Provider } from '../domain/provider.ts';
import { OLD_TOKEN_STATES, type OldTokenState } from '../domain/webhook-cause.ts';

/** The scope of a valid token: one location, through one integration. */
export type TokenScope = ListedToken & { provider: Provider; settings: unknown };

/** A token that was issued once, and opens nothing: with the location and the integration that it was issued for. */
export type OldToken = Pick<ListedToken, 'tokenId' | 'integration' | 'locationId'> & { state: OldTokenState };

export const TokenRow = z.object({
  tokenId: z.string(),
  locationId: z.string(),
  integration: z.string(),
  label: z.string().nullable(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable().meta({ description: 'To some ten seconds.' }),
});
export type TokenRow = z.infer<typeof TokenRow>;

export const TOKEN_STATES = ['valid', ...OLD_TOKEN_STATES] as const;
export type TokenState = (typeof TOKEN_STATES)[number];

const CACHE_MS = 5_000;
/** Age from which an answer that is still good is looked up anew, so that no webhook of a busy location waits for it. */
const REFRESH_MS = 3_000;
const CACHE_SIZE = 10_000;
const MAX_WAITING = 1_024;

/**
 * Makes a token for a location's present integration. It is returned once, and only its hash is stored.
 * @throws WrongLocation if there is no such location
 */
export async function issueToken(
  pool: Pool,
  about: { locationId: string; label?: string | undefined; expiresAt?: Date | undefined },
): Promise<{ tokenId: string; token: string; integration: string }> {
  const token = makeToken();
  const tokenId = randomUUID();
  const { rows } = await pool.query<{ integration: string }>(
    `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id, label, expires_at)
     SELECT $1, $2, integration, location_id, $4, $5 FROM locations WHERE location_id = $3
     RETURNING integration`,
    [tokenId, Buffer.from(digest(token), 'base64'), about.locationId, about.label ?? null, about.expiresAt ?? null],
  );
  const row = rows[0];
  if (row === undefined) throw new WrongLocation(`no location is called "${about.locationId}"`);
  return { tokenId, token, integration: row.integration };
}

export async function listTokens(pool: Pool, locationId: string | undefined): Promise<TokenRow[]> {
  const { rows } = await pool.query<TokenRow>(
    `SELECT token_id AS "tokenId", location_id AS "locationId", integration, label, created_at AS "createdAt",
            expires_at AS "expiresAt", revoked_at AS "revokedAt", last_used_at AS "lastUsedAt"
     FROM webhook_tokens WHERE $1::text IS NULL OR location_id = $1 ORDER BY location_id, created_at`,
    [locationId ?? null],
  );
  return rows;
}

/** @param integration the present integration of the token's location */
export function stateOfToken(token: TokenRow, integration: string | undefined, now: Date): TokenState {
  if (token.revokedAt !== null) return 'revoked';
  if (token.expiresAt !== null && token.expiresAt <= now) return 'expired';
  return token.integration === integration ? 'valid' : 'of another integration';
}

export const RevokedToken = z.object({ tokenId: z.string(), revoked: z.literal(true) });

/**
 * Revokes a token, within five seconds: the life of a cached answer.
 * @param locationId if given, the location that the token must belong to
 * @returns whether the token exists
 */
export async function revokeToken(pool: Pool, tokenId: string, locationId?: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE webhook_tokens SET revoked_at = coalesce(revoked_at, now())
     WHERE token_id::text = $1 AND ($2::text IS NULL OR location_id = $2)`,
    [tokenId, locationId ?? null],
  );
  return rowCount === 1;
}

/** Finds a token's scope; immediately if it is cached. */
export type AuthenticateToken = (token: string) => TokenScope | Promise<TokenScope | OldToken | undefined>;

/**
 * Authenticates tokens. Only valid ones are cached, for five seconds. Look-ups are batched, one query at a time, so
 * that a flood of invented tokens costs Postgres one small query after the other and never more.
 * @returns a function that resolves to undefined for a token that was never issued, and throws if the look-up fails
 */
export function tokenAuthenticator(pool: Pool, open: OpenSettings, now: Now): AuthenticateToken {
  /** Cached by the monotonic clock: Postgres's may step back at a failover, and a revoked token must not live on. */
  const known = new Map<string, { scope: TokenScope; askedAt: number }>();
  const waiting = new Map<string, PromiseWithResolvers<TokenScope | OldToken | undefined>>();
  let isLookingUp = false;

  const lookUp = async (): Promise<void> => {
    isLookingUp = true;
    while (waiting.size > 0) {
      const batch = new Map(waiting);
      waiting.clear();
      try {
        const askedAt = performance.now();
        const found = await findScopes(pool, open, [...batch.keys()]);
        for (const [sha256, answer] of batch) {
          const scope = found.get(sha256);
          if (scope instanceof Error) {
            answer.reject(scope);
            continue;
          }
          if (scope === undefined || isOld(scope)) known.delete(sha256);
          else known.set(sha256, { scope, askedAt });
          answer.resolve(scope);
        }
      } catch (error) {
        for (const answer of batch.values()) answer.reject(error);
      }
    }
    isLookingUp = false;
  };

  const isFresh = ({ scope, askedAt }: { scope: TokenScope; askedAt: number }): boolean =>
    performance.now() - askedAt < CACHE_MS && (scope.expiresAt === null || scope.expiresAt > now().getTime());

  const ask = (sha256: string): Promise<TokenScope | OldToken | undefined> => {
    let answer = waiting.get(sha256);
    if (answer === undefined) {
      if (waiting.size >= MAX_WAITING) return Promise.reject(new Error('too many tokens wait to be judged'));
      answer = Promise.withResolvers<TokenScope | OldToken | undefined>();
      waiting.set(sha256, answer);
      if (!isLookingUp) void lookUp();
    }
    return answer.promise;
  };

  return (token) => {
    const sha256 = digest(token);
    const cached = known.get(sha256);
    if (cached !== undefined && isFresh(cached)) {
      // If that fails, the next webhook asks again.
      if (performance.now() - cached.askedAt > REFRESH_MS) ask(sha256).catch(() => {});
      return cached.scope;
    }
    if (known.size >= CACHE_SIZE) known.clear();
    known.delete(sha256);
    return ask(sha256);
  };
}

export function isOld(token: object): token is OldToken {
  return 'state' in token;
}

type TokenFound = ListedToken & { sealedSettings: string; state: OldTokenState | null };

/** Finds the scopes. If one location's settings cannot be opened, only its own tokens get the error. */
async function findScopes(
  pool: Pool,
  open: OpenSettings,
  digests: string[],
): Promise<Map<string, TokenScope | OldToken | Error>> {
  const { rows } = await pool.query<TokenFound & { sha256: string }>({
    name: 'find-token-scopes',
    text: `SELECT encode(t.sha256, 'base64') AS sha256, t.token_id AS "tokenId", t.integration,
                  t.location_id AS "locationId", l.settings AS "sealedSettings",
                  extract(epoch FROM t.expires_at)::float8 * 1000 AS "expiresAt",
                  CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked'
                       WHEN t.expires_at <= now() THEN 'expired'
                       WHEN t.integration <> l.integration THEN 'of another integration' END AS state
           FROM webhook_tokens t JOIN locations l USING (location_id)
           WHERE t.sha256 = ANY ($1::bytea[])`,
    values: [digests.map((sha256) => Buffer.from(sha256, 'base64'))],
  });
  const scopes = rows.map(async ({ sha256, ...row }) => [sha256, await openScope(row, open)] as const);
  return new Map(await Promise.all(scopes));
}

async function openScope(
  { sealedSettings, state, ...row }: TokenFound,
  open: OpenSettings,
): Promise<TokenScope | OldToken | Error> {
  const { tokenId, integration, locationId } = row;
  if (state !== null) return { tokenId, integration, locationId, state };
  const opened = await open({ ...row, sealedSettings }).catch((error: Error) => error);
  return opened instanceof Error ? opened : { ...row, ...opened };
}
