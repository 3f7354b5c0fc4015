import { Command, InvalidArgumentError } from 'commander';

/** The parts of the benchmark, in the order in which they run. */
export const PARTS = [
  'compare',
  'live',
  'placements',
  'signals',
  'doors',
  'claims',
  'memory',
  'start',
  'spill',
  'parked',
  'years',
  'cost',
  'grow',
  'members',
  'guesses',
  'bodies',
  'evening',
] as const;
export type Part = (typeof PARTS)[number];

const QUICK: readonly Part[] = ['compare', 'start'];
/** The others run only on request: they take long, need much disk space, or open more files than usually allowed. */
const USUAL: readonly Part[] = ['compare', 'live', 'placements', 'claims', 'start', 'spill'];
const MOST = 1_000;
const ROUNDS = 5;
const MEMORY_MINUTES = 10;
const EVENING_MINUTES = 90;

export type Arguments = {
  json: boolean;
  quick: boolean;
  rounds: number;
  tenMillion: boolean;
  /** The minutes of the part `memory`, if it runs. */
  memory: number;
  /** The minutes of the part `evening`, if it runs. */
  evening: number;
  only: readonly Part[];
  /** Writes the figures to figures.json. */
  record: boolean;
};

/** Prints the usage and ends the process if the arguments ask for it, or are wrong. */
export function readBenchArguments(argv: string[]): Arguments {
  const command = new Command('npm run bench --')
    .description(
      'Compares the service with other ways to do the same, in turn, on its own Postgres, on this machine. Takes ' +
        'some seventeen minutes. Use an otherwise idle machine. Ratios are more reliable than absolute figures.',
    )
    .option('--quick', 'measure only the essentials, in a minute', false)
    .option('--rounds <n>', 'how often each way is measured (default: 5, or 2 with --quick)', fromOn(1))
    .option('--only <parts>', `some of ${PARTS.join(', ')}, separated by commas`, someParts)
    .option('--ten-million', 'also measure ten million orders, which needs some minutes and 20 GB more', false)
    .option('--memory <minutes>', 'also watch memory under load for this time (--only memory: 10)', fromOn(2))
    .option('--evening <minutes>', 'also play an evening of this length (--only evening: 90)', fromOn(3))
    .option(
      '--record',
      'write the figures to tools/bench/report/figures.json, from which "npm run docs" writes docs/benchmark.md',
      false,
    )
    .option('--json', 'print the result as JSON in the last line of standard output, all else on standard error', false)
    .parse(argv, { from: 'user' });
  const given = command.opts<Omit<Arguments, 'rounds' | 'memory' | 'evening' | 'only'> & Partial<Arguments>>();
  const only = given.only ?? (given.quick ? QUICK : USUAL);
  if (given.record && given.quick) {
    command.error('error: --record needs longer measurements than --quick', { exitCode: 2 });
  }
  return {
    ...given,
    rounds: given.rounds ?? (given.quick ? 2 : ROUNDS),
    memory: given.memory ?? MEMORY_MINUTES,
    evening: given.evening ?? EVENING_MINUTES,
    only: [
      ...only,
      ...(given.memory === undefined ? [] : ['memory' as const]),
      ...(given.evening === undefined ? [] : ['evening' as const]),
    ],
  };
}

/** @returns the command that repeats the measurement */
export function commandOf({ rounds, tenMillion, memory, evening, only }: Arguments): string {
  const options = [
    ...(rounds === ROUNDS ? [] : [`--rounds ${rounds}`]),
    ...(tenMillion ? ['--ten-million'] : []),
    ...(memory !== MEMORY_MINUTES && only.includes('memory') ? [`--memory ${memory}`] : []),
    ...(evening !== EVENING_MINUTES && only.includes('evening') ? [`--evening ${evening}`] : []),
  ];
  return [`npm run bench -- --only ${[...new Set(only)].join(',')}`, ...options].join(' ');
}

/** Reads a whole number that is not too small. */
export function fromOn(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= MOST) return value;
    throw new InvalidArgumentError(`A whole number from ${least} to ${MOST} is required.`);
  };
}

function someParts(text: string): Part[] {
  return text.split(',').map((name) => {
    const part = PARTS.find((known) => known === name.trim());
    if (part === undefined) throw new InvalidArgumentError(`There is no part "${name}".`);
    return part;
  });
}
