import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { digest, makeToken } from '../domain/make-token.ts';
import { authenticateTokens, type Authenticate } from '../locations/authenticate-tokens.ts';
import { databaseTime, OVERLAP_S } from '../locations/changed-tokens.ts';
import { placeOfSignalToken, seal, unseal, type SettingsKeys } from '../locations/settings-key.ts';
import { fieldsOf } from '../postgres/sql-rows.ts';
import type { Now } from '../postgres/database-clock.ts';
import { SIGNAL_KINDS, type SignalKind } from './find-order-id.ts';

/** A valid token. `secrets` are those of the platform; for `saleor`, the URL of its keys. */
export type SignalToken = { tokenId: string; kind: SignalKind; secrets: readonly string[]; expiresAt: number | null };

export const SignalTokenRow = z.object({
  tokenId: z.string(),
  kind: z.enum(SIGNAL_KINDS),
  label: z.string().nullable(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable().meta({ description: 'Accurate to ten seconds.' }),
  state: z.enum(['valid', 'expired', 'revoked']),
});
export type SignalTokenRow = z.infer<typeof SignalTokenRow>;

/** Makes a token. It is returned only here, and only its hash is stored. */
export async function issueSignalToken(
  pool: Pool,
  keys: SettingsKeys,
  about: { kind: SignalKind; secrets: readonly string[]; label?: string | undefined; expiresAt?: Date | undefined },
): Promise<{ tokenId: string; token: string }> {
  const { kind, secrets, label, expiresAt } = about;
  const [tokenId, token] = [randomUUID(), makeToken('exg_')];
  const sealed = secrets.length === 0 ? null : await seal(keys, secrets, placeOfSignalToken(tokenId));
  await pool.query(
    `INSERT INTO signal_tokens (token_id, sha256, kind, sealed, label, expires_at)
     VALUES ($1::uuid, decode($2, 'base64'), $3, $4, $5, $6::timestamptz)`,
    [tokenId, digest(token), kind, sealed, label, expiresAt],
  );
  return { tokenId, token };
}

export async function listSignalTokens(pool: Pool): Promise<SignalTokenRow[]> {
  const state = `CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= now() THEN 'expired' ELSE 'valid' END`;
  const { rows } = await pool.query<SignalTokenRow>(
    `SELECT ${fieldsOf(SignalTokenRow, { state })} FROM signal_tokens ORDER BY created_at, token_id`,
  );
  return rows;
}

/** Revokes a token. Processes may accept it for five more seconds. @returns whether the token exists */
export async function revokeSignalToken(pool: Pool, tokenId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'UPDATE signal_tokens SET revoked_at = coalesce(revoked_at, now()) WHERE token_id = $1::uuid',
    [tokenId],
  );
  return rowCount === 1;
}

/** Authenticates tokens, like those of webhooks. */
export function signalTokenAuthenticator(pool: Pool, keys: SettingsKeys, now: Now): Authenticate<SignalToken, never> {
  return authenticateTokens<SignalToken>({
    prefix: 'exg_',
    find: (digests) => findTokens(pool, keys, digests),
    async readChanges(since) {
      const mark = await databaseTime(pool);
      const { rows } = await pool.query<{ sha256: string }>(
        `SELECT encode(sha256, 'base64') AS sha256 FROM signal_tokens
         WHERE greatest(created_at, revoked_at) > to_timestamp($1::float8)`,
        [(since ?? mark) - OVERLAP_S],
      );
      return { mark, changed: rows };
    },
    now,
  });
}

type Found = Omit<SignalToken, 'secrets'> & { sha256: string; sealed: string | null };

async function findTokens(
  pool: Pool,
  keys: SettingsKeys,
  digests: string[],
): Promise<Map<string, SignalToken | Error>> {
  const { rows } = await pool.query<Found>({
    name: 'find-signal-tokens',
    text: `SELECT encode(sha256, 'base64') AS sha256, token_id AS "tokenId", kind, sealed,
                  extract(epoch FROM expires_at)::float8 * 1000 AS "expiresAt"
           FROM signal_tokens
           WHERE sha256 = ANY ((SELECT $1::bytea[])::bytea[]) AND revoked_at IS NULL
             AND (expires_at IS NULL OR expires_at > now())`,
    values: [digests.map((sha256) => Buffer.from(sha256, 'base64'))],
  });
  const opened = rows.map(async ({ sha256, sealed, ...token }) => {
    const secrets = sealed === null ? [] : unseal(keys, sealed, placeOfSignalToken(token.tokenId));
    const read = Promise.resolve(secrets).then((found) => ({ ...token, secrets: z.array(z.string()).parse(found) }));
    return [sha256, await read.catch((error: Error) => error)] as const;
  });
  return new Map(await Promise.all(opened));
}
