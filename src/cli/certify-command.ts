import { readFile } from 'node:fs/promises';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { readConfigOf } from '../server/config.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { CanonicalOrder } from '../core/domain/order.ts';
import { type FulfillmentType, type Status } from '../core/domain/lifecycle.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { locationDeps } from '../core/locations/location-deps.ts';
import { WrongLocation, findLocation } from '../core/locations/locations.ts';
import { audited } from '../core/operators/audit.ts';
import type { Certification } from '../diagnostics/certify.ts';
import { describeFailure, isFine, lineOf, printChecks, sumOf } from '../diagnostics/print-checks.ts';
import type { Progress, TestContents } from '../diagnostics/test-run.ts';
import { terminalText } from '../observe/terminal-text.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples } from './print.ts';
import { NotDone, POS, noSuch } from '../operators/operation.ts';
import { settingsRules, withDatabase } from './settings-rules.ts';

type Options = { location: string; delivery?: true; order?: string; without: readonly Missing[]; wait: number };

/** A value of `--without`: the POS never repeats a webhook that was not answered 200. */
const REPEATS = 'repeats';
const MISSING = ['received', 'in_progress', 'ready', 'en_route', 'completed', REPEATS] as const satisfies (
  | Status
  | 'repeats'
)[];
type Missing = (typeof MISSING)[number];

const WAIT_MS = 300_000;
/** The time to wait for a status after another webhook came. A POS repeats a refused webhook within this time. */
const GRACE_MS = 10_000;

/** One connection runs the checks. The other holds a lock that prevents the commit of a webhook. */
const CONNECTIONS = 2;

export function addCertifyCommand(program: Command): void {
  program
    .command('certify')
    .description(
      "send a test order to a location's POS, and check that the POS makes one ticket, reports each status and " +
        'repeats webhooks. Exits 1 if a check fails',
    )
    .requiredOption('--location <id>', 'its id on the ordering platform')
    .option('--delivery', 'a delivery instead of a pickup')
    .addOption(
      new Option(
        '--order <file>',
        'a JSON file with items, fulfillment and money of the test order, as in `platform schema`; items from the menu',
      ).conflicts('delivery'),
    )
    .option(
      '--without <what>',
      'statuses that this POS never reports, separated by commas; `repeats` if it never repeats a webhook: ' +
        MISSING.join(', '),
      readMissing,
      [],
    )
    .option('--wait <time>', 'maximum time to wait for each status, such as 60s or 5m', readWait, WAIT_MS)
    .addHelpText(
      'after',
      `
The service must be running; use its environment, including PUBLIC_URL. The POS gets a real order, so warn the kitchen.
The order's id begins with certify-. Its live messages are published like those of any order. Standard error shows what
to do at the till and each result. Standard output shows failures, fixes and totals. See docs/connect-your-pos.md.
${examples('expediter certify --location club-1', 'expediter certify --location club-1 --delivery --without in_progress --json')}`,
    )
    .action(certifyLocation);
}

async function certifyLocation(options: Options, command: Command): Promise<void> {
  const { location: locationId, without, wait } = options;
  const env = readConfigOf(process.env, 'DATABASE_URL', ...POS);
  const rules = await settingsRules(env);
  const { publicUrl } = rules;
  if (publicUrl === undefined) {
    throw new WrongLocation('PUBLIC_URL is unset: a POS cannot call us. Example: https://expediter.example.com');
  }
  // Imported here, because no other command needs these modules.
  const { certify } = await import('../diagnostics/certify.ts');
  const { sampleContents, statusesOf } = await import('../diagnostics/test-run.ts');
  const type: FulfillmentType = options.delivery ? 'delivery' : 'pickup';
  const contents = options.order === undefined ? sampleContents(type) : await readContents(options.order);
  const statuses = statusesOf(contents.fulfillment.type).filter((status) => !without.some((each) => each === status));

  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new Error('stopped; the test order has been ended'));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    const certified = await withDatabase(
      env.DATABASE_URL,
      async (pool) => {
        const { keys } = rules;
        const deps = { ...(await locationDeps(pool, rules, env.ALLOW_PRIVATE_HOSTS)), publicUrl, keys };
        const limits = { statusMs: wait, graceMs: Math.min(GRACE_MS, wait) };
        const { signal } = stopping;
        const repeats = !without.includes(REPEATS);
        const options = { locationId, contents, statuses, repeats, limits, signal };
        const work = (): Promise<Certification> => certify(deps, options, screen);
        if ((await findLocation(pool, locationId)) === undefined) throw new NotDone(404, noSuch.location);
        const action = { action: 'certify', locationId };
        return audited(pool, commandLineActor(), action, work, ({ order }) => order?.serviceOrderId);
      },
      CONNECTIONS,
    );
    const { checks } = certified;
    printChecks(command, checks, { ok: isFine(checks), locationId, ...certified }, inWords(certified));
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

const screen: Progress = {
  wants: (what) => write(`...      ${what}`),
  found: (check) => write(lineOf(check)),
};

function write(line: string): void {
  process.stderr.write(`${terminalText(line)}\n`);
}

/** Describes only the failures, because all checks were already printed to standard error. */
function inWords({ order, checks }: Certification): string {
  const failures = checks.filter(({ state }) => state === 'failed').map(describeFailure);
  const testOrder = order === undefined ? '' : `; the test order was ${order.serviceOrderId}`;
  return [...failures, `${sumOf(checks)}${testOrder}`].join('\n\n');
}

/** @throws NotDone */
async function readContents(file: string): Promise<TestContents> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new NotDone(400, `--order: the file cannot be read (${error.code})`);
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new NotDone(400, '--order: the file is not JSON');
  }
  const parsed = CanonicalOrder.pick({ items: true, fulfillment: true, money: true }).safeParse(json, {
    reportInput: true,
  });
  if (parsed.success) return parsed.data;
  throw new NotDone(400, `--order: ${shapeIssues(parsed.error).map(issueInWords).join('; ')}`);
}

function readMissing(text: string): Missing[] {
  return text.split(',').map((name) => {
    const missing = MISSING.find((each) => each === name.trim().toLowerCase());
    if (missing === undefined) throw new InvalidArgumentError(`Use some of ${MISSING.join(', ')}.`);
    return missing;
  });
}

function readWait(text: string): number {
  const [, count, unit] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const seconds = Number(count) * (unit === 'h' ? 3_600 : unit === 'm' ? 60 : 1);
  if (!(seconds > 0)) throw new InvalidArgumentError('Use a duration such as 60s or 5m.');
  return seconds * 1_000;
}
