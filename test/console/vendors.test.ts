import { describe, expect, it } from 'vitest';
import { FIGURES, markExtremes, type Score } from '../../console/vendors/score-figures.ts';

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

describe('the comparison of vendors', () => {
  const marks = (name: string, ...scores: Score[]): (string | undefined)[] => markExtremes(figure(name), scores);

  it('marks the best and the worst of a figure', () => {
    const scores = [80, 95, 60].map((accepted) => score({ accepted }));
    expect(marks('Accepted', ...scores)).toEqual([undefined, 'best', 'worst']);
  });

  it('compares counts by their share of the orders', () => {
    const [small, large] = [score({ orders: 10, missing: 4 }), score({ orders: 1_000, missing: 5 })];
    expect(marks('Webhooks that never came', small, large)).toEqual(['worst', 'best']);
    expect([small, large].map(figure('Webhooks that never came').show)).toEqual(['4 (40 %)', '5 (0.5 %)']);
  });

  it('marks neither equal nor unknown values', () => {
    const unknown = score({ acceptanceSeconds: { p50: null, p95: null } });
    expect(marks('Time to accept, median', score(), unknown, score())).toEqual([undefined, undefined, undefined]);
    expect(marks('Conflicts', score(), score(), score({ conflicts: 1 }))).toEqual([undefined, undefined, 'worst']);
    expect(marks('Accepted', score())).toEqual([undefined]);
  });
});

it('shows times around a minute to the second, so that vendors differ', () => {
  const shown = [58, 60, 61.4, 600, null].map((p50) =>
    figure('Time to accept, median').show(score({ acceptanceSeconds: { p50, p95: null } })),
  );
  expect(shown).toEqual(['58 s', '60 s', '61 s', '10 min', '–']);
});

it('says why orders failed or were held, the most frequent first', () => {
  const refusals = { pos_rejected_order: 1, pos_set_up_wrong: 3, made_by_a_newer_version: 2 };
  expect(figure('Failed or held').parts?.(score({ refusals }))).toEqual([
    '3× POS misconfigured',
    '2× made by a newer version',
    '1× POS refused it',
  ]);
});
