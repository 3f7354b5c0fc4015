import { expect } from 'vitest';
import type { System } from '../../world/system/start-system.ts';

/** Finds a text in any column of any table, as `table.column`; partitions count as their parent. */
export async function placesOf({ query }: Pick<System, 'query'>, text: string): Promise<string[]> {
  const columns = await query(
    `SELECT format('SELECT %L AS place WHERE EXISTS (SELECT FROM %s WHERE ' ||
                   CASE atttypid WHEN 'bytea'::regtype THEN 'position(convert_to($1, ''UTF8'') IN %I) > 0'
                                 ELSE 'strpos(%I::text, $1) > 0' END || ')',
                   relname || '.' || attname, attrelid::regclass, attname) AS look
     FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0 AND NOT attisdropped
       AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`,
  );
  expect(columns.length).toBeGreaterThan(100);
  const found = await query(columns.map(({ look }) => String(look)).join(' UNION ALL '), [text]);
  return found.map(({ place }) => String(place)).toSorted();
}
