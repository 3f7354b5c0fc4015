import type { Compared } from './measure/compare-in-turn.ts';
import { compareVariants } from './variants/compare-variants.ts';
import { describeMachine } from './report/describe-machine.ts';
import { endBySignal } from './stage/end-by-signal.ts';
import { FIGURES, toResults, type FigureName } from './report/figures.ts';
import { compareAged, measureDrops } from './measure/measure-aged.ts';
import { measureBodies } from './measure/measure-bodies.ts';
import { measureClaims } from './measure/measure-claims.ts';
import { measureCost } from './measure/measure-cost.ts';
import { measureDoors } from './measure/measure-doors.ts';
import { measureEvening } from './measure/measure-evening.ts';
import { measureGuesses } from './measure/measure-guesses.ts';
import { measureGrow } from './measure/measure-grow.ts';
import { measureLive } from './measure/measure-live.ts';
import { measureMembers } from './measure/measure-members.ts';
import { measureMemory } from './measure/measure-memory.ts';
import { measureParked } from './measure/measure-parked.ts';
import { measurePlacements } from './measure/measure-placements.ts';
import { measureSignals } from './measure/measure-signals.ts';
import { measureSpill } from './measure/measure-spill.ts';
import { measureStart } from './measure/measure-start.ts';
import type { BenchDatabase } from './stage/prepare-bench-database.ts';
import { commandOf, readBenchArguments } from './read-bench-arguments.ts';
import { recordRun, today, toRecorded } from './report/record-figures.ts';
import { measureYears } from './measure/measure-years.ts';
import { startBenchPostgres } from './stage/start-bench-postgres.ts';
import { startContest, type Contest } from './variants/start-contest.ts';
import { median } from './measure/summarize.ts';
import { writeTables } from './report/write-tables.ts';

// Without this, Google's client searches for a metadata server, which only exists on Google's machines.
process.env['METADATA_SERVER_DETECTION'] = 'none';

endBySignal();

const args = readBenchArguments(process.argv.slice(2));
const words = args.json ? process.stderr : process.stdout;
const say = (line: string): void => void words.write(`${line}\n`);

const measured: Partial<Record<FigureName, number>> = {};
let compared: Compared | undefined;
let grown: Compared | undefined;
let aged: Compared | undefined;
let machine = '';

const postgres = await startBenchPostgres();
try {
  machine = await describeMachine(postgres.url);
  say(machine);
  if (args.only.includes('compare')) {
    say('ways to take a webhook, in turn, all without the relay');
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
  if (args.only.includes('signals')) {
    say('signals by HTTP, together with pushes');
    Object.assign(measured, await measureSignals(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('doors')) {
    say('statuses by webhook, with late answers and without');
    Object.assign(measured, await measureDoors(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('claims')) {
    say('claims with many locations that have nothing due');
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
    say('the spill, during and after an outage of Postgres');
    Object.assign(measured, await measureSpill(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('parked')) {
    say('events that wait for their POS id');
    Object.assign(measured, await measureParked(postgres, { rounds: 30, many: 5_000_000 }, say));
  }
  if (args.only.includes('years')) {
    say('five years of a million orders a month');
    const { database, ...figures } = await measureYears(postgres, { moved: 100_000, perMonth: 1_000_000 }, say);
    aged = await contend((contest) => compareAged(contest, { rounds: args.rounds }, say), database);
    Object.assign(measured, figures, await measureDrops(postgres, database, say));
  }
  if (args.only.includes('grow')) {
    say('many locations, large bodies and long histories, in turn with small ones');
    grown = await contend((contest) => measureGrow(contest, { rounds: args.rounds }, say));
  }
  if (args.only.includes('members')) {
    say('streams of members');
    Object.assign(measured, await measureMembers(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('guesses')) {
    say('webhooks during wrong sign-ins');
    Object.assign(measured, await measureGuesses(postgres, { rounds: args.rounds }, say));
  }
  if (args.only.includes('bodies')) {
    say("webhooks during one integrator's largest bodies");
    Object.assign(measured, await measureBodies(postgres, { rounds: args.rounds }, say));
  }
} finally {
  await postgres.stop();
}
if (args.only.includes('cost')) {
  say('what orders cost, with ordering keys and without');
  Object.assign(measured, await measureCost({ rounds: args.rounds }, say));
}
if (args.only.includes('evening')) {
  say(`an evening, ${args.evening} minutes`);
  Object.assign(measured, await measureEvening({ minutes: args.evening }, say));
}
const results = toResults(measured);
const contests = [compared, grown, aged].filter((each) => each !== undefined);
writeTables(contests, FIGURES, results, say);
if (args.record) {
  const figures = toRecorded(contests, FIGURES, results);
  await recordRun({ date: today(), machine, command: commandOf(args), figures });
}
if (args.json) process.stdout.write(`${JSON.stringify(results)}\n`);

async function contend(compare: (contest: Contest) => Promise<Compared>, database?: BenchDatabase): Promise<Compared> {
  const contest = await startContest(postgres, database);
  try {
    const result = await compare(contest);
    for (const [figure, ratios] of result.ratios) measured[figure] = median(ratios);
    return result;
  } finally {
    await contest.stop();
  }
}
