import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { makeToken } from '../domain/make-token.ts';
import { digest } from './find-operator.ts';
import { GivenRight, inOrder, refuseUnknown } from './given-right.ts';
import { BY_OPERATOR_TOKEN, Right } from './operator.ts';

export const NewOperatorToken = GivenRight.extend({
  name: z
    .string()
    .trim()
    .regex(/^[^\p{C}]{1,100}$/u, { error: 'is not 1 to 100 characters of one line' })
    .refine((name) => !name.includes('@') && name !== BY_OPERATOR_TOKEN.name, {
      error: 'may be taken for somebody else: no address, and not OPERATOR_TOKEN',
    })
    .meta({
      description: 'Whose it is, as the audit names them; of no other valid token.',
      examples: ['nightly-report'],
    }),
});
type NewOperatorToken = z.infer<typeof NewOperatorToken> & { expiresAt?: Date | undefined };

export const OperatorToken = Right.extend({
  tokenId: z.string(),
  name: z.string(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable().meta({ description: 'To a minute.' }),
  state: z.enum(['valid', 'expired', 'revoked']),
}).meta({ id: 'OperatorToken' });
export type OperatorToken = z.infer<typeof OperatorToken>;

const SHOWN = `
  token_id AS "tokenId", name, roles, locations, created_at AS "createdAt", expires_at AS "expiresAt",
  revoked_at AS "revokedAt", last_used_at AS "lastUsedAt",
  CASE WHEN expires_at <= coalesce(revoked_at, now()) THEN 'expired'
       WHEN revoked_at IS NOT NULL THEN 'revoked' ELSE 'valid' END AS state`;

/** Makes a named token. It is returned once, and only its hash is stored. */
export async function issueOperatorToken(
  pool: Pool,
  { name, expiresAt, ...given }: NewOperatorToken,
): Promise<(OperatorToken & { token: string }) | { refused: string }> {
  const right = inOrder(given);
  const refused = await refuseUnknown(pool, right);
  if (refused !== undefined) return { refused };
  // What has expired no longer holds its name.
  await pool.query(
    `UPDATE operator_tokens SET revoked_at = now() WHERE name = $1::text AND revoked_at IS NULL AND expires_at <= now()`,
    [name],
  );
  const token = makeToken('exo_');
  const { rows } = await pool.query<OperatorToken>(
    `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations, expires_at)
     VALUES ($1::uuid, $2::bytea, $3::text, $4::text[], $5::text[], $6::timestamptz)
     ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING ${SHOWN}`,
    [randomUUID(), digest(token), name, right.roles, right.locations, expiresAt ?? null],
  );
  const [issued] = rows;
  if (issued === undefined) return { refused: `a valid token is called "${name}": revoke that, or take another name` };
  return { ...issued, token };
}

/** @param within if given, only those that open nothing elsewhere */
export async function listOperatorTokens(pool: Pool, within?: readonly string[]): Promise<OperatorToken[]> {
  const { rows } = await pool.query<OperatorToken>(
    `SELECT ${SHOWN} FROM operator_tokens WHERE $1::text[] IS NULL OR locations <@ $1 ORDER BY created_at, token_id`,
    [within ?? null],
  );
  return rows;
}

/**
 * Revokes a named token, and with it the sessions that it opened, within five seconds.
 * @param within as of `listOperatorTokens`
 * @returns undefined if there is no such token
 */
export async function revokeOperatorToken(
  pool: Pool,
  tokenId: string,
  within?: readonly string[],
): Promise<OperatorToken | undefined> {
  const { rows } = await pool.query<OperatorToken>(
    `UPDATE operator_tokens SET revoked_at = coalesce(revoked_at, now())
     WHERE token_id::text = $1::text AND ($2::text[] IS NULL OR locations <@ $2) RETURNING ${SHOWN}`,
    [tokenId, within ?? null],
  );
  return rows[0];
}
