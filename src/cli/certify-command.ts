import { readFile } from 'node:fs/promises';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Certification, Tell } from '../certify/certify.ts';
import type { Certified } from '../certify/certified.ts';
import type { TestContents } from '../certify/make-test-order.ts';
import { readConfigOf } from '../config.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { CanonicalOrder } from '../core/domain/order.ts';
import { type FulfillmentType, type Status } from '../core/domain/lifecycle.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { guardedFetch } from '../core/egress/guarded-fetch.ts';
import { databaseClock } from '../core/postgres/database-clock.ts';
import { credentialStore } from '../core/locations/credential-store.ts';
import { WrongLocation, settingsOpener } from '../core/locations/locations.ts';
import { terminalText } from '../terminal-text.ts';
import { actAtLocation } from './act-at-location.ts';
import { examples } from './examples.ts';
import { WrongInput } from './failures.ts';
import { facts, print } from './print.ts';
import { LOCATION_VARIABLES, settingsRules } from './settings-rules.ts';
import { withDatabase } from './with-database.ts';

type Options = { location: string; delivery?: true; order?: string; without: readonly Missing[]; wait: number };

/** What a POS may do without: a status of a good order, or sending again what was not answered 200. */
const REPEATS = 'repeats';
const MISSING = ['received', 'in_progress', 'ready', 'en_route', 'completed', REPEATS] as const satisfies (
  | Status
  | 'repeats'
)[];
type Missing = (typeof MISSING)[number];

const WAIT_MS = 300_000;
/** Longer than a POS lets a repeat of a moment ago wait. */
const GRACE_MS = 10_000;

/** One of them keeps a webhook from being committed. */
const CONNECTIONS = 2;

export function addCertifyCommand(program: Command): void {
  program
    .command('certify')
    .description(
      "send a location's POS a test order, and look whether all that has to follow does: taken once, each status, repeats. " +
        'Exits 1 if something does not',
    )
    .requiredOption('--location <id>', 'its id on the ordering platform')
    .option('--delivery', 'a delivery in place of a pickup')
    .addOption(
      new Option(
        '--order <file>',
        'JSON with items, fulfillment and money as `platform schema` has them, of what is on the menu',
      ).conflicts('delivery'),
    )
    .option(
      '--without <what>',
      'statuses that this POS does not have, or `repeats` if it sends nothing again, with commas between: ' +
        MISSING.join(', '),
      readMissing,
      [],
    )
    .option('--wait <time>', 'for each status at most, such as 60s or 5m', readWait, WAIT_MS)
    .addHelpText(
      'after',
      `
The service has to run, and this needs its environment, PUBLIC_URL too. The POS really gets the order: tell the kitchen.
The order's id begins with certify-, and its live messages are published as any other's. What to do at the till and what
each check found is said on standard error; failures with their remedy, and the sum, on standard output. See docs/connect-your-pos.md.
${examples('expediter certify --location club-1', 'expediter certify --location club-1 --delivery --without in_progress --json')}`,
    )
    .action(certifyLocation);
}

async function certifyLocation(options: Options, command: Command): Promise<void> {
  const { location: locationId, without, wait } = options;
  const env = readConfigOf(process.env, ...LOCATION_VARIABLES);
  const { publicUrl, ...rules } = await settingsRules(env);
  if (publicUrl === undefined) {
    throw new WrongLocation('PUBLIC_URL is unset: a POS cannot call us. Example: https://expediter.example.com');
  }
  // Loaded here, since no other command needs them.
  const { certify } = await import('../certify/certify.ts');
  const { sampleContents } = await import('../certify/make-test-order.ts');
  const { statusesOf } = await import('../certify/statuses-of.ts');
  const type: FulfillmentType = options.delivery ? 'delivery' : 'pickup';
  const contents = options.order === undefined ? sampleContents(type) : await readContents(options.order);
  const statuses = statusesOf(contents.fulfillment.type).filter((status) => !without.some((each) => each === status));

  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new Error('stopped; the test order is ended'));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    const certified = await withDatabase(
      env.DATABASE_URL,
      async (pool) => {
        const clock = databaseClock(pool);
        await clock.follow();
        const allowedHosts = env.ALLOW_PRIVATE_HOSTS;
        const deps = {
          pool,
          publicUrl,
          allowedHosts,
          keys: rules.keys,
          open: settingsOpener({ ...rules, publicUrl }),
          credentialsFor: credentialStore(pool, rules.keys),
          posFetch: guardedFetch(allowedHosts),
          now: clock.now,
        };
        const limits = { statusMs: wait, graceMs: Math.min(GRACE_MS, wait) };
        const { signal } = stopping;
        const repeats = !without.includes(REPEATS);
        const asked = { locationId, contents, statuses, repeats, limits, signal };
        const work = (): Promise<Certification> => certify(deps, asked, screen);
        return actAtLocation(pool, 'certify', locationId, work, ({ order }) => order?.serviceOrderId);
      },
      CONNECTIONS,
    );
    const ok = certified.checks.every(({ state }) => state !== 'failed');
    print(command, { ok, locationId, ...certified }, inWords(certified));
    if (!ok) process.exitCode = 1;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

const screen: Tell = {
  wants: (what) => write(`...      ${what}`),
  found: ({ state, check, found }) => write(`${state.padEnd('skipped '.length)} ${check}: ${found}`),
};

function write(line: string): void {
  process.stderr.write(`${terminalText(line)}\n`);
}

function inWords({ order, checks }: Certification): string {
  const failures = checks.filter(({ state }) => state === 'failed').map(describeFailure);
  const count = (state: Certified['state']): number => checks.filter((each) => each.state === state).length;
  const counts = (['failed', 'skipped', 'ok'] as const).flatMap((state) =>
    count(state) > 0 ? [`${count(state)} ${state}`] : [],
  );
  // Each check stands on standard error already.
  return [
    ...failures,
    `${counts.join(', ')}${order === undefined ? '' : `; the test order was ${order.serviceOrderId}`}`,
  ].join('\n\n');
}

function describeFailure({ check, found, request, expected, toDo }: Certified): string {
  return facts({ failed: check, found, 'the request': request, expected, 'to do': toDo });
}

/** @throws WrongInput */
async function readContents(file: string): Promise<TestContents> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new WrongInput(`--order: the file cannot be read (${error.code})`);
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new WrongInput('--order: the file is not JSON');
  }
  const parsed = CanonicalOrder.pick({ items: true, fulfillment: true, money: true }).safeParse(json, {
    reportInput: true,
  });
  if (parsed.success) return parsed.data;
  throw new WrongInput(`--order: ${shapeIssues(parsed.error).map(issueInWords).join('; ')}`);
}

function readMissing(text: string): Missing[] {
  return text.split(',').map((name) => {
    const missing = MISSING.find((each) => each === name.trim().toLowerCase());
    if (missing === undefined) throw new InvalidArgumentError(`Right would be some of ${MISSING.join(', ')}.`);
    return missing;
  });
}

function readWait(text: string): number {
  const [, count, unit] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const seconds = Number(count) * (unit === 'h' ? 3_600 : unit === 'm' ? 60 : 1);
  if (!(seconds > 0)) throw new InvalidArgumentError('Right would be a while such as 60s or 5m.');
  return seconds * 1_000;
}
