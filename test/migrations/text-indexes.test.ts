import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase } from '../support/create-database.ts';

let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client(await createDatabase());
  await client.connect();
});
afterAll(() => client?.end());

it('the database sorts text as words do, and not by bytes', async () => {
  const { rows } = await client.query(`SELECT 'a' < 'B' AS as_words`);
  expect(rows).toEqual([{ as_words: true }]);
});

it('every index over text of ours compares byte by byte nevertheless', async () => {
  // Of a type without a collation, it is 0.
  const { rows } = await client.query<{ name: string; collations: string[] }>(
    `SELECT c.relname AS name, array_agg(l.collname::text ORDER BY key.nth) AS collations
     FROM pg_index i
     JOIN pg_class c ON c.oid = i.indexrelid AND c.relnamespace = 'expediter'::regnamespace
     CROSS JOIN LATERAL unnest(i.indcollation::oid[]) WITH ORDINALITY AS key(collation_oid, nth)
     JOIN pg_collation l ON l.oid = key.collation_oid
     GROUP BY c.relname`,
  );
  expect(rows.map(({ name }) => name)).toContain('orders_pkey');
  expect(rows.map(({ name }) => name)).toContain('order_contents_of_member');
  expect(rows.filter(({ collations }) => collations.some((collation) => collation !== 'C'))).toEqual([]);
});
