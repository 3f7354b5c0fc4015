import { Command, InvalidArgumentError } from 'commander';

/** The parts of the benchmark, in the order in which they run. */
export const PARTS = [
  'compare',
  'live',
  'placements',
  'claims',
  'memory',
  'start',
  'spill',
  'parked',
  'grow',
  'members',
  'guesses',
  'evening',
] as const;
export type Part = (typeof PARTS)[number];

const QUICK: readonly Part[] = ['compare', 'start'];
/** Parts that take long, or much room, or more files than most may open. */
const ASKED_FOR: readonly Part[] = ['memory', 'parked', 'grow', 'members', 'guesses', 'evening'];
const MOST = 1_000;
const ROUNDS = 5;
const MEMORY_MINUTES = 10;
const EVENING_MINUTES = 90;

export type Arguments = {
  json: boolean;
  quick: boolean;
  rounds: number;
  tenMillion: boolean;
  /** Minutes for which memory is measured, if it is. */
  memory: number;
  /** Minutes of the evening, if there is one. */
  evening: number;
  only: readonly Part[];
  /** Writes the figures to figures.json. */
  record: boolean;
};

/** Prints the usage and ends the process if the arguments ask for it, or are wrong. */
export function readBenchArguments(argv: string[]): Arguments {
  const command = new Command('npm run bench --')
    .description(
      'Measures the service on a Postgres of its own against other ways to do the same, in turn, on this machine. Takes ' +
        'some seventeen minutes. Ratios tell more than figures, and both more on a machine that does nothing else.',
    )
    .option('--quick', 'the essential ones, in a minute', false)
    .option('--rounds <n>', 'how often each way comes to its turn (default: 5, or 2 with --quick)', fromOn(1))
    .option('--only <parts>', `some of ${PARTS.join(', ')}, with commas between them`, someParts)
    .option('--ten-million', 'with ten million orders as well: some minutes and 20 GB more', false)
    .option('--memory <minutes>', 'watch memory under load as well, and for so long (--only memory: 10)', fromOn(2))
    .option('--evening <minutes>', 'play an evening as well, and for so long (--only evening: 90)', fromOn(3))
    .option(
      '--record',
      'write the figures to bench/figures.json, from which "npm run docs" writes docs/benchmark.md',
      false,
    )
    .option('--json', 'the last line of standard output is the result; the rest goes to standard error', false)
    .parse(argv, { from: 'user' });
  const given = command.opts<Omit<Arguments, 'rounds' | 'memory' | 'evening' | 'only'> & Partial<Arguments>>();
  const only = given.only ?? (given.quick ? QUICK : PARTS.filter((part) => !ASKED_FOR.includes(part)));
  if (given.record && given.quick) {
    command.error('error: --quick measures for too short a time to --record it', { exitCode: 2 });
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

/** @returns the command that measures the same */
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
