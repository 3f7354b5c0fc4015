import { createHmac, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Now } from '../postgres/database-clock.ts';
import { deriveKey } from './describe-settings.ts';
import { getLocation, selectApplication, type DecryptSettings, type SealedSettings } from './locations.ts';
import type { SettingsKeys } from './settings-key.ts';
import { authenticateTokens, type Authenticate } from './authenticate-tokens.ts';
import { LISTED_TOKEN, readChangedTokens, type ListedToken } from './changed-tokens.ts';
import { digest, makeToken } from '../domain/make-token.ts';
import type { Provider } from '../domain/provider.ts';
import { OLD_TOKEN_STATES, type OldTokenState } from '../domain/webhook-cause.ts';

/** The scope of a valid token: one location, through one integration. */
export type TokenScope = ListedToken & { provider: Provider; settings: unknown };

export type OldToken = Pick<ListedToken, 'tokenId' | 'integration' | 'locationId'> & { state: OldTokenState };

export const TokenRow = z.object({
  tokenId: z.string(),
  locationId: z.string(),
  integration: z.string(),
  label: z.string().nullable(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable().meta({ description: 'Accurate to ten seconds.' }),
});
export type TokenRow = z.infer<typeof TokenRow>;

export const TOKEN_STATES = ['valid', ...OLD_TOKEN_STATES] as const;
export type TokenState = (typeof TOKEN_STATES)[number];

export class KeyUsed extends Error {
  override readonly name = 'KeyUsed';
  statusCode: 409 | 422 = 422;
}

export type IssuedToken = { tokenId: string; token: string; integration: string };

const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Makes a token for a location's present integration. The token is returned only here, and only its hash is stored.
 * @param about.repeatable if the same caller repeats the request with the same key, it gets the same token again, because
 *   the token is derived from the key and from SETTINGS_KEY
 * @throws WrongLocation if there is no such location
 * @throws KeyUsed if the key made a token with another label or expiry, or one that is revoked or expired
 */
export async function issueToken(
  pool: Pool,
  about: {
    locationId: string;
    label?: string | undefined;
    expiresAt?: Date | undefined;
    repeatable?: { keys: SettingsKeys; by: string; idempotencyKey: string } | undefined;
  },
): Promise<IssuedToken> {
  const { locationId, label = null, expiresAt = null, repeatable } = about;
  const { integration } = await getLocation(pool, locationId);
  const made = repeatable && deriveToken(repeatable, [locationId, integration, await readCreation(pool, locationId)]);
  const { tokenId, token } = made ?? { tokenId: randomUUID(), token: makeToken('exw_') };
  const { rowCount } = await pool
    .query(
      `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id, label, expires_at)
       VALUES ($1::uuid, $2, $3, $4, $5::text, $6::timestamptz) ON CONFLICT (token_id) DO NOTHING`,
      [tokenId, Buffer.from(digest(token), 'base64'), integration, locationId, label, expiresAt],
    )
    .catch(async (error: { code?: string }) => {
      // The location was just removed, so this throws what it throws for any location that is not there.
      if (error.code === FOREIGN_KEY_VIOLATION) await getLocation(pool, locationId);
      throw error;
    });
  if (rowCount === 0) {
    const { rows: same } = await pool.query<{ isValid: boolean }>(
      `SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS "isValid" FROM webhook_tokens
       WHERE token_id = $1::uuid AND label IS NOT DISTINCT FROM $2::text AND expires_at IS NOT DISTINCT FROM $3::timestamptz`,
      [tokenId, label, expiresAt],
    );
    if (same[0] === undefined) throw new KeyUsed('This Idempotency-Key was used for another token. Use a new key.');
    const gone = new KeyUsed('The token of this Idempotency-Key is no longer valid. Use a new key.');
    // guard: revoked-is-over
    if (!same[0].isValid) throw Object.assign(gone, { statusCode: 409 });
  }
  return { tokenId, token, integration };
}

async function readCreation(pool: Pool, locationId: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ at: string }>(
    'SELECT extract(epoch FROM created_at)::text AS at FROM locations WHERE location_id = $1',
    [locationId],
  );
  return rows[0]?.at;
}

/** @param scope includes when the location was created, so that a removed location's tokens never become valid again */
function deriveToken(
  { keys, by, idempotencyKey }: { keys: SettingsKeys; by: string; idempotencyKey: string },
  scope: readonly (string | undefined)[],
): { tokenId: string; token: string } {
  const key = deriveKey(keys, 'webhook token');
  const derive = (part: string): Buffer<ArrayBuffer> => {
    const about = JSON.stringify([part, by, idempotencyKey, ...scope]);
    return createHmac('sha256', key).update(about).digest();
  };
  const id = derive('id').subarray(0, 16);
  // A UUID of version 8, whose other bits are our own: https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x80, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  const tokenId = id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { tokenId, token: makeToken('exw_', derive('token')) };
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

/** @param integration the present integration of the token's location; undefined if there is no such location */
export function stateOfToken(token: TokenRow, integration: string | undefined, now: Date): TokenState {
  if (token.revokedAt !== null) return 'revoked';
  if (token.expiresAt !== null && token.expiresAt <= now) return 'expired';
  return token.integration === integration ? 'valid' : 'of another integration';
}

/** A new token. It is not shown again. */
export const IssuedToken = z.object({
  token: z.string(),
  url: z.string().meta({ description: 'The URL for the POS.' }),
  tokenId: z.string(),
});

export const RevokedToken = z.object({ tokenId: z.string(), revoked: z.literal(true) });

/**
 * Revokes a token. Processes may accept it for five more seconds, because they cache tokens for that long.
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

export type AuthenticateToken = Authenticate<TokenScope, OldToken>;

export function tokenAuthenticator(pool: Pool, decryptSettings: DecryptSettings, now: Now): AuthenticateToken {
  return authenticateTokens<TokenScope, OldToken>({
    prefix: 'exw_',
    find: (digests) => findScopes(pool, decryptSettings, digests),
    readChanges: (since) => readChangedTokens(pool, since),
    now,
  });
}

export function isOld(token: object): token is OldToken {
  return 'state' in token;
}

type TokenFound = ListedToken & SealedSettings & { state: OldTokenState | null };

/** Finds the scopes of tokens. If one location's settings cannot be decrypted, only its own tokens get the error. */
async function findScopes(
  pool: Pool,
  decryptSettings: DecryptSettings,
  digests: string[],
): Promise<Map<string, TokenScope | OldToken | Error>> {
  const { rows } = await pool.query<TokenFound & { sha256: string }>({
    name: 'find-token-scopes',
    text: `SELECT encode(t.sha256, 'base64') AS sha256, ${LISTED_TOKEN}, coalesce(f.settings, l.settings) AS "sealedSettings",
                  ${selectApplication('coalesce(f.application, l.application)')} AS "sealedApplication",
                  CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked'
                       WHEN t.expires_at <= now() THEN 'expired'
                       WHEN t.integration <> l.integration AND f.settings IS NULL THEN 'of another integration' END AS state
           FROM webhook_tokens t JOIN locations l USING (location_id)
           -- guard: former-tokens
           LEFT JOIN former_settings f ON f.location_id = t.location_id AND f.integration = t.integration
             AND t.integration <> l.integration
             AND EXISTS (SELECT FROM orders o WHERE o.location_id = t.location_id AND o.ended_at IS NULL
                                                AND o.integration = t.integration)
           -- In a subquery, the array has no known length, so Postgres makes one plan for all lengths.
           WHERE t.sha256 = ANY ((SELECT $1::bytea[])::bytea[])`,
    values: [digests.map((sha256) => Buffer.from(sha256, 'base64'))],
  });
  const scopes = rows.map(async ({ sha256, ...row }) => [sha256, await readScope(row, decryptSettings)] as const);
  return new Map(await Promise.all(scopes));
}

async function readScope(
  { sealedSettings, sealedApplication, state, ...row }: TokenFound,
  decryptSettings: DecryptSettings,
): Promise<TokenScope | OldToken | Error> {
  const { tokenId, integration, locationId } = row;
  if (state !== null) return { tokenId, integration, locationId, state };
  const opened = await decryptSettings({ ...row, sealedSettings, sealedApplication }).catch((error: Error) => error);
  return opened instanceof Error ? opened : { ...row, ...opened };
}
