import { expect, it } from 'vitest';
import { FIGURES, type Score } from '../../console/vendors/score-figures.ts';

const score = (about: Partial<Score> = {}): Score => ({
  orders: 100,
  accepted: 90,
  acceptanceSeconds: { p50: 58, p95: 75 },
  missing: 0,
  duplicates: 0,
  late: 0,
  conflicts: 0,
  refusals: {},
  downMinutes: 0,
  ...about,
});
const figure = (name: string) => {
  const found = FIGURES.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no figure ${name}`);
  return found;
};

it('compares counts by their share of the orders', () => {
  const { show, parts, badness } = figure('Webhooks that never came');
  const [small, large] = [score({ orders: 10, missing: 4 }), score({ orders: 1_000, missing: 5 })];
  expect(badness(small)).toBeGreaterThan(badness(large) ?? 0);
  expect([small, large].map(show)).toEqual(['4', '5']);
  expect([small, large].map((each) => parts?.(each))).toEqual([['40 % of orders'], ['0.5 % of orders']]);
  expect(figure('Accepted').parts?.(score({ orders: 10, accepted: 9 }))).toEqual(['9 of 10 orders']);
});

it('shows times around a minute to the second, so that vendors differ', () => {
  const shown = [58, 60, 61.4, 600, null].map((p50) =>
    figure('Time to accept, median').show(score({ acceptanceSeconds: { p50, p95: null } })),
  );
  expect(shown).toEqual(['58 s', '60 s', '61 s', '10 min', '–']);
});

it('says why orders failed or were held, the most frequent first', () => {
  const refusals = { pos_rejected_order: 1, pos_set_up_wrong: 3, made_by_a_newer_version: 2 };
  expect(figure('Failed or held').parts?.(score({ orders: 600, refusals }))).toEqual([
    '1 % of orders',
    '3× POS misconfigured',
    '2× made by a newer version',
    '1× POS refused it',
  ]);
});
