import type { Pool } from 'pg';
import { z } from 'zod';
import { WEBHOOK_OUTCOMES } from '../domain/webhook.ts';
import { isAboutStatement } from '../postgres/transactions.ts';
import { recordAction, type Action, type Author } from '../operators/audit.ts';
import {
  ListedWebhook,
  listWebhooks,
  type KeyedWebhook,
  type WebhookFilter,
  type WebhookKey,
} from './list-webhooks.ts';
import { Replayed, replayStored, type Replaying } from './replay-webhook.ts';
import { findLocation } from '../locations/locations.ts';
import { Refusal } from './stored-webhook.ts';

const BATCH = 200;

/** The result of a run, or of the part that was done within the time limit. */
export const ReplayedMany = z.object({
  dryRun: z.boolean(),
  until: z.date().meta({
    description:
      'The run covers webhooks received before this time. Send it as `until` to cover the same webhooks later.',
  }),
  outcomes: z
    .partialRecord(z.enum(WEBHOOK_OUTCOMES), z.int())
    .meta({ description: 'Number of replays by outcome.', examples: [{ applied: 12, dropped: 1 }] }),
  replayed: z.array(Replayed),
  refused: z.array(
    Refusal.extend(
      ListedWebhook.pick({ webhookId: true, receivedAt: true, locationId: true, integration: true }).shape,
    ),
  ),
  left: z.int().meta({
    description:
      'Matching webhooks that were not reached, counted up to 10,000. Send the request again with `next` as `cursor`.',
  }),
  next: z.string().nullable().describe('Where the run continues: send it as `cursor`. Null at the end.'),
});
export type ReplayedMany = z.infer<typeof ReplayedMany>;

/**
 * Replays all matching webhooks, oldest first, each with its own commit. A failure does not stop the others, and an
 * interrupted run can be repeated. Webhooks and replays that arrive during the run are left out, so that it ends.
 * @param filter.until the end of the time that the run covers, see `timeNow`
 * @param filter.oldToken true for webhooks refused for an old token. By default they are left out, because a forger who
 *   had the old token may have sent them
 * @param filter.replayable `all` also replays webhooks whose earlier replay had another outcome
 * @param about.by the actor of each replay, for the audit; the caller records the run itself
 * @param about.from the webhook after which the run begins; undefined for all
 * @param about.passed a function that is called after each scanned part, even without matches; the run ends if it
 *   returns `enough`
 * @throws if Postgres cannot be used; all yielded replays are committed
 */
export async function* replayWebhooks(
  deps: Replaying,
  filter: WebhookFilter & { until: Date; replayable: 'open' | 'all' },
  about: {
    by: Author;
    from?: WebhookKey | undefined;
    passed?: (upTo: WebhookKey) => 'enough' | undefined;
  },
): AsyncGenerator<{ of: KeyedWebhook; replayed: Replayed | Refusal }> {
  const matching = { ...filter, oldToken: filter.oldToken ?? false };
  let after = about.from;
  do {
    // Bodies may be large, so they are read one at a time.
    const batch = await listWebhooks(deps.pool, matching, { oldestFirst: true, after, limit: BATCH });
    for (const of of batch.webhooks) {
      const replayed = await replayStored(deps, of, { isChosen: false }).catch((error: unknown) => ownFault(error));
      // The result is undefined if the day of the webhook has been deleted.
      if (replayed === undefined) continue;
      if (!deps.dryRun) await recordReplay(deps.pool, about.by, of, replayed);
      yield { of, replayed };
    }
    after = batch.next;
  } while (after !== undefined && about.passed?.(after) !== 'enough');
}

/** Describes a run's filter for the audit, in codes and without typed text. */
export async function runAsAction(
  pool: Pool,
  { outcome, locations = [], since, until, oldToken, replayable }: WebhookFilter,
): Promise<Pick<Action, 'locationId' | 'subject'>> {
  const [locationId] = locations.length === 1 ? locations : [];
  const location = locationId === undefined ? undefined : await findLocation(pool, locationId);
  const matched = [
    outcome,
    ...(since === undefined ? [] : [`since ${since.toISOString()}`]),
    ...(until === undefined ? [] : [`until ${until.toISOString()}`]),
    ...(oldToken === true ? ['old token'] : []),
    ...(replayable === 'all' ? ['again'] : []),
  ];
  return { locationId: location?.locationId, subject: matched.filter(Boolean).join(', ') };
}

export function runInCounts({ outcomes, refused }: Pick<ReplayedMany, 'outcomes' | 'refused'>): string {
  const counts = Object.entries(outcomes).map(([outcome, times]) => `${outcome} ${times}`);
  return [...counts, ...(refused.length > 0 ? [`not replayable ${refused.length}`] : [])].join(', ') || 'none';
}

async function recordReplay(
  pool: Pool,
  by: Author,
  { webhookId, locationId }: WebhookKey,
  replayed: Replayed | Refusal,
): Promise<void> {
  const end =
    'refused' in replayed
      ? { outcome: 'refused' as const, after: replayed.cause.code }
      : { outcome: 'done' as const, after: replayed.outcome };
  await recordAction(pool, by, { action: 'replay', webhookId, locationId }, end);
}

/** After a deadlock, a held lock or bad values, refuses only this webhook, because the next one may succeed. */
function ownFault(error: unknown): Refusal {
  if (isAboutStatement(error)) {
    const { code: sqlstate = '' } = error;
    return {
      refused: `Postgres could not process it (${sqlstate}); try again`,
      cause: { code: 'postgres_gave_up', sqlstate },
    };
  }
  throw error;
}
