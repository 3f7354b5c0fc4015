import { z } from 'zod';
import { describeAction, nameOf } from '../core/domain/describe-action.ts';
import { table, tableOf, time } from '../terminal/print.ts';
import { Id } from '../core/domain/order.ts';
import type { Care } from '../core/cases/cases.ts';
import { readAuthors } from '../core/operators/people.ts';
import { FILTER_OUTCOMES, ListedActions, readAudit, type RecordedAction } from '../core/operators/read-audit.ts';
import { SCORECARDS_MAX, Scorecards, readScorecards } from '../core/orders/read-scorecards.ts';
import { SpillAnswer } from '../core/spill/spill-webhook.ts';
import { ReadTraffic, readTraffic } from '../core/traffic/read-traffic.ts';
import { operation, type Operation } from './operation.ts';
import { When, group, oneOf, optionsOf, paging, pagingOptions } from './requests.ts';

const AuditQuery = z.strictObject({
  actor: Id.optional().meta({ description: "The operator's name in the audit, or the operator's id." }),
  action: Id.optional().meta({
    description: 'What was done, such as `resolve` or `be refused`.',
    examples: ['replay'],
  }),
  location: Id.optional().meta({ description: 'At this location.' }),
  group,
  order: Id.optional().describe('About this order. Replays of its webhooks are shown with the order.'),
  outcome: oneOf(
    FILTER_OUTCOMES,
    'How it ended. An action is `unknown` if it still runs, or if its process died.',
  ).optional(),
  since: When.optional().describe('Only actions that began at this time or later.'),
  until: When.optional().describe('Only actions that began before this time.'),
  ...paging(z.string().regex(/^\d{1,18}$/, { error: 'must be the `next` of a page' })),
});

const audit = operation({
  id: 'readAudit',
  access: { role: 'admin', of: 'list' },
  api: {
    route: 'GET /audit',
    summary: 'What operators did and read, and what was refused, newest first',
    description:
      'The list has codes and ids, but no member data. An admin of some locations reads the actions at these ' +
      'locations. Only an admin of all locations reads the actions that belong to no location. An action is recorded ' +
      'before it is done. If it cannot be recorded, it is not done, and the answer is 503. Rows never change, and are ' +
      'stored for `AUDIT_RETENTION_DAYS`. The only texts that staff typed in them are names of tokens, addresses and ' +
      'groups that have roles, people who take a case, reasons of pauses and of busy kitchens, and of locations all ' +
      'but secrets and contacts. At most a thousand refusals a minute are recorded for one operator.',
    output: ListedActions,
    answer: 'A page of actions.',
  },
  query: AuditQuery,
  run: ({ pool, within }, { location, group: _group, order, limit, cursor, ...filter }) =>
    readAudit(pool, { ...filter, locations: within(location), serviceOrderId: order }, { before: cursor, limit }),
  print: ({ actions }) => actsTable(actions, 'No actions match.'),
  command: {
    name: 'audit list',
    about: 'list actions of operators, newest first, with the operator, the source, the subject and the outcome',
    options: [
      ...optionsOf(
        AuditQuery,
        '--actor <name>',
        '--action <what>',
        '--location <id>',
        '--group <name>',
        '--order <id>',
      ),
      ...optionsOf(AuditQuery, '--outcome <outcome>', '--since <when>', '--until <when>'),
      ...pagingOptions('auditId'),
    ],
    more: `
Every command that changes something, or shows what a member wrote, is recorded with the system's user name and the name
from --as. A person who may write to Postgres can use any name. Two commands are not recorded: "migrate" runs before the
audit exists, and "platform check --reveal" uses no database.
`,
    examples: [
      'expediter audit list --action replay --since 1d',
      'expediter audit list --outcome refused --since 2027-01-31T18:00:00Z',
    ],
    rows: 'actions',
  },
});

const authors = operation({
  id: 'listAuthors',
  access: { role: 'admin', of: 'list' },
  api: {
    route: 'GET /audit/people',
    summary: 'Who acted lately',
    description: 'The authors of the newest actions, by name, for the filter `actor` of the audit.',
    output: z.object({ people: z.array(z.string()) }),
    answer: 'The names, sorted.',
  },
  run: async ({ pool, within }) => ({ people: await readAuthors(pool, within()) }),
});

const HOURS = { '1': 1, '6': 6, '24': 24 } as const;

const traffic = operation({
  id: 'readTraffic',
  access: { role: 'viewer', of: 'list' },
  api: {
    route: 'GET /traffic',
    summary: 'Counts of orders and webhooks in the last hours, by integration',
    description:
      'The counts are sums over all processes, up to ten seconds ago. The last step is incomplete. Percentiles are ' +
      'estimated from buckets. `unknown` counts webhooks to a URL with an unknown integration, and orders of a ' +
      'location that is not configured.',
    output: ReadTraffic,
    answer: 'Lists with one value for each step.',
  },
  query: z.strictObject({
    hours: z
      .enum(['1', '6', '24'])
      .default('1')
      .transform((hours) => HOURS[hours])
      .meta({ description: 'How many hours back.', examples: ['6'] }),
    location: Id.optional().meta({ description: 'At this location.' }),
    group,
    integration: Id.optional().meta({ description: 'Through this integration.' }),
  }),
  run: ({ pool, within }, { hours, location, integration }) =>
    readTraffic(pool, { hours, locations: within(location), integration }),
});

const scorecards = operation({
  id: 'readScorecards',
  access: { role: 'viewer', of: 'list' },
  api: {
    route: 'GET /scorecards',
    summary: 'How well each vendor worked in the last day and week',
    description:
      'There is one scorecard for each integration. With `integration`, there is one for each of its locations. With ' +
      '`location`, there is one for this location. Only whole hours are counted, up to ten minutes ago. ' +
      `At most ${SCORECARDS_MAX} scorecards are listed, those with most missing webhooks first.`,
    output: Scorecards,
    answer: 'One scorecard for each integration or location.',
  },
  query: z.strictObject({
    location: Id.optional().meta({ description: 'Only this location.' }),
    group,
    integration: Id.optional().meta({ description: 'Each location of this integration.' }),
  }),
  async run({ pool, within }, { location, integration }) {
    return { scorecards: await readScorecards(pool, { integration, locations: within(location) }) };
  },
});

const spill = operation({
  id: 'readSpill',
  access: { role: 'viewer', of: 'none', whileAway: true },
  api: {
    route: 'GET /spill',
    summary: 'Whether Postgres is away, and how many webhooks wait for it',
    description:
      'Every process reports only what it knows itself. It also answers while Postgres is away. Without a spill, no ' +
      'webhook waits.',
    output: SpillAnswer,
    answer: 'The state of this process.',
  },
  async run({ service }) {
    if (service === undefined) return undefined;
    const { waiting, oldestAt } = service.spillState();
    return { database: service.readiness().database, waiting, oldestAt: oldestAt?.toISOString() ?? null };
  },
});

export const READING_OPERATIONS: readonly Operation[] = [audit, authors, traffic, scorecards, spill];

/** Formats one line for each action. @param none the text if there are no actions */
export function actsTable(actions: readonly (RecordedAction & { source?: string | null })[], none = ''): string {
  return tableOf(none, actions, ({ at, by, source, callOutCode, ...about }) => ({
    at: time(at),
    by: `${by.name} (${by.kind.replace('_', ' ')})`,
    ...(source !== undefined && { from: source }),
    action: about.action,
    location: about.locationId,
    code: callOutCode,
    order: about.serviceOrderId,
    webhook: about.webhookId,
    about: about.subject,
    outcome: about.outcome ?? 'unknown',
    what: whatWasDone({ at, by, callOutCode, ...about }),
  }));
}

/** The sentence without the name, which has a column. */
function whatWasDone(action: RecordedAction): string {
  const { sentence, more } = describeAction(action);
  return [sentence.slice(nameOf(action.by).length + 1), ...more].join('; ');
}

export function notesTable(notes: Care['notes']): string {
  return table(notes.map(({ at, by, text }) => ({ at: time(at), by, note: text })));
}
