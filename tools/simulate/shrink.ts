/** Finds the fewest faults and orders with which a seed still breaks the same promise. */
import { runSeed, type Complaint, type RunOptions, type RunResult } from './run.ts';
import type { PostgresServer } from './simulated-postgres.ts';

export type Shrunk = { result: RunResult; complaint: Complaint; runs: number };

/** Runs that one shrinking may take. */
const MOST_RUNS = 150;

/** @param found a run with a complaint */
export async function shrink(server: PostgresServer, options: RunOptions, found: RunResult): Promise<Shrunk> {
  const [first] = found.complaints;
  if (first === undefined) throw new Error('there is nothing to shrink');
  let runs = 0;
  let best = found;
  const fails = async (orders: readonly number[], faults: readonly string[]): Promise<boolean> => {
    if (runs >= MOST_RUNS) return false;
    runs += 1;
    const result = await runSeed(server, {
      ...options,
      onlyOrders: new Set(orders),
      onlyFaults: new Set(faults),
      untilBroken: first.what,
    });
    const isBroken = result.complaints.some(({ what }) => what === first.what);
    if (isBroken) best = result;
    return isBroken;
  };
  let orders = found.orders;
  // Most faults of a seed are about other orders, and no longer happen without them.
  const happened = (): readonly string[] => [...new Set(best.applied.map(({ id }) => id))];
  const isUsed = (id: string): boolean => best.applied.some((each) => each.id === id);
  let faults = happened();
  // The order that is broken is mostly enough.
  const own = orders.filter((nth) => first.order?.endsWith(`-${nth}`) === true);
  if (own.length > 0 && (await fails(own, faults))) orders = own;
  faults = await fewest(happened(), (some) => fails(orders, some), isUsed);
  orders = await fewest(orders, (some) => fails(some, faults));
  faults = await fewest(happened(), (some) => fails(orders, some), isUsed);
  const result = await runSeed(server, {
    ...options,
    onlyOrders: new Set(orders),
    onlyFaults: new Set(faults),
    keepLines: true,
  });
  const complaint = result.complaints.find(({ what }) => what === first.what);
  if (complaint !== undefined) best = result;
  return { result: best, complaint: complaint ?? first, runs };
}

/** Leaves out halves, then smaller parts, as long as `fails` stays true: Zeller's delta debugging. */
async function fewest<Item>(
  all: readonly Item[],
  fails: (some: readonly Item[]) => Promise<boolean>,
  isUsed: (item: Item) => boolean = () => true,
): Promise<readonly Item[]> {
  let items = all;
  if (items.length > 0 && (await fails([]))) return [];
  for (let parts = 2; items.length > 1 && parts <= items.length;) {
    const size = Math.ceil(items.length / parts);
    let isSmaller = false;
    for (let from = 0; from < items.length; from += size) {
      const rest = [...items.slice(0, from), ...items.slice(from + size)];
      if (rest.length === 0 || !(await fails(rest))) continue;
      items = rest.filter(isUsed);
      isSmaller = true;
      break;
    }
    if (isSmaller) parts = Math.max(2, parts - 1);
    else if (size === 1) break;
    else parts = Math.min(items.length, parts * 2);
  }
  return items;
}

/** The most lines of a story. */
const MOST_LINES = 60;

/** Tells a person what happened to the broken order. */
export function tell({ result, complaint, runs }: Shrunk): string[] {
  const { seed, orders, applied, entries, lines } = result;
  const { what, order, why } = complaint;
  const steps = applied.map(({ at, what: fault }) => ({ at, line: `fault: ${fault}` }));
  const told = entries
    .filter((entry) => entry.order === undefined || entry.order === order)
    .map(({ at, what: happened, ...more }) => ({ at, line: `${happened} ${JSON.stringify(more)}` }));
  const all = [...steps, ...told].toSorted((a, b) => a.at - b.at);
  const about = lines.filter((line) => order !== undefined && line.includes(order));
  return [
    `seed ${seed}, shrunk in ${runs} runs to ${orders.length} orders (${orders.join(', ')}) and ${applied.length} faults:`,
    ...all.slice(0, MOST_LINES).map(({ at, line }) => `  ${(at / 1_000).toFixed(3)} s  ${line}`),
    `  and so: ${what}: ${order ?? ''} ${why}`,
    ...(about.length > 0 ? ['its lines in the log:', ...about.slice(-MOST_LINES).map((line) => `  ${line}`)] : []),
  ];
}
