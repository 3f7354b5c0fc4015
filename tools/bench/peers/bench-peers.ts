import { Command } from 'commander';
import { describeMachine } from '../report/describe-machine.ts';
import { endBySignal } from '../stage/end-by-signal.ts';
import { fromOn } from '../read-bench-arguments.ts';
import { recordRun, today, toRecorded } from '../report/record-figures.ts';
import { startBenchPostgres } from '../stage/start-bench-postgres.ts';
import { startContest } from '../variants/start-contest.ts';
import { installApart } from '../../../world/processes/install-apart.ts';
import { writeTables } from '../report/write-tables.ts';
import { comparePeers, IN_JSON, toPeerResults } from './compare-peers.ts';
import { PEER_FIGURES } from './peer-figures.ts';
import { PEERS } from './peers.ts';

const SECONDS = 4;
const ROUNDS = 5;

endBySignal();

const args = new Command('npm run bench:peers --')
  .description(
    'Compares the service with other tools for such webhooks, in turn, on one Postgres, on this machine: ' +
      `${Object.keys(PEERS).join(', ')}. Takes some seven minutes. The first run installs them below bench/peers.`,
  )
  .option('--rounds <n>', 'how often each is measured', fromOn(1), ROUNDS)
  .option(
    '--record',
    'write the figures to tools/bench/report/figures.json, from which "npm run docs" writes docs/benchmark.md',
    false,
  )
  .option('--json', 'print the result as JSON in the last line of standard output, all else on standard error', false)
  .parse()
  .opts<{ rounds: number; record: boolean; json: boolean }>();
const words = args.json ? process.stderr : process.stdout;
const say = (line: string): void => void words.write(`${line}\n`);

installApart(import.meta.dirname, say);
const postgres = await startBenchPostgres();
try {
  const machine = await describeMachine(postgres.url);
  say(machine);
  const contest = await startContest(postgres);
  try {
    const compared = await comparePeers(contest, { rounds: args.rounds, seconds: SECONDS }, say);
    const medians = toPeerResults(compared.ratios);
    writeTables([compared], PEER_FIGURES, medians, say);
    say('\n| peer | what it leaves out |\n|---|---|');
    for (const [peer, { leavesOut }] of Object.entries(PEERS)) say(`| ${peer} | ${leavesOut} |`);
    if (args.record) {
      const command = `npm run bench:peers${args.rounds === ROUNDS ? '' : ` -- --rounds ${args.rounds}`}`;
      const figures = toRecorded([compared], PEER_FIGURES, medians);
      await recordRun({ date: today(), machine, command, figures });
    }
    if (args.json) process.stdout.write(`${JSON.stringify(medians, IN_JSON)}\n`);
  } finally {
    await contest.stop();
  }
} finally {
  await postgres.stop();
}
