/**
 * Measures what one bad neighbour costs the others: the same load with and without it, in turn. Each round has a new
 * database and process. The result is the ratio of the others' p99. None of their webhooks may be refused.
 */
import { parseArgs } from 'node:util';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { SCENARIOS, seedRound, type Measured, type Scenario } from './neighbour-scenarios.ts';
import { setSmallStage } from './set-small-stage.ts';

const words = process.stderr;
const say = (line: string): void => void words.write(`${line}\n`);

const USAGE = `Usage: npm run chaos:neighbours [-- ${Object.keys(SCENARIOS).join(' | ')}] [--rounds <n>] [--seconds <n>] [--json]

${Object.entries(SCENARIOS)
  .map(([name, { what, limit }]) => `  ${name.padEnd(14)} ${what}; at most ${limit} times`)
  .join('\n')}

--seconds: the length of a round of the scenario snapshot (30)
`;

function readChaosArguments(): { chosen: string[]; rounds: number; seconds: number; json: boolean } | undefined {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: 'string', default: '5' },
        seconds: { type: 'string', default: '30' },
        json: { type: 'boolean', default: false },
      },
    });
    const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
    const isKnown = positionals.every((name) => Object.hasOwn(SCENARIOS, name));
    if (!isKnown || !Number.isInteger(rounds) || rounds < 1) return undefined;
    if (!Number.isInteger(seconds) || seconds < 6) return undefined;
    return {
      chosen: positionals.length === 0 ? Object.keys(SCENARIOS) : positionals,
      rounds,
      seconds,
      json: values.json,
    };
  } catch {
    return undefined;
  }
}

const args = readChaosArguments();
if (args === undefined) {
  say(USAGE);
  process.exit(2);
}
process.env['METADATA_SERVER_DETECTION'] = 'none';

// With fsync, because commits that wait for the disk also delay each other.
const postgres = await startPostgres({ settings: { fsync: 'on', max_connections: '100' } });
type Result = { ratio: number; withoutMs: number; withMs: number; refused: number; limit: number; ok: boolean };
const results: Record<string, Result> = {};
try {
  for (const name of args.chosen) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) continue;
    say(`${name}: ${scenario.what}`);
    const all: Record<string, { without: number[]; with: number[] }> = {};
    let refused = 0;
    for (let nth = 1; nth <= args.rounds; nth += 1) {
      // The order alternates, so that a machine that becomes slower affects both sides.
      for (const disturbed of nth % 2 === 0 ? [true, false] : [false, true]) {
        const { latencies, ...measured } = await playRound(postgres, scenario, disturbed, args.seconds);
        if (disturbed) refused += measured.refused;
        for (const [what, some] of Object.entries(latencies)) {
          all[what] ??= { without: [], with: [] };
          const side = disturbed ? 'with' : 'without';
          all[what][side] = all[what][side].concat(some);
          const [p50, p99] = [0.5, 0.99].map((share) => percentile(some, share).toFixed(1));
          say(`  round ${nth} ${side.padEnd(7)} ${what}: p50 ${p50} ms, p99 ${p99} ms, of ${some.length}`);
        }
      }
    }
    for (const [what, sides] of Object.entries(all)) {
      // The percentiles are of all rounds together, because the slowest 1 % of one round is only a few values.
      const [withoutMs, withMs] = [percentile(sides.without, 0.99), percentile(sides.with, 0.99)];
      const ratio = withMs / withoutMs;
      const { limit } = scenario;
      results[`${name} ${what}`] = { ratio, withoutMs, withMs, refused, limit, ok: ratio <= limit && refused === 0 };
      const times = `${withMs.toFixed(1)} ms against ${withoutMs.toFixed(1)} ms: ${ratio.toFixed(2)}`;
      say(`  p99 of ${what} ${times} (at most ${limit}), ${refused} refused`);
    }
  }
} finally {
  await postgres.stop();
}
if (args.json) process.stdout.write(`${JSON.stringify(results)}\n`);
process.exitCode = Object.values(results).every(({ ok }) => ok) ? 0 : 1;

async function playRound(on: Postgres, scenario: Scenario, disturbed: boolean, seconds: number): Promise<Measured> {
  const { locations = 21, firstSigns = false, prepare = seedRound, round } = scenario;
  const stage = await setSmallStage(on, {
    locations,
    firstSigns,
    prepare: (pool, databaseUrl) => prepare(pool, databaseUrl, disturbed, seconds),
  });
  try {
    return await round(stage, disturbed, say, seconds);
  } finally {
    await stage.stop();
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
