import type { Pool } from 'pg';

/** A valid token, without settings. */
export type ListedToken = {
  tokenId: string;
  integration: string;
  locationId: string;
  /** Milliseconds since the epoch, by Postgres's clock; null if the token does not expire. */
  expiresAt: number | null;
};

/** A token with its SHA-256 in base64. If the token was removed, all fields of `ListedToken` are null. */
export type ChangedToken = ListedToken & { sha256: string; isValid: boolean };

/** From this many changes on, it is cheaper to read all tokens. */
const MOST_CHANGED = 500;
/** Reads overlap by this time, because a change may be committed some seconds after its timestamp. */
export const OVERLAP_S = 60;

/** SQL of the columns of a `ListedToken`, from `webhook_tokens t`. */
export const LISTED_TOKEN = `t.token_id AS "tokenId", t.integration, t.location_id AS "locationId",
             extract(epoch FROM t.expires_at)::float8 * 1000 AS "expiresAt"`;

/** A token appears twice if its location changed too. */
const CHANGED = `
  WITH changed AS (
    SELECT sha256 FROM webhook_tokens WHERE greatest(created_at, revoked_at) > to_timestamp($1::float8)
    UNION ALL
    SELECT t.sha256 FROM locations l JOIN webhook_tokens t USING (location_id)
    WHERE l.updated_at > to_timestamp($1::float8)
    LIMIT $2
  )
  SELECT encode(t.sha256, 'base64') AS sha256, ${LISTED_TOKEN},
         t.revoked_at IS NULL AND t.integration = l.integration AS "isValid"
  FROM changed JOIN webhook_tokens t USING (sha256) JOIN locations l USING (location_id)
  UNION ALL
  SELECT encode(sha256, 'base64'), NULL, NULL, NULL, NULL, false
  FROM removed_tokens WHERE removed_at > to_timestamp($1::float8)
  LIMIT $2`;

/**
 * Reads the tokens that were issued, revoked or removed, and all tokens of locations that were stored again. Some of
 * them may be unchanged, because the read overlaps with the previous one.
 * @param since the mark of the previous read, in seconds since the epoch; by default now
 * @returns the mark for the next read; `changed` is undefined if there are too many changes
 */
export async function readChangedTokens(
  pool: Pool,
  since?: number,
): Promise<{ mark: number; changed: ChangedToken[] | undefined }> {
  const mark = await databaseTime(pool);
  const { rows } = await pool.query<ChangedToken>(CHANGED, [(since ?? mark) - OVERLAP_S, MOST_CHANGED]);
  return { mark, changed: rows.length < MOST_CHANGED ? rows : undefined };
}

/** @returns seconds since the epoch */
export async function databaseTime(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ seconds: number }>('SELECT extract(epoch FROM now())::float8 AS seconds');
  return rows[0]?.seconds ?? Number.NaN;
}
