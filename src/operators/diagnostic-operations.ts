import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { durationIn, readJson, readList } from '../terminal/print.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import type { Status } from '../core/domain/lifecycle.ts';
import { CanonicalOrder } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { WrongLocation, findLocation } from '../core/locations/locations.ts';
import { Check, Finding, PARTS } from '../diagnostics/check.ts';
import { describeFailure, isFine, lineOf, sumOf } from '../diagnostics/print-checks.ts';
import type { TestContents } from '../diagnostics/test-run.ts';
import { printError } from '../observe/terminal-text.ts';
import { NO_PUBLIC_URL, POS, operation, unlessDrained, type Operation, type Tell } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { LocationParams, optionalFields } from './requests.ts';

/** A value of `without`: the POS never repeats a webhook that was not answered 200. */
const REPEATS = 'repeats';
const MISSING = ['received', 'in_progress', 'ready', 'en_route', 'completed', REPEATS] as const satisfies (
  | Status
  | 'repeats'
)[];

const WAIT_S = 300;
const WAIT_MAX_S = 900;
/** The time to wait for a status after another webhook came. A POS repeats a refused webhook within this time. */
const GRACE_MS = 10_000;

/** One connection runs the checks. The other holds a lock that prevents the commit of a webhook. */
const CONNECTIONS = 2;
/** Only one in a process, because it keeps two connections of the pool, which may have only two. */
let isCertifying = false;

const Contents = CanonicalOrder.pick({ items: true, fulfillment: true, money: true });

const CertifyBody = optionalFields({
  fulfillment: z.enum(['pickup', 'delivery']).default('pickup').meta({ description: 'Of the sample order.' }),
  order: Contents.exactOptional().meta({ description: 'Instead of the sample order. Use items from the menu.' }),
  without: z
    .array(z.enum(MISSING))
    .default([])
    .describe(`Statuses that this POS never reports. \`${REPEATS}\`: it never repeats a webhook.`),
  waitSeconds: z.int().min(1).max(WAIT_MAX_S).default(WAIT_S).describe('Maximum time to wait for each status.'),
});

const Certified = z.object({
  ok: z.boolean().meta({ description: 'Whether no check failed.' }),
  locationId: z.string(),
  order: z
    .looseObject({ serviceOrderId: z.string() })
    .exactOptional()
    .describe('The test order. Left out if none was sent.'),
  checks: z.array(Check),
});

const certifyLocation = operation({
  id: 'certifyLocation',
  access: { role: 'integrator', of: 'location', does: 'certify' },
  api: {
    route: 'POST /locations/:locationId/certify',
    summary: "Send a test order to a location's POS, and check all that the POS does with it",
    description:
      'The POS gets a real order, so warn the kitchen. Its live messages are published like those of any order. It ' +
      'takes minutes. If you disconnect, the test order is ended.',
    streams:
      '`wants`: what a person must do at the till now, as `what`. `found`: a finished check, as in the `checks` of the ' +
      'output.',
    output: Certified,
    answer: 'All checks.',
    refuses: [409],
  },
  params: LocationParams,
  body: CertifyBody,
  reads: POS,
  async run({ pool, pos, settings, stopped, tell, note }, { locationId, fulfillment, order, without, waitSeconds }) {
    const { publicUrl, keys } = settings;
    if (publicUrl === '') {
      throw new WrongLocation(NO_PUBLIC_URL);
    }
    if ((await findLocation(pool, locationId)) === undefined) return undefined;
    if (isCertifying) return { refused: 'This process tests another location now. Try again later.' };
    isCertifying = true;
    try {
      // Imported here, because no other operation needs these modules.
      const { certify } = await import('../diagnostics/certify.ts');
      const { sampleContents, statusesOf } = await import('../diagnostics/test-run.ts');
      const contents = order ?? sampleContents(fulfillment);
      const wait = waitSeconds * 1_000;
      const about = {
        locationId,
        contents,
        statuses: statusesOf(contents.fulfillment.type).filter((status) => !without.some((each) => each === status)),
        repeats: !without.includes(REPEATS),
        limits: { statusMs: wait, graceMs: Math.min(GRACE_MS, wait) },
        signal: stopped,
      };
      const progress = {
        wants: (what: string): void => tell('wants', { what }),
        found: (check: Check): void => tell('found', check),
      };
      const { order: sent, checks } = await certify({ ...pos, publicUrl, keys }, about, progress);
      if (sent !== undefined) note(sent.serviceOrderId);
      return { ok: isFine(checks), locationId, ...(sent && { order: sent }), checks };
    } catch (error) {
      // An aborted wait throws an error of its own, which does not say why.
      throw stopped.aborted && (error as Error).name === 'AbortError' ? stopped.reason : error;
    } finally {
      isCertifying = false;
    }
  },
  fails: ({ ok }) => !ok,
  // Only the failures, because all checks were already printed to standard error.
  print({ order, checks }) {
    const failures = checks.filter(({ state }) => state === 'failed').map(describeFailure);
    const testOrder = order === undefined ? '' : `; the test order was ${order.serviceOrderId}`;
    return [...failures, `${sumOf(checks)}${testOrder}`].join('\n\n');
  },
  command: {
    name: 'certify',
    argument: false,
    about:
      "send a test order to a location's POS, and check that the POS makes one ticket, reports each status and " +
      'repeats webhooks. Exits 1 if a check fails',
    options: [
      { flags: '--location <id>', about: 'its id on the ordering platform', required: true },
      { flags: '--delivery', about: 'a delivery instead of a pickup' },
      {
        flags: '--order <file>',
        about:
          'a JSON file with items, fulfillment and money of the test order, as in `platform schema`; items from the menu',
        conflicts: 'delivery',
      },
      {
        flags: '--without <what>',
        about: `statuses that this POS never reports, separated by commas; \`repeats\` if it never repeats a webhook: ${MISSING.join(', ')}`,
        read: readList,
      },
      {
        flags: '--wait <time>',
        about: 'maximum time to wait for each status, such as 60s or 5m, which is the default',
        read: readWait,
      },
    ],
    more: `
The service must be running. With DATABASE_URL, use its environment, including PUBLIC_URL. The POS gets a real order, so
warn the kitchen. The order's id begins with certify-. Its live messages are published like those of any order. Standard
error shows what to do at the till and each result. Standard output shows failures, fixes and totals. See
docs/connect-your-pos.md.
`,
    examples: [
      'expediter certify --location club-1',
      'expediter certify --location club-1 --delivery --without in_progress --json',
    ],
    connections: CONNECTIONS,
    tell: printProgress,
    async read({ location, delivery, order, without, wait }) {
      return {
        locationId: location,
        ...(delivery === true && { fulfillment: 'delivery' }),
        ...(order !== undefined && { order: await readContents(order as string) }),
        without,
        waitSeconds: wait,
      };
    },
  },
});

let isExamining = false;

export const examineDeployment = operation({
  id: 'examineDeployment',
  access: { role: 'admin', of: 'all', does: 'doctor' },
  api: {
    route: 'POST /doctor',
    summary: 'Check everything that the deployment needs',
    description:
      'The process that answers checks itself, as `expediter doctor` does on its machine. It orders and publishes ' +
      'nothing, and changes nothing, except that it may renew an access token. It takes up to 30 s.',
    output: z.object({
      ok: z.boolean().meta({ description: 'Whether no check failed.' }),
      findings: z.array(Finding),
    }),
    answer: 'All checks.',
    refuses: [409],
  },
  body: optionalFields({
    only: z
      .array(z.enum(PARTS))
      .min(1)
      .default([...PARTS])
      .describe('Check only these parts.'),
  }),
  async run({ service, stopped, note }, { only }) {
    // Each run opens connections of its own to Postgres.
    if (isExamining) return { refused: 'The doctor already runs in this process. Try again in half a minute.' };
    isExamining = true;
    try {
      const { examine } = await import('../diagnostics/doctor.ts');
      const findings = await unlessDrained(examine(service?.env ?? {}, only, service?.isForwarded()), stopped);
      note(sumOf(findings));
      return { ok: isFine(findings), findings };
    } finally {
      isExamining = false;
    }
  },
});

export const DIAGNOSTIC_OPERATIONS: readonly Operation[] = [certifyLocation, examineDeployment];

function printProgress(...[event, data]: Parameters<Tell>): void {
  const line = event === 'wants' ? `...      ${(data as { what: string }).what}` : lineOf(data as Check);
  printError(line);
}

/** @throws NotDone */
async function readContents(file: string): Promise<TestContents> {
  const parsed = Contents.safeParse(await readJson('--order', file), { reportInput: true });
  if (parsed.success) return parsed.data;
  throw new NotDone(400, `--order: ${shapeIssues(parsed.error).map(issueInWords).join('; ')}`);
}

/** @returns seconds */
function readWait(text: string): number {
  const seconds = (durationIn(text, 'sm') ?? 0) / 1_000;
  if (seconds > 0 && seconds <= WAIT_MAX_S) return seconds;
  throw new InvalidArgumentError('Use a duration such as 60s or 5m, up to 15m.');
}
