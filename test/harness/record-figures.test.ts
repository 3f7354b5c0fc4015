import { expect, it } from 'vitest';
import { FIGURES, toResults, type FigureName } from '../../tools/bench/report/figures.ts';
import { toRecorded, withRun, type Run } from '../../tools/bench/report/record-figures.ts';

const run = (date: string, figures: Run['figures']): Run => ({ date, machine: 'two cores', command: 'bench', figures });

it('a record has only the newest value of each figure', () => {
  const first = run('2026-11-01', { startMs: { value: 300 } });
  const second = run('2026-11-02', { vsNaive8: { value: 2 }, vsNaive64: { value: 5 } });
  const now = run('2026-11-03', { startMs: { value: 200 }, vsNaive8: { value: 3 } });
  expect(withRun([first, second], now)).toEqual([run('2026-11-02', { vsNaive64: { value: 5 } }), now]);
});

it('a record has rounded values, with the least and the most of the rounds', () => {
  const contest = { ratios: new Map<FigureName, number[]>([['vsNaive64', [4.004, 5.125, 7]]]), cells: new Map() };
  const results = toResults({ vsNaive64: 5.125, startMs: 455.4 });
  expect(toRecorded([contest], FIGURES, results)).toEqual({
    vsNaive64: { value: 5.13, least: 4, most: 7 },
    startMs: { value: 455, unit: 'ms' },
  });
});
