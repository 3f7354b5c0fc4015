import pg from 'pg';
import { expect, inject, it } from 'vitest';
import { unnestRows } from '../../../src/core/postgres/sql-rows.ts';

type Dish = { name: string; price?: number };

it('rows have their column names and their number, also if they come after other parameters', async () => {
  const dishes = unnestRows<Dish>(
    [
      ['name', 'text', (dish) => dish.name],
      ['price', 'integer', (dish) => dish.price],
    ],
    2,
  );
  const client = new pg.Client(inject('postgresUrl'));
  await client.connect();
  const { rows } = await client.query(
    `SELECT $1::text AS kind, d.name, d.price, d.nth::int, ${dishes.array('name')}[2] AS second, $${dishes.next}::int AS last
     FROM ${dishes.as('d')}`,
    ['main', ...dishes.values([{ name: 'soup', price: 5 }, { name: 'bread' }]), 7],
  );
  await client.end();
  expect(rows).toEqual([
    { kind: 'main', name: 'soup', price: 5, nth: 1, second: 'bread', last: 7 },
    { kind: 'main', name: 'bread', price: null, nth: 2, second: 'bread', last: 7 },
  ]);
});

it('a column without any value is NULL in every row', async () => {
  const dishes = unnestRows<Dish>([
    ['name', 'text', (dish) => dish.name],
    ['price', 'integer', (dish) => dish.price],
  ]);
  const client = new pg.Client(inject('postgresUrl'));
  await client.connect();
  const { rows } = await client.query(
    `SELECT name, price, nth::int, ${dishes.array('price')}[nth] AS again FROM ${dishes.as('d')}`,
    dishes.values([{ name: 'soup' }, { name: 'bread' }]),
  );
  await client.end();
  expect(rows).toEqual([
    { name: 'soup', price: null, nth: 1, again: null },
    { name: 'bread', price: null, nth: 2, again: null },
  ]);
});

it('an unknown column is refused', () => {
  const dishes = unnestRows<Dish>([['name', 'text', (dish) => dish.name]]);
  expect(() => dishes.array('price')).toThrow('no column price');
});
