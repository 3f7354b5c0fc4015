import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { binaryArray } from '../../../src/core/postgres/sql-rows.ts';
import { anyText } from '../../../world/inputs/any-text.ts';
import { SEED } from '../../../world/inputs/seed.ts';

let client: pg.Client;

beforeAll(async () => {
  client = new pg.Client(inject('postgresUrl'));
  await client.connect();
});

afterAll(() => client.end());

/** Whether Postgres takes it for the very array that pg makes of the same values, as text. */
async function isTheSame(type: Parameters<typeof binaryArray>[0], values: readonly unknown[]): Promise<unknown> {
  const { rows } = await client.query<{ same: boolean; length: number }>(
    `SELECT $1::${type}[] IS NOT DISTINCT FROM $2::${type}[] AS same, cardinality($1::${type}[]) AS length`,
    [binaryArray(type, values as never[]), values],
  );
  return rows[0];
}

it.each([
  ['boolean', [true, false, null]],
  ['bytea', [Buffer.from([0, 255, 92, 34]), Buffer.alloc(0), null, Buffer.alloc(70_000, 1)]],
  ['smallint', [0, -1, 32_767, -32_768, null]],
  ['integer', [0, -1, 2_147_483_647, -2_147_483_648, null]],
  ['text', ['', 'NULL', 'null', '{}', '{"a",b}', '"', '\\', '\\"', ' a b ', 'a\nb', 'é', '🍕', '\u{10ffff}', null]],
  [
    'timestamptz',
    ['2000-01-01T00:00:00Z', '1999-12-31T23:59:59.999Z', '0001-01-01T00:00:00Z', '2026-11-21T12:30:00.001Z'],
  ],
  ['uuid', ['019a0000-0000-7000-8000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', null]],
] as const)('a binary array of %s equals its text form', async (type, values) => {
  const given = type === 'timestamptz' ? values.map((value) => new Date(value)) : values;
  expect(await isTheSame(type, [...given])).toEqual({ same: true, length: values.length });
  expect(await isTheSame(type, [null, undefined, null])).toEqual({ same: true, length: 3 });
});

it('a binary array refuses a text that is no UUID', () => {
  expect(() => binaryArray('uuid', ['019a0000-0000-7000-8000'])).toThrow('a UUID is required');
  expect(() => binaryArray('uuid', ['no'])).toThrow('a UUID is required');
});

it('an empty binary array has no elements', async () => {
  const { rows } = await client.query<{ ids: string[]; rows: number }>(
    'SELECT $1::text[] AS ids, (SELECT count(*)::int FROM unnest($1::text[])) AS rows',
    [binaryArray('text', [])],
  );
  expect(rows).toEqual([{ ids: [], rows: 0 }]);
});

it('a binary array transfers any storable text unchanged', async () => {
  const texts = fc.sample(anyText(), { numRuns: 500, seed: SEED }).map((text) => text.replaceAll('\0', ''));
  expect(await isTheSame('text', texts)).toEqual({ same: true, length: 500 });
});

it('a NUL is refused as a value, so that only its own webhook fails', async () => {
  await expect(isTheSame('text', ['fine', 'not\0fine'])).rejects.toMatchObject({ code: '22021' });
});
