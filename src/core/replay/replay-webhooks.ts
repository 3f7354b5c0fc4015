import pg, { type Pool } from 'pg';
import { z } from 'zod';
import { WEBHOOK_OUTCOMES } from '../domain/webhook.ts';
import { recordAction, type Action } from '../operators/audit.ts';
import type { Actor } from '../operators/operator.ts';
import { listWebhooks, type KeyedWebhook, type WebhookFilter, type WebhookKey } from './list-webhooks.ts';
import { Replayed, replayStored, type Replaying } from './replay-webhook.ts';
import { findLocation } from '../locations/locations.ts';
import { Refusal } from './stored-webhook.ts';

const BATCH = 200;

/** The result of a run, or of the part that there was time for. */
export const ReplayedMany = z.object({
  dryRun: z.boolean(),
  until: z.date().meta({
    description: 'It is about what was received before. Given as `until`, the same is about the same webhooks later.',
  }),
  outcomes: z
    .partialRecord(z.enum(WEBHOOK_OUTCOMES), z.int())
    .meta({ description: 'How many of each.', examples: [{ applied: 12, dropped: 1 }] }),
  replayed: z.array(Replayed),
  refused: z.array(Refusal.extend({ webhookId: z.string(), locationId: z.string(), integration: z.string() })),
  left: z.int().meta({
    description:
      'How many of those that match were not reached, counted up to 10,000: send the same again, with `next` as `cursor`.',
  }),
  next: z.string().nullable().meta({
    description: 'Where it goes on, behind those that stay as they are: give it as `cursor`. Null at the end.',
  }),
});
export type ReplayedMany = z.infer<typeof ReplayedMany>;

/**
 * Replays all matching webhooks, oldest first, each with its own commit: a failure stops no other, and an interrupted
 * run can be repeated. Replays, and webhooks that arrive during the run, are not replayed, so the run ends.
 * @param filter.oldToken what was refused for an old token is left out unless it is asked for: nothing but that token may
 *   have shut a forger out
 * @param filter.replayable whether webhooks whose replay had another outcome are replayed again
 * @param about.by whose act each replay is: it is written down right after it, and the run before it
 * @param about.from only those after this one
 * @param about.passed called with the progress, also without matches; the run ends when it returns `enough`
 * @throws if Postgres cannot be used; what was yielded before is committed
 */
export async function* replayWebhooks(
  deps: Replaying,
  filter: WebhookFilter & { replayable: 'open' | 'all' },
  about: {
    by: Actor & Pick<Action, 'source' | 'requestId' | 'log'>;
    from?: WebhookKey | undefined;
    passed?: (upTo: WebhookKey) => 'enough' | undefined;
  },
): AsyncGenerator<{ of: KeyedWebhook; replayed: Replayed | Refusal }> {
  const matching = { ...filter, oldToken: filter.oldToken ?? false, until: await endOfRun(deps.pool, filter.until) };
  let after = about.from;
  do {
    // Bodies may be large, so they are read one at a time.
    const batch = await listWebhooks(deps.pool, matching, { oldestFirst: true, after, limit: BATCH });
    for (const of of batch.webhooks) {
      const replayed = await replayStored(deps, of).catch((error: unknown) => ownFault(error));
      // Undefined if its day was deleted meanwhile.
      if (replayed === undefined) continue;
      if (!deps.dryRun) await recordReplay(deps.pool, about.by, of, replayed);
      yield { of, replayed };
    }
    after = batch.next;
  } while (after !== undefined && about.passed?.(after) !== 'enough');
}

/** Says of a run, for the audit, what it matches: in codes, and nothing that somebody typed. */
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

/** Says of a run, for the audit, how many came to what. */
export function runInCounts({ outcomes, refused }: Pick<ReplayedMany, 'outcomes' | 'refused'>): string {
  const counts = Object.entries(outcomes).map(([outcome, times]) => `${outcome} ${times}`);
  return [...counts, ...(refused.length > 0 ? [`not replayable ${refused.length}`] : [])].join(', ') || 'none';
}

async function recordReplay(
  pool: Pool,
  by: Actor & Pick<Action, 'source' | 'requestId' | 'log'>,
  { webhookId, locationId }: WebhookKey,
  replayed: Replayed | Refusal,
): Promise<void> {
  const { source, requestId, log } = by;
  const end =
    'refused' in replayed
      ? { outcome: 'refused' as const, after: replayed.cause.code }
      : { outcome: 'done' as const, after: replayed.outcome };
  await recordAction(pool, by, { action: 'replay', webhookId, locationId, source, requestId, log }, end);
}

/** A run is about webhooks before its start. @returns that moment, or the requested one if it is earlier */
export async function endOfRun(pool: Pool, until: Date | undefined): Promise<Date> {
  const { rows } = await pool.query<{ end: Date }>(
    'SELECT least(clock_timestamp(), $1::timestamptz) AS "end"', // least ignores a NULL
    [until ?? null],
  );
  if (rows[0] === undefined) throw new Error('Postgres did not tell the time');
  return rows[0].end;
}

/** Explains a deadlock, a held lock, or values that cannot be stored: the next webhook may succeed. */
function ownFault(error: unknown): Refusal {
  if (error instanceof pg.DatabaseError && /^(2[123]|40|54|55|57014)/.test(error.code ?? '')) {
    const { code: sqlstate = '' } = error;
    return {
      refused: `Postgres gave up on it (${sqlstate}); try it again`,
      cause: { code: 'postgres_gave_up', sqlstate },
    };
  }
  throw error;
}
