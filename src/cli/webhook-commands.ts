import { Option, type Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { WEBHOOK_OUTCOMES, type WebhookOutcome } from '../core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../core/postgres/ensure-webhook-partitions.ts';
import type { Registry } from '../core/domain/provider.ts';
import { findWebhook, type Refusal } from '../core/replay/stored-webhook.ts';
import { listWebhooks, type WebhookFilter, type WebhookKey, type KeyedWebhook } from '../core/replay/list-webhooks.ts';
import { settingsOpener } from '../core/locations/locations.ts';
import { replayWebhooks, runAsAct, runInCounts, type ReplayedMany } from '../core/replay/replay-webhooks.ts';
import { replayWebhook, type Replayed, type Replaying } from '../core/replay/replay-webhook.ts';
import { showWebhook, type ShownWebhook } from '../core/replay/show-webhook.ts';
import { showOrder } from '../core/orders/show-order.ts';
import type { RetranslateDeps } from '../core/replay/retranslate.ts';
import { audited } from '../core/operators/audit.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples } from './examples.ts';
import { NotFound, WrongInput, describe } from './failures.ts';
import { facts, print, table, time } from './print.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX, readLimit } from './read-limit.ts';
import { PAST, readPast } from './read-time.ts';
import { settingsRules } from './settings-rules.ts';
import { withDatabase } from './with-database.ts';

type Filters = {
  outcome?: WebhookOutcome;
  location?: string;
  integration?: string;
  since?: Date;
  until?: Date;
  oldToken?: true;
};

export function addWebhookCommands(program: Command): void {
  const webhook = program
    .command('webhook')
    .description('webhooks as they arrived, what became of them, and replaying them')
    .addHelpText(
      'after',
      examples('expediter webhook list --outcome dropped --since 2h', 'expediter webhook replay --outcome dropped'),
    );

  withFilters(webhook.command('list').description('webhooks, newest first; nothing of their contents'))
    .option('--order <id>', "those in this order's history")
    .option('--limit <count>', `at most so many, up to ${LIST_LIMIT_MAX}`, readLimit, LIST_LIMIT)
    .option('--after <webhookId>', 'go on behind this one, the last of the list before')
    .addHelpText(
      'after',
      examples(
        'expediter webhook list --location club-1 --since 3d',
        'expediter webhook list --outcome dropped --since 2027-01-31T18:00:00Z --until 2027-01-31T20:00:00Z --json',
        'expediter webhook list --order order-4711',
      ),
    )
    .action(async (options: Filters & { order?: string; limit: number; after?: string }, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const rows = await withDatabase(DATABASE_URL, (pool) => list(pool, options));
      print(
        command,
        rows.map(({ day: _day, ...row }) => row),
        rows.length < options.limit
          ? tableOf(rows)
          : `${tableOf(rows)}\n\nthere may be more: --after ${rows.at(-1)?.webhookId}`,
      );
    });

  webhook
    .command('show')
    .description(
      'one webhook with its headers and its body, which may hold what a member wrote; and what a replay would read in it',
    )
    .argument('<id>', 'as the webhook was answered, or as list says')
    .addHelpText('after', examples('expediter webhook show 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33'))
    .action(async (id: string, _options: object, command: Command) => {
      const shown = await withTranslators((deps) => act(deps.pool, 'read webhook', id, () => showWebhook(deps, id)));
      if (shown === undefined) throw noSuchWebhook(id);
      print(command, { ...shown, body: legible(shown.body) }, inWords(shown));
    });

  withFilters(webhook.command('replay').argument('[id]', 'this one alone, whatever it is'))
    .description('apply kept webhooks anew, each as a webhook of its own: this one, or all that match')
    .option('--again', 'with the filters: also those of which a replay has made something else already')
    .option('--dry-run', 'only say what would become of each, if it alone were replayed now')
    .addHelpText(
      'after',
      `
A dropped webhook is verified again with the location's settings of today, by the time at which it came. Any other
verified when it came, and so had one that only Postgres refused. What a replay does is what the webhook would have
done now, so a repeat moves nothing.

With filters (--outcome, --since or --old-token at least), webhooks are replayed oldest first, each with its own commit: one that
cannot be replayed stops no other, and a run that was cut short is simply repeated. Left out are
  - replays themselves, and whatever arrives during the run;
  - webhooks of which a replay made something other than they were (unless --again); dropped again does not count;
  - those that were refused for an old token (unless --old-token, which takes them alone): whether they are the POS's,
    only you can tell, where it signs nothing;
  - those that were cut off at WEBHOOK_BODY_LIMIT or DROPPED_QUOTA, and those whose body has been erased.
Reads SETTINGS_KEY, PROVIDER_MODULES, PUBLIC_URL and PARK_TTL_S: as the service has them.
Exits 1 when one could not be replayed; "dropped" is an outcome.
${examples(
  'expediter webhook replay 019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33 --dry-run',
  'expediter webhook replay --outcome dropped --since 2h --location club-1',
)}`,
    )
    .action(async (id: string | undefined, options: Filters & { again?: true; dryRun?: true }, command: Command) => {
      const { again, dryRun = false, ...filters } = options;
      const filtered = Object.keys(filters).length > 0 || again;
      if (id !== undefined && filtered) throw new WrongInput('give either the id of one webhook, or filters');
      if (id === undefined && !filters.outcome && !filters.since && !filters.oldToken) {
        throw new WrongInput('say which: the id of one webhook, or --outcome, --since or --old-token');
      }
      await (id === undefined
        ? replayMany({ ...toFilter(filters), replayable: again ? 'all' : 'open' }, dryRun, command)
        : replayOne(id, dryRun, command));
    });
}

function withFilters(command: Command): Command {
  return command
    .addOption(new Option('--outcome <outcome>', 'what became of it').choices(WEBHOOK_OUTCOMES))
    .option('--location <id>', 'at this location')
    .option('--integration <name>', 'through this integration')
    .option('--since <when>', `received since then: ${PAST}`, readPast)
    .option('--until <when>', `received before: ${PAST}`, readPast)
    .option('--old-token', 'refused with 401, for a token that was issued once');
}

function toFilter({ location, ...filters }: Filters): WebhookFilter {
  return { ...filters, locations: location === undefined ? undefined : [location] };
}

async function list(
  pool: Pool,
  { order, limit, after, ...filters }: Filters & { order?: string; limit: number; after?: string },
): Promise<KeyedWebhook[]> {
  const cursor = after === undefined ? undefined : await findWebhook(pool, after);
  if (after !== undefined && cursor === undefined) throw noSuchWebhook(after);
  const shown = order === undefined ? undefined : await showOrder(pool, order);
  if (order !== undefined && shown === undefined) throw new NotFound(`no signal ever named the order "${order}"`);
  const filter = { ...toFilter(filters), serviceOrderId: order };
  const found: KeyedWebhook[] = [];
  let behind: WebhookKey | undefined = cursor;
  do {
    const page = await listWebhooks(pool, filter, { oldestFirst: false, after: behind, limit: limit - found.length });
    found.push(...page.webhooks);
    behind = page.next;
  } while (behind !== undefined && found.length < limit);
  return found;
}

async function replayOne(id: string, dryRun: boolean, command: Command): Promise<void> {
  const replayed = await withReplays(dryRun, (deps) => {
    const work = (): Promise<Replayed | Refusal | undefined> => replayWebhook(deps, id);
    const after = (done: Replayed | Refusal | undefined): string | undefined =>
      done && ('refused' in done ? done.cause.code : done.outcome);
    return dryRun ? work() : act(deps.pool, 'replay', id, work, after);
  });
  if (replayed === undefined) throw noSuchWebhook(id);
  if ('refused' in replayed) throw new Error(`${id} cannot be replayed: ${replayed.refused}`);
  const { webhookId, replayOf, locationId, integration, outcome, reason, events, redriven } = replayed;
  const words = facts({
    'would be': dryRun ? outcome : '',
    outcome: dryRun ? '' : outcome,
    why: reason,
    webhook: webhookId,
    'replay of': replayOf,
    location: locationId,
    integration,
    'went on with it': redriven > 0 ? `${redriven} events that waited for a POS id` : '',
  });
  const about = events.map((event) => ({
    status: event.status,
    order: event.serviceOrderId,
    'POS id': event.providerOrderId,
    outcome: event.conflict ? `${event.outcome}, conflict: a person should look` : event.outcome,
  }));
  print(command, { ...replayed, dryRun }, events.length === 0 ? words : `${words}\n\n${table(about, '')}`);
}

/** Does something about a webhook as an act of whoever runs the command. @throws NotFound if there is none */
async function act<Result>(
  pool: Pool,
  did: string,
  id: string,
  work: () => Promise<Result>,
  after?: (result: Result) => string | undefined,
): Promise<Result> {
  const found = await findWebhook(pool, id);
  if (found === undefined) throw noSuchWebhook(id);
  const { webhookId, locationId } = found;
  return audited(pool, commandLineActor(), { did, webhookId, locationId }, work, after);
}

async function replayMany(
  filter: WebhookFilter & { replayable: 'open' | 'all' },
  dryRun: boolean,
  command: Command,
): Promise<void> {
  const replayed: Replayed[] = [];
  const refused: ReplayedMany['refused'] = [];
  const outcomes: ReplayedMany['outcomes'] = {};
  let stopped: string | undefined;
  await withReplays(dryRun, async (deps) => {
    const by = commandLineActor();
    const run = async (): Promise<Pick<ReplayedMany, 'outcomes' | 'refused'>> => {
      for await (const each of replayWebhooks(deps, filter, { by })) {
        const { webhookId, locationId, integration } = each.of;
        if ('refused' in each.replayed) refused.push({ webhookId, locationId, integration, ...each.replayed });
        else {
          replayed.push(each.replayed);
          outcomes[each.replayed.outcome] = (outcomes[each.replayed.outcome] ?? 0) + 1;
        }
      }
      return { outcomes, refused };
    };
    const about = { did: 'replay many', ...(await runAsAct(deps.pool, filter)) };
    try {
      await (dryRun ? run() : audited(deps.pool, by, about, run, runInCounts));
    } catch (error) {
      // The webhooks replayed so far are done, and are reported.
      if (replayed.length + refused.length === 0) throw error;
      stopped = describe(error);
    }
  });

  const counts = Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`);
  if (refused.length > 0) counts.push(`${refused.length} not replayable`);
  const rows = [
    ...replayed.map((each) => ({
      'replay of': each.replayOf,
      webhook: each.webhookId,
      location: each.locationId,
      integration: each.integration,
      [dryRun ? 'would be' : 'outcome']: each.outcome,
      orders: [...new Set(each.events.map((event) => event.serviceOrderId ?? event.providerOrderId))].join(', '),
      conflict: each.events.some((event) => event.conflict) ? 'a person should look' : '',
      why: each.reason,
    })),
    ...refused.map((each) => ({
      'replay of': each.webhookId,
      webhook: null,
      location: each.locationId,
      integration: each.integration,
      [dryRun ? 'would be' : 'outcome']: 'not replayable',
      orders: null,
      conflict: null,
      why: each.refused,
    })),
  ];
  const summary = `${dryRun ? 'it would be: ' : ''}${counts.join(', ')}`;
  print(
    command,
    { dryRun, outcomes, replayed, refused, ...(stopped !== undefined && { stopped }) },
    rows.length === 0 ? 'nothing to replay' : `${table(rows, '')}\n\n${summary}`,
  );
  if (stopped !== undefined) throw new Error(`stopped half-way, repeat it to go on: ${stopped}`);
  if (refused.length > 0) process.exitCode = 1;
}

async function withTranslators<Result>(
  work: (deps: RetranslateDeps & { registry: Registry }) => Promise<Result>,
): Promise<Result> {
  const env = readConfigOf(process.env, 'DATABASE_URL', 'SETTINGS_KEY', 'PROVIDER_MODULES', 'PUBLIC_URL');
  const rules = await settingsRules(env);
  const open = settingsOpener(rules);
  const publicUrl = env.PUBLIC_URL ?? '';
  return withDatabase(env.DATABASE_URL, (pool) =>
    work({ pool, open, keys: env.SETTINGS_KEY, publicUrl, registry: rules.registry }),
  );
}

async function withReplays<Result>(dryRun: boolean, work: (deps: Replaying) => Promise<Result>): Promise<Result> {
  const { PARK_TTL_S: parkTtlS } = readConfigOf(process.env, 'PARK_TTL_S');
  return withTranslators(async (deps) => {
    // If no service has run for a week, there is no partition for today.
    await ensureWebhookPartitions(deps.pool);
    return work({ ...deps, parkTtlS, dryRun });
  });
}

function tableOf(rows: readonly KeyedWebhook[]): string {
  return table(
    rows.map((row) => ({
      webhook: row.webhookId,
      received: row.receivedAt,
      location: row.locationId,
      integration: row.integration,
      outcome: row.outcome,
      events: row.events,
      bytes: row.truncated ? `${row.bytes}, cut off` : row.bytes,
      'replay of': row.replayOf,
      why: row.reason,
    })),
    'no webhooks match',
  );
}

function inWords(shown: Shown): string {
  const { today, replays } = shown;
  const body = legible(shown.body);
  const parts = [
    facts({
      webhook: shown.webhookId,
      received: shown.receivedAt,
      location: shown.locationId,
      integration: shown.integration,
      outcome: shown.outcome,
      why: shown.reason,
      events: shown.events,
      'replay of': shown.replayOf,
      'which came': shown.replayOf === null ? '' : shown.firstReceivedAt,
      'a replay today':
        'events' in today
          ? `would read ${sayingBusy(today.pausedUntil) ?? `${today.events.length} events`}`
          : 'dropped' in today
            ? `would be dropped: ${today.dropped}`
            : `cannot be: ${today.refused}`,
    }),
    titled('Events, as a replay would read them', 'events' in today ? table(today.events.map(toRow), '') : ''),
    titled(
      'Replays of the same webhook',
      table(
        replays.map(({ webhookId, receivedAt, outcome, reason }) => ({
          webhook: webhookId,
          received: receivedAt,
          outcome,
          why: reason,
        })),
        '',
      ),
    ),
    titled('Headers', facts(shown.headers)),
    body === undefined
      ? `Body, ${shown.bytes} bytes: encrypted, and cannot be decrypted`
      : titled(
          `Body, ${shown.bytes} bytes${shown.truncated ? ', cut off' : ''}${'base64' in body ? ', in base64' : ''}`,
          'text' in body ? body.text.replaceAll('\r\n', '\n') : body.base64,
        ),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

type Shown = Required<Omit<ShownWebhook, 'body'>> & Pick<ShownWebhook, 'body'>;
type ReadEvent = Extract<Shown['today'], { events: unknown }>['events'][number];

function toRow(event: ReadEvent): Parameters<typeof table>[0][number] {
  return {
    status: event.status,
    'at the POS': event.nativeStatus,
    order: event.serviceOrderId,
    'POS id': event.providerOrderId,
    occurred: event.occurredAt,
    reason: event.reason,
  };
}

function titled(title: string, words: string): string {
  return words === '' ? '' : `${title}\n${words}`;
}

/** Returns a body as text if it is UTF-8 without characters that steer a terminal. */
function legible(body: Shown['body']): { text: string } | { base64: string } | undefined {
  if (body === undefined) return undefined;
  const { base64, text } = body;
  return text === undefined || /[^\P{Cc}\t\n\r]/u.test(text) ? { base64 } : { text };
}

function noSuchWebhook(id: string): NotFound {
  return new NotFound(`no webhook that is kept has the id "${id}"; see: expediter webhook list`);
}

/** Whether the kitchen takes orders, where a webhook says so. */
function sayingBusy(pausedUntil: Date | null | undefined): string | undefined {
  if (pausedUntil === undefined) return undefined;
  return pausedUntil === null ? 'that the POS takes orders' : `that the POS takes no orders until ${time(pausedUntil)}`;
}
