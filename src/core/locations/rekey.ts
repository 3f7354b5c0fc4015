import type { Pool } from 'pg';
import { keyIdOf, seal, unseal, type SettingsKeys } from './settings-key.ts';

const PAGE = 500;

export type Rekeyed = {
  /** Texts sealed with the first key now, or in a dry run those that would be. */
  rewritten: number;
  /** Texts that had the first key already. */
  current: number;
  /** Texts left as they are. */
  unreadable: number;
};

export type Rekeying = {
  /** Settings of locations. */
  settings: Rekeyed;
  /** Access and refresh tokens of POS systems. */
  grants: Rekeyed;
  /** Headers with which dropped webhooks are verified again. */
  webhooks: Rekeyed;
  /** Ids of the keys of unreadable texts: SETTINGS_KEY lacks them, or has other bytes. */
  missingKeys: string[];
};

/**
 * Reseals all texts with the first key, one by one, beside running services: a text that is replaced meanwhile stays as
 * replaced. Safe to repeat and to interrupt.
 */
export async function rekey(pool: Pool, keys: SettingsKeys, dryRun: boolean): Promise<Rekeying> {
  const missing = new Set<string>();
  const all = async (...places: Place[]): Promise<Rekeyed> => {
    const counts: Rekeyed = { rewritten: 0, current: 0, unreadable: 0 };
    for (const place of places) {
      for await (const text of textsIn(place)) {
        const done = await sealAnew(place, keys, text, dryRun, missing);
        if (done !== undefined) counts[done] += 1;
      }
    }
    return counts;
  };
  const settings = await all(settingsIn(pool));
  const grants = await all(grantsIn(pool));
  const webhooks = await all(...(await daysOf(pool)).map((day) => webhooksIn(pool, day)));
  return { settings, grants, webhooks, missingKeys: [...missing].sort() };
}

type Sealed = { key: string[]; sealed: string };

/** A column of sealed texts, each with its primary key. */
type Place = {
  /** Returns the texts after `after`, or the first ones. */
  page(after: string[] | undefined): Promise<Sealed[]>;
  read(key: string[]): Promise<string | undefined>;
  /** Replaces a text, unless it has changed. */
  replace(key: string[], before: string, after: string): Promise<boolean>;
};

async function* textsIn(place: Place): AsyncGenerator<Sealed> {
  let after: string[] | undefined;
  for (;;) {
    const texts = await place.page(after);
    yield* texts;
    if (texts.length < PAGE) return;
    after = texts.at(-1)?.key;
  }
}

/**
 * @param missing collects the ids of keys of unreadable texts
 * @returns undefined if the text is gone meanwhile
 */
async function sealAnew(
  place: Place,
  keys: SettingsKeys,
  text: Sealed,
  dryRun: boolean,
  missing: Set<string>,
): Promise<keyof Rekeyed | undefined> {
  const [newest] = keys.keys();
  let sealed: string | undefined = text.sealed;
  while (sealed !== undefined) {
    let value: unknown;
    try {
      value = await unseal(keys, sealed);
    } catch {
      missing.add(keyIdOf(sealed));
      return 'unreadable';
    }
    if (keyIdOf(sealed) === newest) return 'current';
    if (dryRun || (await place.replace(text.key, sealed, await seal(keys, value)))) return 'rewritten';
    sealed = await place.read(text.key);
  }
  return undefined;
}

/** Makes the three statements for one column. `$1` is the key that `where` compares with, as text[]. */
function placeOf(pool: Pool, sql: { page: string; table: string; column: string; where: string }): Place {
  const { page, table, column, where } = sql;
  return {
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

function settingsIn(pool: Pool): Place {
  return placeOf(pool, {
    table: 'locations',
    column: 'settings',
    where: 'location_id = ($1::text[])[1]',
    page: `SELECT ARRAY[location_id] AS key, settings AS sealed FROM locations
           WHERE location_id > coalesce(($1::text[])[1], '') ORDER BY location_id LIMIT ${PAGE}`,
  });
}

function grantsIn(pool: Pool): Place {
  return placeOf(pool, {
    table: 'credentials',
    column: '"grant"',
    where: `seed_sha256 = decode(($1::text[])[1], 'hex')`,
    page: `SELECT ARRAY[encode(seed_sha256, 'hex')] AS key, "grant" AS sealed FROM credentials
           WHERE seed_sha256 > decode(coalesce(($1::text[])[1], ''), 'hex') AND "grant" IS NOT NULL
           ORDER BY seed_sha256 LIMIT ${PAGE}`,
  });
}

/** The sealed texts of one day. Only dropped webhooks have one, and an index of their own. */
function webhooksIn(pool: Pool, day: string): Place {
  return placeOf(pool, {
    table: 'webhooks',
    column: 'sealed',
    where: `day = '${day}' AND location_id = ($1::text[])[1] AND id = ($1::text[])[2]::uuid`,
    page: `SELECT ARRAY[location_id, id::text] AS key, sealed FROM webhooks
           WHERE day = '${day}' AND outcome = 'dropped' AND sealed IS NOT NULL
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
