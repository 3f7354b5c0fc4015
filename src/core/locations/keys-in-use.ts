import type { Pool } from 'pg';
import { keyIdOf } from './settings-key.ts';

/** The number of texts sealed with one key of SETTINGS_KEY. */
export type SealedTexts = { what: 'settings' | 'grants' | 'webhooks'; keyId: string; count: number };

/** Counts the stored texts by key, without decrypting any. */
export async function keysInUse(pool: Pool): Promise<SealedTexts[]> {
  // A text begins with its header, which names the key: there are few different ones, however many texts.
  const { rows } = await pool.query<{ what: SealedTexts['what']; header: string; count: number }>(
    `SELECT 'settings' AS what, split_part(settings, '.', 1) AS header, count(*)::int FROM locations GROUP BY 2
     UNION ALL
     SELECT 'grants', split_part("grant", '.', 1), count(*)::int FROM credentials WHERE "grant" IS NOT NULL GROUP BY 2
     UNION ALL
     SELECT 'webhooks', split_part(sealed, '.', 1), count(*)::int
     FROM webhooks WHERE outcome = 'dropped' AND sealed IS NOT NULL GROUP BY 2`,
  );
  return rows.map(({ what, header, count }) => ({ what, keyId: keyIdOf(`${header}....`), count }));
}
