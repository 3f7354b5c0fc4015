import { cell, compareInTurn, type Compared, type Comparison } from './compare-in-turn.ts';
import type { Cell, Contest } from '../variants/start-contest.ts';

/** Enough for an order at each of 20,000 locations, few enough to insert 50 events of each order before measuring. */
const ORDERS = 25_600;
const SECONDS = 4;

const service = (about: Partial<Cell>): Cell => cell('service', 64, { orders: ORDERS, ...about });
const BASE = service({});
const LARGE = service({ bodyBytes: 200_000 });

const COMPARISONS: readonly Comparison[] = [
  { figure: 'locations20000', of: service({ locations: 20_000 }), against: BASE, by: 'perSecond' },
  { figure: 'history50', of: service({ history: 50 }), against: BASE, by: 'perSecond' },
  { figure: 'body2k', of: service({ bodyBytes: 2_000 }), against: BASE, by: 'perSecond' },
  { figure: 'body20k', of: service({ bodyBytes: 20_000 }), against: BASE, by: 'perSecond' },
  { figure: 'body200k', of: LARGE, against: BASE, by: 'perSecond' },
  { figure: 'body200kP99Ms', of: LARGE, by: 'p99Ms' },
];

/** Measures many locations, large bodies and long histories, in turn with 20 locations, 0.2 kB and no history. */
export function measureGrow(
  contest: Contest,
  about: { rounds: number },
  say: (line: string) => void,
): Promise<Compared> {
  return compareInTurn(contest, COMPARISONS, { ...about, seconds: SECONDS }, say);
}
