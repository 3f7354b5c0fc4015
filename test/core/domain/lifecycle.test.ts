import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { LIFECYCLE, STATUSES, memberStateAt, rankOf, statusAt } from '../../../src/core/domain/lifecycle.ts';

const ROOT = new URL('../../../', import.meta.url);

it('the table of statuses in the documentation equals the table in the code', () => {
  const pages = ['.', 'docs'].flatMap((folder) =>
    readdirSync(new URL(folder, ROOT))
      .filter((file) => file.endsWith('.md'))
      .map((file) => readFileSync(new URL(`${folder}/${file}`, ROOT), 'utf8')),
  );
  const tables = pages.flatMap((page) => [...page.matchAll(/^\| rank +\| status .*\n\|[-| ]+\|\n((?:\|.*\n)+)/gm)]);
  expect(tables).toHaveLength(1);
  const rows = (tables[0]?.[1] ?? '').trim().split('\n');
  const cells = rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
  expect(cells).toEqual(
    LIFECYCLE.map(({ rank, status, pickup, delivery }) => [
      String(rank),
      status ?? expect.stringMatching(/^_\(.+\)_$/),
      pickup,
      delivery,
    ]),
  );
});

it('each rank is at least two above the rank of the step before', () => {
  for (const [nth, { rank }] of LIFECYCLE.entries()) expect(rank).toBeGreaterThan((LIFECYCLE[nth - 1]?.rank ?? -9) + 1);
  for (const status of STATUSES) expect(statusAt(rankOf(status))).toBe(status);
});

it.each([
  [5, null, 'placed', 'placed'],
  [15, null, 'sent', 'sent'],
  [35, 'in_progress', 'preparing', 'preparing'],
  [45, 'ready', 'ready_for_pickup', 'ready_for_delivery'],
  [65, 'completed', 'picked_up', 'delivered'],
  [32_767, 'cancelled', 'cancelled', 'cancelled'],
])(
  'rank %i, which no step has, gets the name of the step with the next lower rank',
  (rank, status, pickup, delivery) => {
    expect(statusAt(rank)).toBe(status);
    expect(memberStateAt(rank, 'pickup')).toBe(pickup);
    expect(memberStateAt(rank, 'delivery')).toBe(delivery);
  },
);
