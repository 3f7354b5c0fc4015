import type { Pool } from 'pg';
import { placeOfGrant } from './credential-store.ts';
import { placeOfApplication, placeOfSettings } from './locations.ts';
import { keyIdOf, placeOfWebhook, seal, SealedElsewhere, type SettingsKeys, unseal } from './settings-key.ts';

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
  /** Settings of locations and of vendor applications. */
  settings: Rekeyed;
  /** Access and refresh tokens of POS systems. */
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
      for await (const text of textsIn(column)) {
        const done = await sealAgain(column, keys, text, dryRun);
        if (done.result !== undefined) counts[done.result] += 1;
        if (done.missingKey !== undefined) missing.add(done.missingKey);
        if (done.misplaced !== undefined) misplaced.push(done.misplaced);
      }
    }
    return counts;
  };
  const settings = await all(
    settingsIn(pool, 'locations', 'location_id', placeOfSettings),
    settingsIn(pool, 'former_settings', 'location_id', placeOfSettings),
    settingsIn(pool, 'applications', 'name', placeOfApplication),
  );
  const grants = await all(grantsIn(pool));
  const webhooks = await all(...(await daysOf(pool)).map((day) => webhooksIn(pool, day)));
  return { settings, grants, webhooks, missingKeys: [...missing].sort(), misplaced };
}

type Sealed = { key: string[]; sealed: string };

/** A column of encrypted texts, each with its primary key. */
type Column = {
  /** The place that the text with this primary key is encrypted for. */
  placeOf(key: string[]): string;
  /** Returns a page of texts: those after the key `after`, or the first ones. */
  page(after: string[] | undefined): Promise<Sealed[]>;
  read(key: string[]): Promise<string | undefined>;
  /** Replaces a text, unless it has changed. */
  replace(key: string[], before: string, after: string): Promise<boolean>;
};

async function* textsIn(column: Column): AsyncGenerator<Sealed> {
  let after: string[] | undefined;
  for (;;) {
    const texts = await column.page(after);
    yield* texts;
    if (texts.length < PAGE) return;
    after = texts.at(-1)?.key;
  }
}

type Done = {
  /** Undefined if the text was deleted meanwhile. */
  result?: 'rewritten' | 'current' | 'unreadable';
  missingKey?: string;
  misplaced?: string;
};

async function sealAgain(column: Column, keys: SettingsKeys, text: Sealed, dryRun: boolean): Promise<Done> {
  const [newest] = keys.keys();
  const place = column.placeOf(text.key);
  let sealed: string | undefined = text.sealed;
  while (sealed !== undefined) {
    const keyId = keyIdOf(sealed);
    let value: unknown;
    try {
      value = await unseal(keys, sealed, place);
    } catch (error) {
      const isMisplaced = error instanceof SealedElsewhere;
      return { result: 'unreadable', ...(isMisplaced ? { misplaced: place } : { missingKey: keyId }) };
    }
    if (keyId === newest) return { result: 'current' };
    if (dryRun || (await column.replace(text.key, sealed, await seal(keys, value, place)))) {
      return { result: 'rewritten' };
    }
    sealed = await column.read(text.key);
  }
  return {};
}

/** Makes the statements for one column. `where` compares the primary key with `$1`, as text[]. */
function columnOf(
  pool: Pool,
  placeOf: Column['placeOf'],
  sql: { page: string; table: string; column: string; where: string },
): Column {
  const { page, table, column, where } = sql;
  return {
    placeOf,
    async page(after) {
      const { rows } = await pool.query<Sealed>(page, [after ?? null]);
      return rows;
    },
    async read(key) {
      const { rows } = await pool.query<{ sealed: string | null }>(
        `SELECT ${column} AS sealed FROM ${table} WHERE ${where}`,
        [key],
      );
      return rows[0]?.sealed ?? undefined;
    },
    async replace(key, before, after) {
      const { rowCount } = await pool.query(
        `UPDATE ${table} SET ${column} = $3::text WHERE ${where} AND ${column} = $2::text`,
        [key, before, after],
      );
      return rowCount === 1;
    },
  };
}

function settingsIn(pool: Pool, table: string, id: string, placeOf: (id: string) => string): Column {
  return columnOf(pool, ([key = '']) => placeOf(key), {
    table,
    column: 'settings',
    where: `${id} = ($1::text[])[1]`,
    page: `SELECT ARRAY[${id}] AS key, settings AS sealed FROM ${table}
           WHERE ${id} > coalesce(($1::text[])[1], '') ORDER BY ${id} LIMIT ${PAGE}`,
  });
}

function grantsIn(pool: Pool): Column {
  return columnOf(pool, ([key = '']) => placeOfGrant(key), {
    table: 'credentials',
    column: '"grant"',
    where: `seed_sha256 = decode(($1::text[])[1], 'hex')`,
    page: `SELECT ARRAY[encode(seed_sha256, 'hex')] AS key, "grant" AS sealed FROM credentials
           WHERE seed_sha256 > decode(coalesce(($1::text[])[1], ''), 'hex') AND "grant" IS NOT NULL
           ORDER BY seed_sha256 LIMIT ${PAGE}`,
  });
}

/** The encrypted texts of one day's webhooks. Few webhooks have one, and a partial index finds those that do. */
function webhooksIn(pool: Pool, day: string): Column {
  return columnOf(pool, ([locationId = '', webhookId = '']) => placeOfWebhook({ locationId, webhookId }), {
    table: 'webhooks',
    column: 'sealed',
    where: `day = '${day}' AND location_id = ($1::text[])[1] AND id = ($1::text[])[2]::uuid`,
    page: `SELECT ARRAY[location_id, id::text] AS key, sealed FROM webhooks
           WHERE day = '${day}' AND sealed IS NOT NULL
             AND ($1::text[] IS NULL OR (location_id, id) > (($1::text[])[1], ($1::text[])[2]::uuid))
           ORDER BY location_id, id LIMIT ${PAGE}`,
  });
}

async function daysOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>(
    `SELECT (first + nth)::text AS day
     FROM (SELECT min(day) AS first, max(day) AS last FROM webhooks) AS d, generate_series(0, last - first) AS nth`,
  );
  return rows.map((row) => row.day);
}
