import type { Pool } from 'pg';
import { readSealHeader, type SealHeader } from './settings-key.ts';

/** The number of texts sealed with one key of SETTINGS_KEY, for their row or, by an earlier version, for any. */
export type SealedTexts = SealHeader & { count: number };

/** Counts the stored texts by key, without decrypting any. */
export async function keysInUse(pool: Pool): Promise<SealedTexts[]> {
  // A text begins with its header in base64url, which names the key and the row: of a key's texts one header is enough.
  const { rows } = await pool.query<{ header: string; count: number }>(
    `SELECT min(header) AS header, count(*)::int AS count
     FROM (SELECT header, CASE WHEN header ~ '^[A-Za-z0-9_-]+$' AND length(header) % 4 <> 1
                               THEN encode(decode(rpad(translate(header, '-_', '+/'), (length(header) + 3) / 4 * 4, '='),
                                                  'base64'), 'escape') END AS json
           FROM (SELECT split_part(sealed, '.', 1) AS header
                 FROM (SELECT settings AS sealed FROM locations
                       UNION ALL SELECT "grant" FROM credentials WHERE "grant" IS NOT NULL
                       UNION ALL SELECT sealed FROM webhooks WHERE sealed IS NOT NULL) AS texts) AS headers) AS decoded
     GROUP BY substring(json FROM '"kid":"([^"]*)"'), json LIKE '%"place":%'`,
  );
  const counts = new Map<string, SealedTexts>();
  for (const { header, count } of rows) {
    const read = readSealHeader(`${header}....`);
    const key = `${read.keyId} ${read.isBound}`;
    counts.set(key, { ...read, count: count + (counts.get(key)?.count ?? 0) });
  }
  return [...counts.values()];
}
