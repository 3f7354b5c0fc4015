import type { FigureName } from '../report/figures.ts';
import { LOCATIONS, ORDERS, type Cell, type Contest, type Measurement } from '../variants/start-contest.ts';

export type Comparison<Name extends string = FigureName> = {
  figure: Name;
  of: Cell;
  /** The figure is the ratio of `of` to this cell. Without this cell, the figure is the value of `of`. */
  against?: Cell;
  by: 'perSecond' | 'p50Ms' | 'p99Ms' | 'nodeUs' | 'postgresUs';
  /** Derives the figure from the ratio. */
  value?: (ratio: number) => number;
};

/** The ratios of all rounds by figure, and the measurements of each cell. */
export type Compared<Name extends string = FigureName> = {
  ratios: Map<Name, number[]>;
  cells: Map<string, { cell: Cell; rounds: Measurement[] }>;
};

export function cell(variant: Cell['variant'], connections: number, about: Partial<Cell> = {}): Cell {
  return {
    variant,
    connections,
    plan: 'spread',
    orders: ORDERS,
    locations: LOCATIONS,
    bodyBytes: 0,
    history: 0,
    years: false,
    ...about,
  };
}

const LARGE_WARM_S = 20;

/**
 * Measures every cell in turn, round by round, and compares cells only within a round. So a change of the machine's
 * speed affects all cells. @param about.seconds the length of each measurement
 */
export async function compareInTurn<Name extends string>(
  contest: Contest,
  comparisons: readonly Comparison<Name>[],
  about: { rounds: number; seconds: number },
  say: (line: string) => void,
): Promise<Compared<Name>> {
  const cells: Compared['cells'] = new Map(
    comparisons.flatMap(({ of, against = of }) => [of, against]).map((cell) => [nameOf(cell), { cell, rounds: [] }]),
  );
  const ratios: Compared<Name>['ratios'] = new Map(comparisons.map(({ figure }) => [figure, []]));

  say('warming up');
  for (const { cell } of cells.values()) {
    await contest.measure(cell, 1);
    // Large tables and many locations need longer until all of them are in the caches.
    if (cell.orders > ORDERS || cell.locations > LOCATIONS) await contest.measure(cell, LARGE_WARM_S);
  }
  for (let round = 1; round <= about.rounds; round += 1) {
    say(`round ${round} of ${about.rounds}`);
    // The direction alternates, so that no variant always follows the same other variant.
    const inTurn = round % 2 === 0 ? [...cells.values()].toReversed() : [...cells.values()];
    for (const { cell, rounds } of inTurn) {
      const measured = await contest.measure(cell, about.seconds);
      rounds.push(measured);
      const [p50, p99] = [measured.p50Ms, measured.p99Ms].map((value) => value.toFixed(2));
      say(`  ${nameOf(cell).padEnd(48)} ${measured.perSecond.toFixed(0).padStart(6)}/s, p50 ${p50} ms, p99 ${p99} ms`);
    }
    for (const { figure, of, against, by, value = (ratio: number) => ratio } of comparisons) {
      const valueOf = (cell: Cell): number => cells.get(nameOf(cell))?.rounds.at(-1)?.[by] ?? Number.NaN;
      ratios.get(figure)?.push(value(valueOf(of) / (against === undefined ? 1 : valueOf(against))));
    }
  }
  return { ratios, cells };
}

export function nameOf({ variant, connections, plan, orders, locations, bodyBytes, history, years }: Cell): string {
  return [
    variant,
    `${connections} connection${connections === 1 ? '' : 's'}`,
    ...(plan === 'spread' ? [] : [plan]),
    ...(orders === ORDERS ? [] : [`${orders} orders`]),
    ...(locations === LOCATIONS ? [] : [`${locations} locations`]),
    ...(bodyBytes === 0 ? [] : [`${bodyBytes / 1_000} kB`]),
    ...(history === 0 ? [] : [`${history} events before`]),
    ...(years ? ['five years'] : []),
  ].join(', ');
}
