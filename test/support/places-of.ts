import { expect } from 'vitest';
import type { System } from './start-system.ts';

/** Finds a text in any column of any table, as `table.column`; partitions count as their parent. */
export async function placesOf({ query }: Pick<System, 'query'>, text: string): Promise<string[]> {
  const columns = await query(
    `SELECT c.table_schema, c.table_name, c.column_name, c.data_type
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE t.table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  expect(columns.length).toBeGreaterThan(100);
  const found = new Set<string>();
  for (const { table_schema: schema, table_name: table, column_name: column, data_type: type } of columns) {
    const where = type === 'bytea' ? 'position(convert_to($1, $$UTF8$$) IN %I) > 0' : 'strpos(%I::text, $1) > 0';
    const [sql] = await query(
      `SELECT format('SELECT 1 FROM %I.%I WHERE ${where} LIMIT 1', $1::text, $2::text, $3::text)`,
      [schema, table, column],
    );
    const rows = await query(String(sql?.['format']), [text]);
    if (rows.length > 0) found.add(`${String(table).replace(/^webhooks_\d+$/, 'webhooks')}.${String(column)}`);
  }
  return [...found].sort();
}
