import { expect, it } from 'vitest';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { queryOnce } from '../support/query-once.ts';

const url = await createDatabase();

it('the database of the tests sorts text by language, and not by bytes', async () => {
  expect(await queryOnce(url, `SELECT 'a' < 'B' AS as_words`)).toEqual([{ as_words: true }]);
});

it('every index over text sorts by bytes', async () => {
  // Of a type without a collation, it is 0.
  const rows = await queryOnce(
    url,
    `SELECT c.relname AS name, array_agg(l.collname::text ORDER BY key.nth) AS collations
     FROM pg_index i
     JOIN pg_class c ON c.oid = i.indexrelid AND c.relnamespace = 'expediter'::regnamespace
     CROSS JOIN LATERAL unnest(i.indcollation::oid[]) WITH ORDINALITY AS key(collation_oid, nth)
     JOIN pg_collation l ON l.oid = key.collation_oid
     GROUP BY c.relname`,
  );
  expect(rows.map(({ name }) => name)).toContain('orders_pkey');
  expect(rows.map(({ name }) => name)).toContain('order_contents_of_member');
  expect(rows.filter(({ collations }) => (collations as string[]).some((collation) => collation !== 'C'))).toEqual([]);
});
