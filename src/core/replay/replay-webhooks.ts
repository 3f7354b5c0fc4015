import pg, { type Pool } from 'pg';
import { z } from 'zod';
import { WEBHOOK_OUTCOMES } from '../domain/webhook.ts';
import { listWebhooks, type KeyedWebhook, type WebhookFilter, type WebhookKey } from './list-webhooks.ts';
import { Replayed, replayStored, type Replaying } from './replay-webhook.ts';
import { Refusal } from './stored-webhook.ts';

const BATCH = 200;

/** What became of a run, or of the part of it that there was time for. */
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
 * Replays all webhooks that match, oldest first, each with its own commit: one that cannot be replayed stops no other,
 * and a run that is cut short is simply repeated. Replays are not replayed, nor is what arrives during the run, so it
 * ends.
 * @param filter of them, `replayable` says whether a webhook that a replay made something else of already is replayed
 *   again
 * @param about.from only those behind this one
 * @param about.passed is told how far it has got, also where nothing matched; it ends once that answers `enough`
 * @throws when Postgres cannot be used; what was yielded until then is committed
 */
export async function* replayWebhooks(
  deps: Replaying,
  filter: WebhookFilter & { replayable: 'open' | 'all' },
  about: { from?: WebhookKey | undefined; passed?: (upTo: WebhookKey) => 'enough' | undefined } = {},
): AsyncGenerator<{ of: KeyedWebhook; replayed: Replayed | Refusal }> {
  const matching = { ...filter, until: await endOfRun(deps.pool, filter.until) };
  let after = about.from;
  do {
    // Without their bodies, which may be large; those are read one at a time.
    const batch = await listWebhooks(deps.pool, matching, { oldestFirst: true, after, limit: BATCH });
    for (const of of batch.webhooks) {
      const replayed = await replayStored(deps, of).catch((error: unknown) => ownFault(error));
      // Undefined when its day ended being kept meanwhile.
      if (replayed !== undefined) yield { of, replayed };
    }
    after = batch.next;
  } while (after !== undefined && about.passed?.(after) !== 'enough');
}

/** A run is about what came before it began. @returns that moment, or the one asked for where it is earlier */
export async function endOfRun(pool: Pool, until: Date | undefined): Promise<Date> {
  const { rows } = await pool.query<{ end: Date }>(
    'SELECT least(clock_timestamp(), $1::timestamptz) AS "end"', // least ignores a NULL
    [until ?? null],
  );
  if (rows[0] === undefined) throw new Error('Postgres did not tell the time');
  return rows[0].end;
}

/** A deadlock, a lock that somebody holds, values that cannot be stored: the next one may fare better. */
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
