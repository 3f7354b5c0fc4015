import { describe, expect, it } from 'vitest';
import { nameOf, type Compared } from '../../tools/bench/measure/compare-in-turn.ts';
import { compareVariants } from '../../tools/bench/variants/compare-variants.ts';
import { drawBars } from '../../tools/bench/report/draw-bars.ts';
import { FIGURES, toResults } from '../../tools/bench/report/figures.ts';
import { measureGrow } from '../../tools/bench/measure/measure-grow.ts';
import type { Cell, Contest } from '../../tools/bench/variants/start-contest.ts';
import { median } from '../../tools/bench/measure/summarize.ts';

const RATES: Record<Cell['variant'], number> = {
  service: 8_000,
  'one-statement': 4_000,
  naive: 1_000,
  bare: 10_000,
  transactions: 5_000,
  'node-red': 4_000,
  'pg-boss': 2_000,
  'graphile-worker': 1_000,
};

/** A machine that gets slower all the time: by half from one round to the next, but for one of the ways. */
function slowingDown(measured: string[] = []): Contest {
  const times = new Map<string, number>();
  return {
    async measure(cell: Cell) {
      const name = nameOf(cell);
      measured.push(name);
      const time = times.get(name) ?? 0;
      times.set(name, time + 1);
      const perSecond =
        (RATES[cell.variant] * (cell.plan === 'poison' ? 0.9 : 1)) / (cell.variant === 'one-statement' ? 1 : 2 ** time);
      const [p50Ms, p99Ms] = [10 * 2 ** time, (20_000 * 2 ** time) / RATES[cell.variant]];
      return {
        answers: {},
        perSecond,
        p50Ms,
        p99Ms,
        nodeUs: 1_000_000 / perSecond,
        postgresUs: 0,
        senderUs: 0,
        diskBytes: 0,
      };
    },
    stop: async () => {},
  };
}

async function compare(about: { rounds: number; quick: boolean; tenMillion: boolean }): Promise<{
  compared: Compared;
  measured: string[];
}> {
  const measured: string[] = [];
  const compared = await compareVariants(slowingDown(measured), { ...about, seconds: 1 }, () => {});
  return { compared, measured };
}

describe('a comparison of variants', () => {
  it('computes each ratio from two figures of the same round', async () => {
    const { compared } = await compare({ rounds: 3, quick: false, tenMillion: false });
    expect(compared.ratios.get('vsNaive64')).toEqual([8, 8, 8]);
    expect(compared.ratios.get('vsOneStatement64')).toEqual([1, 0.5, 0.25]);
    expect(compared.ratios.get('vsTransactions64')).toEqual([1.6, 1.6, 1.6]);
    expect(compared.ratios.get('nodeVsBare64')).toEqual([1.25, 1.25, 1.25]);
    expect(compared.ratios.get('p50At1VsOneStatement')).toEqual([1, 1, 1]);
    expect(compared.ratios.get('p99At64VsNaive')).toEqual([0.125, 0.125, 0.125]);
    expect(median(compared.ratios.get('poisonLoss') ?? [])).toBeCloseTo(0.1);
  });

  it('compares a growing load with a fixed one, and reports a latency as measured', async () => {
    const { ratios } = await measureGrow(slowingDown(), { rounds: 2 }, () => {});
    const { body200kP99Ms, locations20000, ...others } = Object.fromEntries(ratios);
    expect(body200kP99Ms).toEqual([5, 10]);
    // They are warmed for longer, so the machine is slower when it is their turn.
    expect(locations20000).toEqual([0.5, 0.5]);
    for (const figure of Object.values(others)) expect(figure).toEqual([1, 1]);
  });

  it('warms all variants up, then measures each once per round, every second round in reverse', async () => {
    const { compared, measured } = await compare({ rounds: 2, quick: true, tenMillion: false });
    const ways = [...compared.cells.keys()];
    expect(ways.length).toBeGreaterThan(5);
    expect(measured).toEqual([...ways, ...ways, ...ways.toReversed()]);
    for (const { rounds } of compared.cells.values()) expect(rounds.length).toBe(2);
  });

  it('measures ten million orders only on request', async () => {
    const { compared: quick } = await compare({ rounds: 1, quick: true, tenMillion: false });
    expect([...quick.cells.values()].filter(({ cell }) => cell.plan !== 'spread' || cell.orders > 100_000)).toEqual([]);
    const figures = async (tenMillion: boolean): Promise<string[]> => [
      ...(await compare({ rounds: 1, quick: false, tenMillion })).compared.ratios.keys(),
    ];
    expect(await figures(false)).not.toContain('orders10mVs50k');
    expect(await figures(true)).toContain('orders10mVs50k');
  });
});

describe('the results of the benchmark', () => {
  it('have every figure, and null for a missing number', () => {
    const results = toResults({ vsNaive64: 8.5, vsNaive8: Number.NaN, rssMb: Number.POSITIVE_INFINITY, startMs: 0 });
    expect(Object.keys(results)).toEqual(Object.keys(FIGURES));
    const { vsNaive64, startMs, ...others } = results;
    expect({ vsNaive64, startMs }).toEqual({ vsNaive64: 8.5, startMs: 0 });
    expect(new Set(Object.values(others))).toEqual(new Set([null]));
  });
});

describe('the chart of the benchmark', () => {
  it('is valid SVG, with the median of each variant for each number of connections', async () => {
    const { compared } = await compare({ rounds: 3, quick: false, tenMillion: false });
    const svg = drawBars((figure) => median(compared.ratios.get(figure) ?? []));
    expect(unclosed(svg)).toEqual([]);
    // The rounds halve after the one for warming up: their median is the second.
    const shown = [...svg.matchAll(/<text x="[\d.]+" y="\d+">([\d,]+)<\/text>/g)].map(([, rate]) => rate);
    const [bare, service, one, naive] = ['2,500', '2,000', '4,000', '250'];
    expect(shown).toEqual([service, naive, bare, service, one, naive, bare, service, naive]);
    const [, , widest, second] = [...svg.matchAll(/<rect x="\d+" y="\d+" width="([\d.]+)" height="14"/g)].map(
      ([, width]) => Number(width),
    );
    expect((second ?? 0) / (widest ?? 0)).toBeCloseTo(0.8, 2);
    for (const label of ['8 connections', '64 connections', '256 connections']) expect(svg).toContain(`>${label}<`);
  });
});

/** What would keep a browser from showing it: tags that do not match, or characters that mean something in XML. */
function unclosed(svg: string): string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  const ATTRIBUTES = /^(\s+[\w-]+="[^"<&]*")*\s*$/;
  const rest = svg.replaceAll(
    /<(\/?)(\w+)([^<>]*?)(\/?)>/g,
    (tag, closing, name: string, attributes: string, alone) => {
      if (!ATTRIBUTES.test(attributes)) wrong.push(tag);
      if (closing !== '' && open.pop() !== name) wrong.push(tag);
      if (closing === '' && alone === '') open.push(name);
      return '';
    },
  );
  return [...wrong, ...open, ...(rest.match(/[<>&]/g) ?? [])];
}
