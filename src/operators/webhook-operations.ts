import type { Actor } from '../core/operators/operator.ts';
import type { WebhookOutcome } from '../core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../core/postgres/ensure-webhook-partitions.ts';
import {
  ListedWebhooks,
  listWebhooks,
  type KeyedWebhook,
  type WebhookFilter,
  type WebhookKey,
} from '../core/replay/list-webhooks.ts';
import { Replayed, replayWebhook, timeNow, type Replaying } from '../core/replay/replay-webhook.ts';
import { ReplayedMany, replayWebhooks, runAsAction, runInCounts } from '../core/replay/replay-webhooks.ts';
import { ShownWebhook, showWebhook } from '../core/replay/show-webhook.ts';
import { findWebhook, type Refusal } from '../core/replay/stored-webhook.ts';
import { findThing } from './action-of.ts';
import {
  PartlyDone,
  SETTINGS,
  noSuch,
  operation,
  type Caller,
  type CommandOption,
  type Operation,
} from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import {
  Replay,
  ReplayMany,
  WebhookParams,
  WebhookQuery,
  WebhooksQuery,
  optionsOf,
  pagingOptions,
} from './requests.ts';
import { replayInWords, replaysInWords, webhookInWords, webhooksTable } from './webhook-text.ts';

/** Limit for a request that replays many webhooks. It is shorter than a usual load balancer's time-out. */
const REPLAY_MS = 20_000;
const COUNT_MS = 5_000;
const COUNT_PAGE = 1_000;
const COUNT_MAX = 10_000;

const FILTERS: readonly CommandOption[] = [
  ...optionsOf(WebhooksQuery, '--outcome <outcome>', '--location <id>', '--group <name>', '--integration <name>'),
  ...optionsOf(WebhooksQuery, '--since <when>', '--until <when>'),
  { flags: '--old-token', about: 'only webhooks refused for an old token' },
];

/** Whether a command runs the operation. A command has no time limit, because no load balancer is in front of it. */
const isCommand = ({ kind }: Actor): boolean => kind === 'command_line';

const list = operation({
  id: 'listWebhooks',
  access: { role: 'viewer', of: 'list' },
  api: {
    route: 'GET /webhooks',
    summary: 'Webhooks as they arrived, newest first',
    description: 'The list does not show their contents.',
    output: ListedWebhooks,
    answer: 'A page of webhooks.',
  },
  query: WebhooksQuery,
  async run(caller, { location, group: _group, order, limit, cursor, ...filter }) {
    // Only a command says that an order does not exist. In the API this would reveal orders of other locations.
    if (isCommand(caller.by) && order !== undefined) await mustBeThere(caller.pool, order);
    const locations = caller.within(location);
    const after = await whereFrom(caller, cursor, locations);
    const { webhooks, next } = await listWebhooks(
      caller.pool,
      { ...filter, locations, serviceOrderId: order },
      { oldestFirst: false, after, limit },
    );
    return { webhooks: webhooks.map(({ day: _day, ...webhook }) => webhook), next: next?.webhookId ?? null };
  },
  print: ({ webhooks }) => webhooksTable(webhooks),
  command: {
    name: 'webhook list',
    about: 'list webhooks, newest first, without their contents',
    options: [...FILTERS, ...optionsOf(WebhooksQuery, '--order <id>'), ...pagingOptions('webhookId')],
    examples: [
      'expediter webhook list --location club-1 --since 3d',
      'expediter webhook list --outcome dropped --since 2027-01-31T18:00:00Z --until 2027-01-31T20:00:00Z --json',
      'expediter webhook list --order order-4711',
    ],
    rows: 'webhooks',
  },
});

const show = operation({
  id: 'showWebhook',
  access: {
    role: 'viewer',
    of: 'webhook',
    reveals: { action: 'read webhook', when: ({ contents }) => String(contents) !== 'false' },
  },
  api: {
    route: 'GET /webhooks/:webhookId',
    summary: 'One webhook with its headers and its body',
    description:
      'Headers and body may contain what a member wrote, so the audit records who reads them. `reason` is a sentence ' +
      'for people and may change. `cause` is for programs: its code is from a closed list (`DropCause`, ' +
      '`ReplayCause`).',
    output: ShownWebhook,
    answer: 'The webhook.',
  },
  params: WebhookParams,
  query: WebhookQuery,
  reads: SETTINGS,
  async run({ pool, settings }, { webhookId, contents = true }) {
    const shown = await showWebhook({ ...settings, pool }, webhookId);
    return shown === undefined || contents ? shown : withoutContents(shown);
  },
  print: webhookInWords,
  command: {
    name: 'webhook show',
    about:
      'show one webhook with its headers and body, which may contain member data, and what a replay would read in it',
    argument: { flags: '<id>', about: 'from the answer to the webhook, or from the list', field: 'webhookId' },
    examples: ['expediter webhook show 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33'],
  },
});

const replayMany = operation({
  id: 'replayWebhooks',
  access: { role: 'operator', of: 'list', does: 'replay many' },
  api: {
    route: 'POST /webhooks/replay',
    summary: 'Replay all stored webhooks that match, oldest first',
    description:
      'Each replay is a new webhook with its own commit. If one webhook cannot be replayed, the others still are. ' +
      'Replays are left out, and so are webhooks whose outcome a replay has already changed. A run ends early after ' +
      '20 s, or when the client disconnects. `left` counts the remaining webhooks, but only for 5 s. ' +
      'Repeat the request with `next` as `cursor` until `next` is null. Use the `until` of a dry run to cover the ' +
      'same webhooks. See docs/replay.md.',
    output: ReplayedMany,
    answer: 'The outcome of each.',
  },
  body: ReplayMany,
  wakes: true,
  reads: SETTINGS,
  about: ({ pool, within }, { location, group: _group, again, ...filter }) =>
    runAsAction(pool, { ...filter, locations: within(location), replayable: again ? 'all' : 'open' }),
  async run(caller, { dryRun, again, limit, location, group: _group, cursor, ...filter }) {
    const { pool, by, note } = caller;
    const locations = caller.within(location);
    const after = await whereFrom(caller, cursor, locations);
    const deps = await replayingFor(caller, dryRun);
    const until = await timeNow(pool, filter.until);
    const matching = { ...filter, until, locations, replayable: again ? 'all' : 'open' } as const;
    const done: ReplayedMany = { dryRun, until, outcomes: {}, replayed: [], refused: [], left: 0, next: null };
    const endAt = performance.now() + REPLAY_MS;
    const isOver = (): boolean => !isCommand(by) && (caller.isOver() || performance.now() > endAt);
    const most = isCommand(by) ? Infinity : limit;
    let reached: WebhookKey | undefined;
    try {
      const run = replayWebhooks(deps, matching, {
        by,
        from: after,
        passed(upTo) {
          if (!isOver()) return undefined;
          reached = upTo;
          return 'enough';
        },
      });
      for await (const { of, replayed } of run) {
        record(done, of, replayed);
        if (isOver() || done.replayed.length + done.refused.length === most) {
          reached = of;
          break;
        }
      }
      if (reached !== undefined) {
        const { counted, isAll } = await countFrom(pool, matching, reached);
        done.left = counted;
        if (counted > 0 || !isAll) done.next = reached.webhookId;
      }
    } catch (error) {
      note(runInCounts(done));
      // The workers are woken, because the webhooks that were replayed before the error are committed.
      if (!dryRun) caller.wake();
      if (done.replayed.length + done.refused.length === 0) throw error;
      throw new PartlyDone(done, error);
    }
    note(runInCounts(done));
    return done;
  },
  join(parts) {
    const runs = parts as readonly ReplayedMany[];
    const joined = { ...(runs.at(-1) as ReplayedMany), outcomes: {}, replayed: [], refused: [] } as ReplayedMany;
    for (const { replayed, refused, outcomes } of runs) {
      joined.replayed.push(...replayed);
      joined.refused.push(...refused);
      for (const [outcome, count] of Object.entries(outcomes) as [WebhookOutcome, number][]) {
        joined.outcomes[outcome] = (joined.outcomes[outcome] ?? 0) + count;
      }
    }
    return joined;
  },
  print: replaysInWords,
  fails: ({ refused }) => refused.length > 0,
});

const replay = operation({
  id: 'replayWebhook',
  access: { role: 'operator', of: 'webhook', does: 'replay' },
  api: {
    route: 'POST /webhooks/:webhookId/replay',
    summary: 'Apply a stored webhook again',
    description: "It is applied as a new webhook, with today's settings. A second replay changes nothing.",
    output: Replayed,
    answer: 'The outcome of the replay.',
    refuses: [409],
  },
  params: WebhookParams,
  body: Replay,
  wakes: true,
  reads: SETTINGS,
  async run(caller, { webhookId, dryRun }) {
    const replayed = await replayWebhook(await replayingFor(caller, dryRun), webhookId);
    if (replayed !== undefined) caller.note('refused' in replayed ? replayed.cause.code : replayed.outcome);
    return replayed;
  },
  print: replayInWords,
  command: {
    name: 'webhook replay',
    about: 'apply stored webhooks again, each as a new webhook: one by its id, or all that match the filters',
    argument: { flags: '[id]', about: 'only this webhook, with any outcome', field: 'webhookId' },
    cannot: 'cannot be replayed',
    options: [
      ...FILTERS,
      {
        flags: '--again',
        about: 'with filters, also replay webhooks whose outcome a replay has already changed',
      },
      {
        flags: '--dry-run',
        about: 'change nothing, and print the outcome of each webhook if no other webhook were replayed',
      },
    ],
    more: `
A dropped webhook is verified again, with the location's settings of today and the time at which the webhook arrived.
A replay does what the webhook would do if it arrived now.

With filters (at least --outcome, --since or --old-token), webhooks are replayed oldest first, each with its own commit.
If one webhook cannot be replayed, the others still are. If a run stops early, repeat it. A run leaves out:

- replays, and webhooks that arrive during the run;
- webhooks whose outcome a replay has already changed, unless --again (a second "dropped" is no change);
- webhooks refused for an old token, unless --old-token, which replays only these. If the POS does not sign webhooks,
  only you can tell whether they really came from the POS;
- webhooks cut off at WEBHOOK_BODY_LIMIT or the daily quota, and webhooks whose body was erased.

Reads SETTINGS_KEY, PROVIDER_MODULES and PUBLIC_URL, which must be the same as the service's. See docs/replay.md. Exits 1
if a webhook could not be replayed. The outcome "dropped" counts as replayed.
`,
    examples: [
      'expediter webhook replay 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33 --dry-run',
      'expediter webhook replay --outcome dropped --since 2h --location club-1',
    ],
    read({ webhookId, ...filters }) {
      const { dryRun, ...filter } = filters;
      if (webhookId === undefined) {
        const { outcome, since, oldToken } = filter;
        if (!outcome && !since && !oldToken) {
          throw new NotDone(400, 'Say which webhooks: an id, or at least --outcome, --since or --old-token.');
        }
        return { operation: replayMany, input: filters };
      }
      if (Object.keys(filter).length > 0)
        throw new NotDone(400, 'Give either the id of one webhook or filters, not both.');
      return { webhookId, dryRun };
    },
  },
});

export const WEBHOOK_OPERATIONS: readonly Operation[] = [list, show, replay, replayMany];

async function replayingFor({ pool, by, settings }: Caller, dryRun: boolean): Promise<Replaying> {
  // A command makes today's partition, because it is missing if no service has run for a week.
  if (isCommand(by)) await ensureWebhookPartitions(pool);
  return { ...settings, pool, dryRun };
}

async function mustBeThere(pool: Caller['pool'], serviceOrderId: string): Promise<void> {
  const found = await findThing(pool, 'order', { serviceOrderId });
  if (found === undefined) throw new NotDone(404, noSuch.order);
}

async function whereFrom(
  { pool }: Caller,
  cursor: string | undefined,
  locations: readonly string[] | undefined,
): Promise<WebhookKey | undefined> {
  if (cursor === undefined) return undefined;
  const after = await findWebhook(pool, cursor);
  if (after === undefined || locations?.includes(after.locationId) === false)
    throw new NotDone(400, 'The cursor is not the `next` of a page, or its webhook was deleted.');
  return after;
}

async function countFrom(
  pool: Caller['pool'],
  filter: WebhookFilter,
  from: WebhookKey,
): Promise<{ counted: number; isAll: boolean }> {
  const until = performance.now() + COUNT_MS;
  let counted = 0;
  let after: WebhookKey | undefined = from;
  while (after !== undefined && counted < COUNT_MAX && performance.now() < until) {
    const page = await listWebhooks(pool, filter, { oldestFirst: true, after, limit: COUNT_PAGE });
    counted += page.webhooks.length;
    after = page.next;
  }
  return { counted, isAll: after === undefined };
}

function record(
  done: ReplayedMany,
  { webhookId, receivedAt, locationId, integration }: KeyedWebhook,
  replayed: Replayed | Refusal,
): void {
  if ('refused' in replayed) {
    done.refused.push({ webhookId, receivedAt, locationId, integration, ...replayed });
    return;
  }
  done.replayed.push(replayed);
  const { outcome }: { outcome: WebhookOutcome } = replayed;
  done.outcomes[outcome] = (done.outcomes[outcome] ?? 0) + 1;
}

/** Removes contents, and the reasons of events, because a POS may quote the member in a reason. */
function withoutContents({ body: _body, headers: _headers, today, ...about }: ShownWebhook): ShownWebhook {
  if (!('events' in today)) return { ...about, today };
  return { ...about, today: { events: today.events.map(({ reason: _reason, ...event }) => event) } };
}
