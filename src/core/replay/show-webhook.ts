import type { WebhookOutcome } from '../domain/webhook.ts';
import { GONE, findWebhook, readWebhook, type StoredWebhook } from './stored-webhook.ts';
import type { StatusEvent } from '../domain/order.ts';
import { retranslate, type RetranslateDeps } from './retranslate.ts';

/** All that is kept of one webhook but what is sealed: body and headers may hold member data. */
export type ShownWebhook = Omit<StoredWebhook, 'sealed' | 'day' | 'gone'> & {
  /** What a replay would read in it: events, or why it would be dropped, or why it cannot be replayed. */
  today: { events: readonly StatusEvent[] } | { dropped: string } | { refused: string };
  /** Of the same webhook; oldest first. */
  replays: { webhookId: string; receivedAt: Date; outcome: WebhookOutcome; reason: string | null }[];
};

/** @returns undefined when there is no such webhook */
export async function showWebhook(deps: RetranslateDeps, webhookId: string): Promise<ShownWebhook | undefined> {
  const key = await findWebhook(deps.pool, webhookId);
  const kept = key && (await readWebhook(deps.pool, key));
  if (kept === undefined) return undefined;
  const again = kept.gone ? { refused: GONE } : await retranslate(deps, kept);
  const { rows: replays } = await deps.pool.query<ShownWebhook['replays'][number]>(
    `SELECT id AS "webhookId", received_at AS "receivedAt", outcome, reason
     FROM webhooks WHERE replay_of = $1::uuid AND id <> $2::uuid ORDER BY received_at`,
    [kept.replayOf ?? kept.webhookId, kept.webhookId],
  );
  const { sealed: _sealed, day: _day, gone: _gone, ...shown } = kept;
  if ('refused' in again) return { ...shown, today: again, replays };
  const { dropped, events } = again;
  return { ...shown, today: dropped === undefined ? { events } : { dropped }, replays };
}
