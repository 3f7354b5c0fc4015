import { writeFile } from 'node:fs/promises';
import { constants, totalmem } from 'node:os';
import pg from 'pg';
import { startPostgres } from '../test/support/start-postgres.ts';
import { nameOf, type Compared } from './compare-in-turn.ts';
import { compareVariants } from './compare-variants.ts';
import { describeMachine } from './describe-machine.ts';
import { drawBars } from './draw-bars.ts';
import { FIGURES, reaches, toResults, type Figure, type FigureName } from './figures.ts';
import { measureClaims } from './measure-claims.ts';
import { measureEvening } from './measure-evening.ts';
import { measureGrow } from './measure-grow.ts';
import { measureLive } from './measure-live.ts';
import { measureMembers } from './measure-members.ts';
import { measureMemory } from './measure-memory.ts';
import { measureParked } from './measure-parked.ts';
import { measurePlacements } from './measure-placements.ts';
import { measureSpill } from './measure-spill.ts';
import { measureStart } from './measure-start.ts';
import { readBenchArguments } from './read-bench-arguments.ts';
import { startContest, type Contest, type Measurement } from './start-contest.ts';
import { median } from './summarize.ts';

// Outside Google's machines the search for their metadata server only takes time.
process.env['METADATA_SERVER_DETECTION'] = 'none';

// Our children, such as the service and Postgres, end with us, and compiled files are deleted at exit.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(name, () => process.exit(128 + constants.signals[name]));
}

const args = readBenchArguments(process.argv.slice(2));
const words = args.json ? process.stderr : process.stdout;
const say = (line: string): void => void words.write(`${line}\n`);

const measured: Partial<Record<FigureName, number>> = {};
let compared: Compared | undefined;
let grown: Compared | undefined;

const postgres = await startPostgres({
  settings: {
    fsync: 'on',
    synchronous_commit: 'on',
    max_connections: '200',
    // A quarter of the machine's memory, where Postgres's documentation begins. Its default suits the smallest
    // machines.
    shared_buffers: `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`,
    // No checkpoint by itself. After one, each page is logged whole once more: little within the minutes between two,
    // but much within a measurement of seconds.
    max_wal_size: '64GB',
    checkpoint_timeout: '1h',
  },
});
try {
  say(describeMachine(await versionOf(postgres.url)));
  if (args.only.includes('compare')) {
    say('ways to take a webhook, in turn; the relay is off in all of them');
    const about = { rounds: args.rounds, seconds: args.quick ? 1 : 4, quick: args.quick, tenMillion: args.tenMillion };
    compared = await contend((contest) => compareVariants(contest, about, say));
  }
  if (args.only.includes('live')) {
    say('live messages, relay on');
    Object.assign(measured, await measureLive(postgres, { stepS: 10, backlog: 20_000, lagS: 20 }, say));
  }
  if (args.only.includes('placements')) {
    say('placements');
    Object.assign(measured, await measurePlacements(postgres, { stepS: 20, latencyS: 20 }, say));
  }
  if (args.only.includes('claims')) {
    say('claims beside locations with nothing due');
    Object.assign(measured, await measureClaims(postgres, { rounds: 8 * args.rounds }, say));
  }
  if (args.only.includes('memory')) {
    say(`memory, ${args.memory} minutes`);
    measured.rssMb = (await measureMemory(postgres, { minutes: args.memory }, say)).rssMb;
  }
  if (args.only.includes('start')) {
    say('start');
    Object.assign(measured, await measureStart(postgres, { times: 5 }, say));
  }
  if (args.only.includes('spill')) {
    say('the spill, while Postgres is away and after it');
    Object.assign(measured, await measureSpill(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('parked')) {
    say('events that wait for their POS id');
    Object.assign(measured, await measureParked(postgres, { rounds: 30, many: 5_000_000 }, say));
  }
  if (args.only.includes('grow')) {
    say('locations, bodies and histories that grow, in turn with those that do not');
    grown = await contend((contest) => measureGrow(contest, { rounds: args.rounds }, say));
  }
  if (args.only.includes('members')) {
    say('streams of members');
    Object.assign(measured, await measureMembers(postgres, { rounds: args.rounds }, say));
  }
} finally {
  await postgres.stop();
}
if (args.only.includes('evening')) {
  say(`an evening, ${args.evening} minutes`);
  Object.assign(measured, await measureEvening({ minutes: args.evening }, say));
}
const results = toResults(measured);
report();
if (args.chart !== undefined && compared !== undefined) await writeFile(args.chart, drawBars(compared));
if (args.json) process.stdout.write(`${JSON.stringify(results)}\n`);

async function contend(compare: (contest: Contest) => Promise<Compared>): Promise<Compared> {
  const contest = await startContest(postgres);
  try {
    const result = await compare(contest);
    for (const [figure, ratios] of result.ratios) measured[figure] = median(ratios);
    return result;
  } finally {
    await contest.stop();
  }
}

/** Prints the results as tables in Markdown, which read well on a terminal too. */
function report(): void {
  const contests = [compared, grown].filter((each) => each !== undefined);
  for (const { cells } of contests) {
    const columns = ['way, connections', 'webhooks a second: median', 'least to most', 'p50 ms', 'p99 ms'];
    columns.push('CPU per webhook, Node / Postgres / sender, us', 'on disk, bytes');
    say(`\n| ${columns.join(' | ')} |\n|${'---|'.repeat(columns.length)}`);
    for (const { cell, rounds } of cells.values()) {
      const rates = rounds.map((round) => round.perSecond);
      const middle = (name: keyof Omit<Measurement, 'answers'>, digits = 0): string => {
        const value = median(rounds.map((round) => round[name]));
        return Number.isNaN(value) ? '-' : value.toFixed(digits);
      };
      const spread = `${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}`;
      const spent = (['nodeUs', 'postgresUs', 'senderUs'] as const).map((name) => middle(name)).join(' / ');
      const latency = [middle('p50Ms', 2), middle('p99Ms', 2)];
      say(`| ${[nameOf(cell), middle('perSecond'), spread, ...latency, spent, middle('diskBytes')].join(' | ')} |`);
    }
  }
  say('\n| figure | measured | least to most | goal | |\n|---|---|---|---|---|');
  for (const [name, figure] of Object.entries<Figure>(FIGURES)) {
    const value = results[name as FigureName];
    if (value === null) continue;
    const ratios = contests.find((each) => each.ratios.has(name as FigureName))?.ratios.get(name as FigureName);
    const spread = ratios === undefined ? '' : `${show(Math.min(...ratios))} to ${show(Math.max(...ratios))}`;
    const goal = 'atLeast' in figure.goal ? `at least ${figure.goal.atLeast}` : `at most ${figure.goal.atMost}`;
    const verdict = reaches(figure, value) ? '' : 'not reached';
    say(`| ${figure.what} | ${show(value)}${figure.unit ?? ''} | ${spread} | ${goal} | ${verdict} |`);
  }
}

function show(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}

async function versionOf(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await client.end();
  return rows[0]?.server_version ?? 'unknown';
}
