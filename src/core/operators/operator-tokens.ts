import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { z } from 'zod';
import { makeToken } from '../domain/make-token.ts';
import { digest } from './find-operator.ts';
import { GivenRight, inOrder, isWithin, reaching, refuseUnknown } from './given-right.ts';
import { BY_OPERATOR_TOKEN, Right, type Scope } from './operator.ts';

/** Limits of the number of valid tokens. `ofSome` is for those at only one admin's locations, `ofAll` for all. */
const MOST = { ofSome: 100, ofAll: 1_000 };

/** Days after which a token expires by default. */
const DEFAULT_DAYS = 90;

/** Pairs of look-alike letters: each letter, then the letter that it is compared as. */
const LOOK_ALIKE = new Map(
  'аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwвbкkмmнhтtαaοoρpνnτtυyκkιiχxεeβbηhμmζzli1i0o'
    .match(/../gu)
    ?.map((pair) => [pair.slice(0, 1), pair.slice(1)]),
);

/** The form in which names are compared: equal for names that people may confuse. */
function folded(name: string): string {
  const letters = name.normalize('NFKC').toLowerCase();
  return letters.replaceAll(/./gu, (letter) => LOOK_ALIKE.get(letter) ?? letter);
}

export const NewOperatorToken = GivenRight.extend({
  name: z
    .string()
    .normalize('NFKC')
    .trim()
    // Hangul fillers and the Braille blank are invisible too, but are not control characters.
    .regex(/^[^\p{C}\p{Default_Ignorable_Code_Point}\u2800]{1,100}$/u, {
      error: 'is not 1 to 100 visible characters on one line',
    })
    .refine((name) => !name.includes('@') && folded(name) !== folded(BY_OPERATOR_TOKEN.name), {
      error: 'can be confused with another operator: use no e-mail address, and not OPERATOR_TOKEN',
    })
    .meta({
      description: 'The name of its holder in the audit, unique among valid tokens.',
      examples: ['nightly-report'],
    }),
});
/** A token with `expiresAt: null` never expires. Without a value it expires after DEFAULT_DAYS. */
type NewOperatorToken = z.infer<typeof NewOperatorToken> & { expiresAt?: Date | null | undefined };

export const OperatorToken = Right.extend({
  tokenId: z.string(),
  name: z.string(),
  createdAt: z.date(),
  expiresAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
  lastUsedAt: z.date().nullable().meta({ description: 'Accurate to a minute.' }),
  state: z.enum(['valid', 'expired', 'revoked']),
}).meta({ id: 'OperatorToken' });
export type OperatorToken = z.infer<typeof OperatorToken>;

const SHOWN = `
  token_id AS "tokenId", name, roles, locations, location_groups AS "locationGroups", created_at AS "createdAt", expires_at AS "expiresAt",
  revoked_at AS "revokedAt", last_used_at AS "lastUsedAt",
  CASE WHEN expires_at <= coalesce(revoked_at, now()) THEN 'expired'
       WHEN revoked_at IS NOT NULL THEN 'revoked' ELSE 'valid' END AS state`;

/**
 * Makes a named token. It is returned once, and only its hash is stored.
 * @param within the scope of the issuing admin, which the token may not exceed. Undefined for an admin of all locations
 */
export async function issueOperatorToken(
  pool: Pool,
  { name, expiresAt, ...given }: NewOperatorToken,
  within?: Scope,
): Promise<(OperatorToken & { token: string }) | { refused: string }> {
  const right = inOrder(given);
  const refused = await refuseUnknown(pool, right);
  if (refused !== undefined) return { refused };
  const { rows: valid } = await pool.query<{ name: string; counts: boolean }>(
    `SELECT name, coalesce(${isWithin(1)}, false) AS counts FROM operator_tokens
     WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    [within?.locations ?? null, within?.groups ?? null],
  );
  const most = within === undefined ? MOST.ofAll : MOST.ofSome;
  if (valid.filter(({ counts }) => counts).length >= most) {
    return { refused: `there are already ${most} valid tokens: revoke an unused one` };
  }
  const same = valid.find((each) => folded(each.name) === folded(name));
  // guard: names-elsewhere
  if (same !== undefined) return alreadyCalled(same.counts ? same.name : undefined);
  // An expired token no longer reserves its name.
  await pool.query(
    `UPDATE operator_tokens SET revoked_at = now() WHERE name = $1::text AND revoked_at IS NULL AND expires_at <= now()`,
    [name],
  );
  const token = makeToken('exo_');
  const { rows } = await pool.query<OperatorToken>(
    `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations, location_groups, expires_at)
     VALUES ($1::uuid, $2::bytea, $3::text, $4::text[], $5::text[], $6::text[],
             coalesce($7::timestamptz, now() + make_interval(days => $8)))
     ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING ${SHOWN}`,
    [
      randomUUID(),
      digest(token),
      name,
      right.roles,
      right.locations,
      right.locationGroups,
      expiresAt ?? null,
      expiresAt === null ? null : DEFAULT_DAYS,
    ],
  );
  const [issued] = rows;
  return issued === undefined ? alreadyCalled(name) : { ...issued, token };
}

/** @param name undefined if the token may not be shown to the caller */
function alreadyCalled(name: string | undefined): { refused: string } {
  if (name !== undefined) return { refused: `a valid token is called "${name}": revoke it, or choose another name` };
  return { refused: 'a valid token has a name that looks like this one: choose another, or let its admin revoke it' };
}

/** @param within the scope in which a listed token must apply. Nothing outside of it is shown. Undefined for all tokens */
export async function listOperatorTokens(pool: Pool, within?: Scope): Promise<OperatorToken[]> {
  const { rows } = await pool.query<OperatorToken>(
    `SELECT ${SHOWN} FROM operator_tokens ORDER BY created_at, token_id`,
  );
  return reaching(pool, rows, within);
}

/**
 * Revokes a named token and its sessions. Processes stop accepting them within five seconds.
 * @param within the scope to which the token must be limited; undefined for all tokens
 * @returns undefined if there is no such token
 */
export async function revokeOperatorToken(
  pool: Pool,
  tokenId: string,
  within?: Scope,
): Promise<OperatorToken | undefined> {
  const { rows } = await pool.query<OperatorToken>(
    `UPDATE operator_tokens SET revoked_at = coalesce(revoked_at, now())
     WHERE token_id::text = $1::text AND ${isWithin(2)} RETURNING ${SHOWN}`,
    [tokenId, within?.locations ?? null, within?.groups ?? null],
  );
  return rows[0];
}
