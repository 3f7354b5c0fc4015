/** `npm run simulate`: runs seeds in virtual time. */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { installHooks } from './hooks.ts';

const USAGE = `npm run simulate -- [--seed 1] [--seeds 1] [--orders 20] [--times 1] [--threads 1] [--until-found] [--shrink]
                   [--no-faults] [--lines] [--previous] [--feed-model] [--without <mark>] [--only <nth>]... [--fault <id>]...

Runs seeds from --seed on: two processes, a real Postgres, and the world around them, in virtual time.
  --times        how often each seed runs; all its histories must be the same
  --threads      how many seeds run at the same time
  --until-found  ends at the first seed that fails
  --shrink       also looks for the fewest faults and orders with which it fails, and tells the story
  --no-faults    leaves out all faults
  --only         places only this order of the seed, by its number. May be given several times
  --fault        lets only this fault happen, by its id: "call hangs: A.1 POST 127.0.0.1:40001/graphql #1". Several times
  --previous     a process that was killed may start again as the version before
  --lines        prints the whole history
  --feed-model   looks whether placement.pml accepts the history of each order. Needs spin and gcc
  --without      takes a guard away from the code: a mark of tools/chaos/guards.ts
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    step: { type: 'string', default: '1' },
    orders: { type: 'string', default: '20' },
    times: { type: 'string', default: '1' },
    threads: { type: 'string', default: '1' },
    without: { type: 'string' },
    previous: { type: 'boolean', default: false },
    // For the threads: where the version before is.
    'previous-in': { type: 'string' },
    lines: { type: 'boolean', default: false },
    'until-found': { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    'no-faults': { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    fault: { type: 'string', multiple: true },
    'feed-model': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

type Whole = 'seed' | 'seeds' | 'step' | 'orders' | 'times' | 'threads' | 'only';
function whole(name: Whole, value = String(values[name])): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number > 0) return number;
  process.stderr.write(`--${name} is not a whole number above 0\n\n${USAGE}`);
  return process.exit(2);
}

const [first, seeds, threads] = [whole('seed'), whole('seeds'), whole('threads')];
if (values.help) {
  process.stdout.write(USAGE);
} else if (values.previous) {
  const { findPrevious, unpackVersion } = await import('../chaos/previous-version.ts');
  const { folder, remove } = await unpackVersion(findPrevious());
  try {
    process.exitCode = await simulateInThreads(['--previous-in', folder]);
  } finally {
    await remove();
  }
} else if (threads > 1) {
  process.exitCode = await simulateInThreads();
} else {
  const previous = values['previous-in'];
  installHooks({ without: values.without, previous });
  const { simulate } = await import('./simulate-seeds.ts');
  process.exitCode = await simulate({
    seeds: Array.from({ length: seeds }, (_, nth) => first + nth * whole('step')),
    orders: whole('orders'),
    times: whole('times'),
    lines: values.lines,
    untilFound: values['until-found'],
    shrinks: values.shrink,
    onlyOrders: values.only && new Set(values.only.map((nth) => whole('only', nth))),
    onlyFaults: values['no-faults'] ? new Set() : values.fault && new Set(values.fault),
    without: values.without,
    previous,
    feeds: values['feed-model'],
    say: (line) => void process.stdout.write(`${line}\n`),
  });
}

/** Each thread has its own clock, its own Postgres and every nth seed. */
async function simulateInThreads(more: readonly string[] = []): Promise<number> {
  const { seed: _, seeds: __, threads: ___, previous: ____, ...others } = values;
  const given = Object.entries(others).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => (typeof each === 'string' ? [`--${name}`, each] : each ? [`--${name}`] : [])),
  );
  const codes = await Promise.all(
    Array.from({ length: threads }, async (_each, nth) => {
      const own = Math.ceil((seeds - nth) / threads);
      if (own <= 0) return 0;
      const range = ['--seed', String(first + nth), '--seeds', String(own), '--step', String(threads)];
      const [code] = (await once(
        new Worker(new URL(import.meta.url), { argv: [...given, ...range, ...more] }),
        'exit',
      )) as [number];
      return code;
    }),
  );
  return Math.max(...codes);
}
