import { z } from 'zod';
import { table, time } from '../cli/print.ts';
import { Id } from '../core/domain/order.ts';
import { FILTER_OUTCOMES, ListedActions, readAudit, type RecordedAction } from '../core/operators/read-audit.ts';
import { SCORECARDS_MAX, Scorecards, readScorecards } from '../core/orders/read-scorecards.ts';
import { SpillAnswer } from '../core/spill/spill-webhook.ts';
import { ReadTraffic, readTraffic } from '../core/traffic/read-traffic.ts';
import { operation, type Operation } from './operation.ts';
import { When, oneOf, paging, pagingOptions, spanOptions } from './requests.ts';

const audit = operation({
  id: 'readAudit',
  role: 'admin',
  of: 'list',
  api: {
    tag: 'Audit',
    route: 'GET /audit',
    summary: 'What operators did, looked into and were refused, newest first',
    description:
      'Codes and ids, nothing of a member. An admin of some locations reads what was done at those; what belongs to ' +
      'no location only an admin of all reads. An act is written down before it is done: what cannot be is not done, and ' +
      'is a 503. Rows are never changed, and kept for `AUDIT_RETENTION_DAYS`. What staff typed is in it where it names ' +
      'them: names of tokens, addresses and groups that were given roles. Of one operator a thousand refusals a minute ' +
      'are written down, and no more.',
    output: ListedActions,
    answer: 'A page of actions.',
  },
  query: z.strictObject({
    actor: Id.optional().meta({ description: 'By whom: their name as the audit has it, or their id.' }),
    action: Id.optional().meta({ description: 'What was done.', examples: ['replay'] }),
    location: Id.optional().meta({ description: 'At this location.' }),
    order: Id.optional().meta({ description: 'About this order. Replays of its webhooks stand in its story.' }),
    outcome: oneOf(FILTER_OUTCOMES, 'How it ended; `unknown`: it is under way, or its process died.').optional(),
    since: When.optional().describe('Begun then or later.'),
    until: When.optional().describe('Begun before.'),
    ...paging(z.string().regex(/^\d{1,18}$/, { error: 'is not the `next` of a page' })),
  }),
  run: ({ pool, within }, { location, order, limit, cursor, ...filter }) =>
    readAudit(pool, { ...filter, locations: within(location), serviceOrderId: order }, { before: cursor, limit }),
  print: ({ actions }) => actsTable(actions, 'no actions match'),
  command: {
    name: 'audit list',
    about: 'actions, newest first: who, from where, what, about what, and how it ended',
    options: [
      { flags: '--actor <name>', about: 'by whom: their name as it stands there, or their id' },
      { flags: '--action <what>', about: 'what was done, such as replay, resolve or "be refused"' },
      { flags: '--location <id>', about: 'at this location' },
      { flags: '--order <id>', about: 'about this order; replays of its webhooks stand in `order show`' },
      { flags: '--outcome <outcome>', about: 'how it ended', choices: FILTER_OUTCOMES },
      ...spanOptions('begun'),
      ...pagingOptions('auditId'),
    ],
    more: `
Every command that changes something, or shows what a member wrote, is in it: by the name of the system's user, and behind
it what --as says. Who may write to Postgres can take any name. "migrate", which comes before there is an audit, and
"platform check --reveal", which has no database, are not.
`,
    examples: [
      'expediter audit list --action replay --since 1d',
      'expediter audit list --outcome refused --since 2027-01-31T18:00:00Z',
    ],
    rows: 'actions',
  },
});

const HOURS = { '1': 1, '6': 6, '24': 24 } as const;

const traffic = operation({
  id: 'readTraffic',
  role: 'viewer',
  of: 'list',
  api: {
    tag: 'Traffic',
    route: 'GET /traffic',
    summary: 'What went through in the last hours, by integration',
    description:
      'Of all processes together, to ten seconds, also before the last restart. The last step is under way. Percentiles are ' +
      'estimated from buckets. `unknown` is of webhooks to a URL that names no integration of ours, and of orders of a ' +
      'location that is not configured.',
    output: ReadTraffic,
    answer: 'Lists with one value for each step.',
  },
  query: z.strictObject({
    hours: z
      .enum(['1', '6', '24'], { error: 'is none of 1, 6, 24' })
      .default('1')
      .transform((hours) => HOURS[hours])
      .meta({ description: 'How far back.', examples: ['6'] }),
    location: Id.optional().meta({ description: 'At this location.' }),
    integration: Id.optional().meta({ description: 'Through this integration.' }),
  }),
  run: ({ pool, within }, { hours, location, integration }) =>
    readTraffic(pool, { hours, locations: within(location), integration }),
});

const scorecards = operation({
  id: 'readScorecards',
  role: 'viewer',
  of: 'list',
  api: {
    tag: 'Traffic',
    route: 'GET /scorecards',
    summary: 'What each vendor was like in the last day and week',
    description:
      'Of each integration; with `integration` of each of its locations, with `location` of one. Who has a role at some ' +
      `locations only gets these, one by one. By whole hours, to ten minutes. Those with the most missing webhooks come first, ${SCORECARDS_MAX} at most.`,
    output: Scorecards,
    answer: 'One for each integration or location.',
  },
  query: z.strictObject({
    location: Id.optional().meta({ description: 'Of this location.' }),
    integration: Id.optional().meta({ description: 'Of each location of this integration.' }),
  }),
  async run({ pool, within }, { location, integration }) {
    return { scorecards: await readScorecards(pool, { integration, locations: within(location) }) };
  },
});

const spill = operation({
  id: 'readSpill',
  role: 'viewer',
  of: 'none',
  whileAway: true,
  api: {
    tag: 'Process',
    route: 'GET /spill',
    summary: 'Whether Postgres is away, and how many webhooks wait for it',
    description:
      'As this process sees it; every process counts its own. It is answered while Postgres is away. With the spill ' +
      'off, none waits.',
    output: SpillAnswer,
    answer: 'What it knows now.',
  },
  async run({ service }) {
    if (service === undefined) return undefined;
    const { waiting, oldestAt } = service.spillState();
    return { database: service.readiness().database, waiting, oldestAt: oldestAt?.toISOString() ?? null };
  },
});

export const READING_OPERATIONS: readonly Operation[] = [audit, traffic, scorecards, spill];

/** One line for each act. @param none said where there is none */
export function actsTable(actions: readonly (RecordedAction & { source?: string | null })[], none = ''): string {
  return table(
    actions.map(
      ({ at, by, source, action, locationId, serviceOrderId, webhookId, subject, before, outcome, after }) => ({
        at: time(at),
        by: `${by.name} (${by.kind.replace('_', ' ')})`,
        ...(source !== undefined && { from: source }),
        action,
        location: locationId,
        order: serviceOrderId,
        webhook: webhookId,
        about: subject,
        before,
        outcome: outcome ?? 'unknown',
        after,
      }),
    ),
    none,
  );
}
