import type { FigureName } from './figures.ts';
import { ORDERS, type Cell, type Contest, type Measurement } from './start-contest.ts';

type Comparison = {
  figure: FigureName;
  of: Cell;
  against: Cell;
  by: 'perSecond' | 'p50Ms' | 'p99Ms' | 'nodeUs';
  /** Included in the quick run. */
  quick?: true;
  /** Derives the figure from the ratio. */
  value?: (ratio: number) => number;
};

/** @returns each round's ratio, by figure, and each cell's measurements */
export type Compared = { ratios: Map<FigureName, number[]>; cells: Map<string, { cell: Cell; rounds: Measurement[] }> };

function cell(variant: Cell['variant'], connections: number, about: Partial<Cell> = {}): Cell {
  return { variant, connections, plan: 'spread', orders: ORDERS, ...about };
}

const LARGE_WARM_S = 20;

/** The comparisons in order: those that should differ least follow each other directly. */
const COMPARISONS: readonly Comparison[] = [
  {
    figure: 'orders1mVs50k',
    of: cell('service', 64, { orders: 1_000_000 }),
    against: cell('service', 64),
    by: 'perSecond',
  },
  {
    figure: 'orders10mVs50k',
    of: cell('service', 64, { orders: 10_000_000 }),
    against: cell('service', 64),
    by: 'perSecond',
  },
  {
    figure: 'poisonLoss',
    of: cell('service', 64, { plan: 'poison' }),
    against: cell('service', 64),
    by: 'perSecond',
    value: (ratio) => 1 - ratio,
  },
  ...([8, 64, 256] as const).map((connections): Comparison => ({
    figure: `vsNaive${connections}`,
    of: cell('service', connections),
    against: cell('naive', connections),
    by: 'perSecond',
    quick: true,
  })),
  {
    figure: 'vsOneStatement64',
    of: cell('service', 64),
    against: cell('one-statement', 64),
    by: 'perSecond',
    quick: true,
  },
  { figure: 'vsCeiling64', of: cell('service', 64), against: cell('bare', 64), by: 'perSecond', quick: true },
  { figure: 'vsCeiling256', of: cell('service', 256), against: cell('bare', 256), by: 'perSecond', quick: true },
  { figure: 'nodeVsBare64', of: cell('service', 64), against: cell('bare', 64), by: 'nodeUs', quick: true },
  { figure: 'vsTransactions8', of: cell('service', 8), against: cell('transactions', 8), by: 'perSecond' },
  {
    figure: 'vsTransactions64',
    of: cell('service', 64),
    against: cell('transactions', 64),
    by: 'perSecond',
    quick: true,
  },
  { figure: 'p50At1VsOneStatement', of: cell('service', 1), against: cell('one-statement', 1), by: 'p50Ms' },
  { figure: 'p99At64VsNaive', of: cell('service', 64), against: cell('naive', 64), by: 'p99Ms', quick: true },
  {
    figure: 'hotOrderVsNaive64',
    of: cell('service', 64, { plan: 'hot' }),
    against: cell('naive', 64, { plan: 'hot' }),
    by: 'perSecond',
  },
];

/**
 * Measures every variant in turn, round by round, so that a drift of the machine's speed affects all, and compares
 * within each round.
 * @param about.seconds of each measurement
 */
export async function compareVariants(
  contest: Contest,
  about: { rounds: number; seconds: number; quick: boolean; tenMillion: boolean },
  say: (line: string) => void,
): Promise<Compared> {
  const chosen = COMPARISONS.filter(
    ({ quick, figure }) => (quick === true || !about.quick) && (figure !== 'orders10mVs50k' || about.tenMillion),
  );
  const cells: Compared['cells'] = new Map(
    chosen.flatMap(({ of, against }) => [of, against]).map((cell) => [nameOf(cell), { cell, rounds: [] }]),
  );
  const ratios: Compared['ratios'] = new Map(chosen.map(({ figure }) => [figure, []]));

  say('warming up');
  for (const { cell } of cells.values()) {
    await contest.measure(cell, 1);
    // The pages of a large table come into the cache one by one.
    if (cell.orders > ORDERS) await contest.measure(cell, LARGE_WARM_S);
  }
  for (let round = 1; round <= about.rounds; round += 1) {
    say(`round ${round} of ${about.rounds}`);
    // Forwards and backwards, so that no variant always follows the same one.
    const inTurn = round % 2 === 0 ? [...cells.values()].toReversed() : [...cells.values()];
    for (const { cell, rounds } of inTurn) {
      const measured = await contest.measure(cell, about.seconds);
      rounds.push(measured);
      const [p50, p99] = [measured.p50Ms, measured.p99Ms].map((value) => value.toFixed(2));
      say(`  ${nameOf(cell).padEnd(48)} ${measured.perSecond.toFixed(0).padStart(6)}/s, p50 ${p50} ms, p99 ${p99} ms`);
    }
    for (const { figure, of, against, by, value = (ratio: number) => ratio } of chosen) {
      const [one, other] = [of, against].map((cell) => cells.get(nameOf(cell))?.rounds.at(-1)?.[by] ?? Number.NaN);
      ratios.get(figure)?.push(value((one ?? Number.NaN) / (other ?? Number.NaN)));
    }
  }
  return { ratios, cells };
}

export function nameOf({ variant, connections, plan, orders }: Cell): string {
  const about = [plan === 'spread' ? '' : plan, orders === ORDERS ? '' : `${orders} orders`].filter(Boolean).join(', ');
  return `${variant}, ${connections} connection${connections === 1 ? '' : 's'}${about === '' ? '' : `, ${about}`}`;
}
