import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { ID_LEARNT_MEANWHILE, applyWebhooks, refusedByPostgres, type Applied } from '../statuses/apply-webhooks.ts';
import { EventOutcome, WebhookOutcome, type Drop, type Translated, type TranslatedWebhook } from '../domain/webhook.ts';
import { DropCause } from '../domain/webhook-cause.ts';
import { compressBody } from '../statuses/store-webhooks.ts';
import { blankWebhooks } from '../retention/erase-members.ts';
import { inTransaction, isDataError, rollBack, withClient } from '../postgres/transactions.ts';
import { GONE, findWebhook, readWebhook, type Refusal, type StoredWebhook } from './stored-webhook.ts';
import { Status } from '../domain/lifecycle.ts';
import { uuidV7 } from '../domain/uuid-v7.ts';
import { CallOutCode, readCodes, type WebhookKey } from './list-webhooks.ts';
import { sealWebhook, type SettingsKeys } from '../locations/settings-key.ts';
import { redriveParked } from '../statuses/redrive-parked.ts';
import { retranslate, type RetranslateDeps } from './retranslate.ts';

export type Replaying = RetranslateDeps & {
  /** True to store nothing and only return the outcome. */
  dryRun: boolean;
};

/** The result of a replay. It contains order ids, and no text from a member or a POS. */
export const Replayed = z
  .object({
    webhookId: z.string().nullable().meta({ description: 'The new webhook; null after a dry run.' }),
    replayOf: z.string().meta({ description: 'The webhook that it replays.' }),
    receivedAt: z.date().meta({ description: 'When that webhook arrived.' }),
    locationId: z.string(),
    integration: z.string(),
    outcome: WebhookOutcome,
    reason: z.string().nullable().meta({ description: 'Why it was dropped.' }),
    cause: DropCause.nullable().meta({ description: 'The reason as data.' }),
    events: z.array(
      z.object({
        status: Status,
        serviceOrderId: z.string().nullable(),
        callOutCode: CallOutCode,
        providerOrderId: z.string().nullable(),
        outcome: EventOutcome,
        conflict: z.boolean().meta({ description: 'It contradicts the stored order: a person should check it.' }),
      }),
    ),
    redriven: z.int().describe('Parked events of other webhooks that were applied because this one has their POS id.'),
  })
  .meta({ id: 'Replayed' });
export type Replayed = z.infer<typeof Replayed>;

/**
 * Replays one stored webhook that a person chose: translates it again and applies it as a new webhook. Repeats do no harm, because an order
 * has the highest status that it ever received.
 * @returns its outcome, the refusal, or undefined if there is no such webhook
 */
export async function replayWebhook(deps: Replaying, webhookId: string): Promise<Replayed | Refusal | undefined> {
  const key = await findWebhook(deps.pool, webhookId);
  return key && replayStored(deps, key, { isChosen: true });
}

export async function replayStored(
  deps: Replaying,
  key: WebhookKey,
  about: { isChosen: boolean },
): Promise<Replayed | Refusal | undefined> {
  const stored = await readWebhook(deps, key);
  if (stored === undefined) return undefined;
  if (stored.gone) return GONE;
  const translated = await retranslate(deps, stored, about);
  if ('refused' in translated) return translated;

  const translatedAgain = translateRequest(stored, translated, await timeNow(deps.pool));
  const replay = compressBody(await sealBody(deps.keys, stored, translatedAgain));
  const { webhook, applied } = await apply(deps, replay);
  let redriven = 0;
  for (const posId of deps.dryRun ? [] : applied.awaited) {
    // The replay is already committed. If the redrive fails, the periodic sweep does it.
    redriven += await redriveParked(deps.pool, posId).then(
      ({ count }) => count,
      () => 0,
    );
  }
  const orders = webhook.events.map((event, i) => applied.serviceOrderIds[i] ?? event.serviceOrderId ?? null);
  const codes = await readCodes(deps.pool, orders);
  return {
    webhookId: deps.dryRun ? null : webhook.id,
    replayOf: webhook.replayOf.webhookId,
    receivedAt: webhook.replayOf.receivedAt,
    locationId: stored.locationId,
    integration: stored.integration,
    outcome: applied.webhooks[0] ?? 'ignored',
    reason: webhook.dropped?.reason ?? null,
    cause: webhook.dropped?.cause ?? null,
    events: webhook.events.map((event, i) => ({
      status: event.status,
      serviceOrderId: orders[i] ?? null,
      callOutCode: codes.get(orders[i]) ?? null,
      providerOrderId: event.providerOrderId ?? null,
      outcome: applied.events[i] ?? 'unmatched',
      conflict: applied.conflicts.some((conflict) => conflict.event === event),
    })),
    redriven,
  };
}

type Replay = TranslatedWebhook & { replayOf: NonNullable<TranslatedWebhook['replayOf']> };

function translateRequest(
  stored: StoredWebhook,
  { events, kitchen, revokedAt, dropped }: Translated,
  receivedAt: Date,
): Replay {
  const webhook = {
    id: uuidV7(),
    locationId: stored.locationId,
    integration: stored.integration,
    receivedAt,
    headers: stored.headers,
    body: stored.body,
    truncated: false,
    ...(stored.polled && { polled: true as const }),
    events,
    kitchen,
    revokedAt,
    replayOf: { webhookId: stored.replayOf ?? stored.webhookId, receivedAt: stored.firstReceivedAt },
  };
  return dropped === undefined ? webhook : asDropped(webhook, dropped);
}

/** Seals the body again for the replay's own row, if the stored body was sealed. */
async function sealBody(keys: SettingsKeys, { secrets }: StoredWebhook, replay: Replay): Promise<Replay> {
  if (secrets?.body === undefined || replay.dropped !== undefined) return replay;
  const { locationId, id: webhookId } = replay;
  const { body, hidden = [] } = secrets;
  const sealed = await sealWebhook(keys, { locationId, webhookId }, { body, hidden });
  return { ...replay, body: Buffer.alloc(0), sealed };
}

/** Drops the contents too: without a known order an erasure would not find them. The original webhook has them. */
function asDropped(webhook: Replay, dropped: Drop): Replay {
  const empty = { headers: {}, sealed: undefined, body: Buffer.alloc(0), events: [], kitchen: undefined };
  return { ...webhook, ...empty, revokedAt: undefined, dropped };
}

/** Applies the replay in one commit. If Postgres refuses its values, it is dropped, as at the endpoint. */
async function apply(deps: Replaying, webhook: Replay): Promise<{ webhook: Replay; applied: Applied }> {
  const applying = async (client: PoolClient): Promise<Applied> => {
    const applied = await applyWebhooks(client, [webhook]);
    if (webhook.dropped === undefined) await blankWithWebhook(client, webhook);
    return applied;
  };
  try {
    // A dry run executes the same statements and rolls back, because any other prediction could be wrong.
    const applied = deps.dryRun
      ? await withClient(deps.pool, (client) => rolledBack(client, () => applying(client)))
      : await inTransaction(deps.pool, applying);
    return { webhook, applied };
  } catch (error) {
    if (webhook.dropped !== undefined || !isDataError(error)) throw error;
    if (error.code === ID_LEARNT_MEANWHILE) return apply(deps, webhook);
    return apply(deps, asDropped(webhook, refusedByPostgres(error)));
  }
}

/** Blanks the original and other replays if this replay was stored without contents: then its order is erased. */
async function blankWithWebhook(client: PoolClient, webhook: Replay): Promise<void> {
  const { rows } = await client.query<{ webhook_day: string; location_id: string; webhook_id: string }>(
    `SELECT day::text AS webhook_day, location_id, id AS webhook_id FROM webhooks
     WHERE day = ($1::timestamptz AT TIME ZONE 'UTC')::date AND location_id = $2 AND id = $3::uuid
       AND body = '' AND headers = '{}'`,
    [webhook.receivedAt.toISOString(), webhook.locationId, webhook.id],
  );
  if (rows.length > 0) await blankWebhooks(client, rows);
}

async function rolledBack<Result>(client: PoolClient, work: () => Promise<Result>): Promise<Result> {
  await client.query('BEGIN');
  try {
    return await work();
  } finally {
    await rollBack(client);
  }
}

/** The time by Postgres's clock, which all processes share, or `until` if that is earlier. */
export async function timeNow(pool: Pool, until?: Date): Promise<Date> {
  // `least` ignores a NULL.
  const sql = 'SELECT least(clock_timestamp(), $1::timestamptz) AS now';
  const { rows } = await pool.query<{ now: Date }>(sql, [until ?? null]);
  if (rows[0] === undefined) throw new Error('Postgres did not return the time');
  return rows[0].now;
}
