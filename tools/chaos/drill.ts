/** A failover drill with embedded parts only: what a lost database costs, and whether `expediter recover` settles it. */
import { parseArgs } from 'node:util';
import { table } from '../../src/terminal/print.ts';
import { CASES, judgeDrill, runDrill, type Case, type Drilled } from './run-drill.ts';

const USAGE = `Usage: npm run drill -- [options]

Kills the primary under load and measures what is lost, how soon webhooks are committed again, and what is left.

  --only <case>      one of: ${CASES.join(', ')}; repeat the option for several
  --orders <n>       open orders in the restored backup (1000)
  --rate <n>         new orders a second (5)
  --seconds <n>      load before the fault (10)
  --lost <n>         seconds of which the commits are lost (5)
  --json             JSON on standard output
`;

// Without this, Google's client searches for a metadata server, which only exists on Google's machines.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    orders: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    lost: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const [orders, perSecond, seconds, lostS] = [values.orders, values.rate, values.seconds, values.lost].map(Number);
const cases = (values.only ?? CASES) as Case[];
const isWrong = ![orders, perSecond, seconds, lostS].every((each) => each !== undefined && each > 0);
if (values.help || isWrong || !cases.every((each) => CASES.includes(each))) {
  (values.help ? process.stdout : process.stderr).write(USAGE);
  process.exit(values.help ? 0 : 2);
}
const print = (line: string): void => void process.stderr.write(`${line}\n`);
const drilled = await runDrill({
  cases,
  orders: orders ?? 0,
  perSecond: perSecond ?? 0,
  seconds: seconds ?? 0,
  lostS: lostS ?? 0,
  print,
});
const missed = drilled.flatMap(judgeDrill);
process.stdout.write(
  values.json ? `${JSON.stringify({ ok: missed.length === 0, drilled })}\n` : `${asTable(drilled)}\n`,
);
for (const words of missed) print(`NOT AS PROMISED: ${words}`);
process.exitCode = missed.length === 0 ? 0 : 1;

function asTable(rows: readonly Drilled[]): string {
  return table(
    rows.map((row) => ({
      case: row.case,
      'orders lost': row.ordersLost,
      'webhooks lost': row.webhooksLost,
      'webhooks committed after s': row.webhooksAfterS,
      'all settled after s': row.settledAfterS,
      named: row.named,
      'by a person': row.byPerson,
      unsettled: row.unsettled,
      'statuses lost': row.statusesLost,
      'second tickets': `${row.secondTickets.deduplicating} (others ${row.secondTickets.others})`,
    })),
  );
}
