import type { Pool } from 'pg';
import { placeOfWaiting } from './connect-grants.ts';
import { placeOfGrant } from './credential-store.ts';
import { placeOfApplication, placeOfSettings } from './locations.ts';
import {
  keyIdOf,
  placeOfSignalToken,
  placeOfWebhook,
  seal,
  SealedElsewhere,
  type SettingsKeys,
  unseal,
} from './settings-key.ts';

const PAGE = 500;

export type Rekeyed = {
  /** Texts that were (in a dry run: would be) encrypted again, with the first key. */
  rewritten: number;
  /** Texts that already had the first key. */
  current: number;
  /** Texts that could not be decrypted and were left as they are. */
  unreadable: number;
};

export type Rekeying = {
  /** Also the secrets of the platforms that sign signals. */
  settings: Rekeyed;
  /** Access and refresh tokens of POS systems, also those that their owner has not confirmed yet. */
  grants: Rekeyed;
  /** Headers that are needed to verify dropped webhooks again, and bodies with our token. */
  webhooks: Rekeyed;
  /** Ids of the keys that unreadable texts need. SETTINGS_KEY lacks these ids, or has other keys under them. */
  missingKeys: string[];
  /** The rows of texts that are unreadable because they were encrypted for another row. */
  misplaced: string[];
};

/**
 * Encrypts all sealed texts again, one by one, with the first key. Services may run meanwhile: if one replaces a text,
 * the new text stays. This is safe to repeat and to interrupt.
 */
export async function rekey(pool: Pool, keys: SettingsKeys, dryRun: boolean): Promise<Rekeying> {
  const missing = new Set<string>();
  const misplaced: string[] = [];
  const all = async (...columns: Column[]): Promise<Rekeyed> => {
    const counts: Rekeyed = { rewritten: 0, current: 0, unreadable: 0 };
    for (const column of columns) {
      for await (const text of textsIn(pool, column)) {
        const done = await sealAgain(pool, column, keys, text, dryRun);
        if (done.result !== undefined) counts[done.result] += 1;
        if (done.missingKey !== undefined) missing.add(done.missingKey);
        if (done.misplaced !== undefined) misplaced.push(done.misplaced);
      }
    }
    return counts;
  };
  const settings = await all(
    textsById('locations', 'location_id', 'settings', placeOfSettings),
    textsById('former_settings', 'location_id', 'settings', placeOfSettings),
    textsById('applications', 'name', 'settings', placeOfApplication),
    textsById('signal_tokens', 'token_id::text', 'sealed', placeOfSignalToken),
  );
  const grants = await all(GRANTS, textsById('connect_links', 'link_id::text', 'sealed', placeOfWaiting));
  const webhooks = await all(...(await daysOf(pool)).map(webhooksOf));
  return { settings, grants, webhooks, missingKeys: [...missing].sort(), misplaced };
}

type Sealed = { key: string[]; sealed: string };

/** A column of encrypted texts. In its SQL, `$1` is a primary key, as text[]. */
type Column = {
  table: string;
  column: string;
  /** Selects a page of texts: those after the key `$1`, or the first ones. */
  page: string;
  where: string;
  /** The place that the text with this primary key is encrypted for. */
  placeOf(key: string[]): string;
};

async function* textsIn(pool: Pool, { page }: Column): AsyncGenerator<Sealed> {
  let after: string[] | undefined;
  for (;;) {
    const { rows } = await pool.query<Sealed>(page, [after ?? null]);
    yield* rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.key;
  }
}

type Done = {
  /** Undefined if the text was deleted meanwhile. */
  result?: 'rewritten' | 'current' | 'unreadable';
  missingKey?: string;
  misplaced?: string;
};

async function sealAgain(pool: Pool, of: Column, keys: SettingsKeys, text: Sealed, dryRun: boolean): Promise<Done> {
  const [newest] = keys.keys();
  const { table, column, where } = of;
  const place = of.placeOf(text.key);
  let sealed: string | null | undefined = text.sealed;
  while (typeof sealed === 'string') {
    const keyId = keyIdOf(sealed);
    let value: unknown;
    try {
      value = await unseal(keys, sealed, place);
    } catch (error) {
      const isMisplaced = error instanceof SealedElsewhere;
      return { result: 'unreadable', ...(isMisplaced ? { misplaced: place } : { missingKey: keyId }) };
    }
    if (keyId === newest) return { result: 'current' };
    if (dryRun) return { result: 'rewritten' };
    const replace = `UPDATE ${table} SET ${column} = $3::text WHERE ${where} AND ${column} = $2::text`;
    const { rowCount } = await pool.query(replace, [text.key, sealed, await seal(keys, value, place)]);
    if (rowCount === 1) return { result: 'rewritten' };
    // Somebody has replaced the text meanwhile.
    const read = `SELECT ${column} AS sealed FROM ${table} WHERE ${where}`;
    sealed = (await pool.query<{ sealed: string | null }>(read, [text.key])).rows[0]?.sealed;
  }
  return {};
}

/** @param id SQL of the primary key, as text */
const textsById = (table: string, id: string, column: string, placeOf: (id: string) => string): Column => ({
  table,
  column,
  page: `SELECT ARRAY[${id}] AS key, ${column} AS sealed FROM ${table}
         WHERE ${column} IS NOT NULL AND ${id} > coalesce(($1::text[])[1], '') ORDER BY ${id} LIMIT ${PAGE}`,
  where: `${id} = ($1::text[])[1]`,
  placeOf: ([key = '']) => placeOf(key),
});

const GRANTS: Column = {
  table: 'credentials',
  column: '"grant"',
  page: `SELECT ARRAY[encode(seed_sha256, 'hex')] AS key, "grant" AS sealed FROM credentials
         WHERE seed_sha256 > decode(coalesce(($1::text[])[1], ''), 'hex') AND "grant" IS NOT NULL
         ORDER BY seed_sha256 LIMIT ${PAGE}`,
  where: `seed_sha256 = decode(($1::text[])[1], 'hex')`,
  placeOf: ([key = '']) => placeOfGrant(key),
};

/** The encrypted texts of one day's webhooks. Few webhooks have one, and a partial index finds those that do. */
const webhooksOf = (day: string): Column => ({
  table: 'webhooks',
  column: 'sealed',
  page: `SELECT ARRAY[location_id, id::text] AS key, sealed FROM webhooks
         WHERE day = '${day}' AND sealed IS NOT NULL
           AND ($1::text[] IS NULL OR (location_id, id) > (($1::text[])[1], ($1::text[])[2]::uuid))
         ORDER BY location_id, id LIMIT ${PAGE}`,
  where: `day = '${day}' AND location_id = ($1::text[])[1] AND id = ($1::text[])[2]::uuid`,
  placeOf: ([locationId = '', webhookId = '']) => placeOfWebhook({ locationId, webhookId }),
});

async function daysOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>(
    `SELECT (first + nth)::text AS day
     FROM (SELECT min(day) AS first, max(day) AS last FROM webhooks) AS d, generate_series(0, last - first) AS nth`,
  );
  return rows.map((row) => row.day);
}
