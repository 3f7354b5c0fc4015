import { cell, compareInTurn, type Compared, type Comparison } from '../measure/compare-in-turn.ts';
import type { Contest } from './start-contest.ts';

type OfVariants = Comparison & {
  /** Included in the quick run. */
  quick?: true;
};

/** The comparisons in the order of measurement. Cells that should differ least are measured next to each other. */
const COMPARISONS: readonly OfVariants[] = [
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
  ...([8, 64, 256] as const).map((connections): OfVariants => ({
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
  ...([8, 64, 256] as const).flatMap((connections): OfVariants[] => [
    { figure: `perSecond${connections}`, of: cell('service', connections), by: 'perSecond', quick: true },
    { figure: `naivePerSecond${connections}`, of: cell('naive', connections), by: 'perSecond', quick: true },
  ]),
  { figure: 'oneStatementPerSecond64', of: cell('one-statement', 64), by: 'perSecond', quick: true },
  { figure: 'barePerSecond64', of: cell('bare', 64), by: 'perSecond', quick: true },
  { figure: 'barePerSecond256', of: cell('bare', 256), by: 'perSecond', quick: true },
  { figure: 'nodeUs64', of: cell('service', 64), by: 'nodeUs', quick: true },
  { figure: 'postgresUs64', of: cell('service', 64), by: 'postgresUs', quick: true },
];

/**
 * Compares the service with other ways to do the same.
 * @param about.seconds the length of each measurement
 * @param about.quick measures only the essential comparisons
 */
export function compareVariants(
  contest: Contest,
  about: { rounds: number; seconds: number; quick: boolean; tenMillion: boolean },
  say: (line: string) => void,
): Promise<Compared> {
  const chosen = COMPARISONS.filter(
    ({ quick, figure }) => (quick === true || !about.quick) && (figure !== 'orders10mVs50k' || about.tenMillion),
  );
  return compareInTurn(contest, chosen, about, say);
}
