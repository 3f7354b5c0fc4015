import type { DeliveryOutcome } from '../domain/webhook.ts';
import { GONE, findDelivery, readDelivery, type KeptDelivery } from './stored-webhook.ts';
import type { StatusEvent } from '../domain/order.ts';
import { translateAgain, type TranslatingAgain } from './retranslate.ts';

/** All that is kept of one delivery but what is sealed: body and headers may hold member data. */
export type ShownDelivery = Omit<KeptDelivery, 'sealed' | 'day' | 'gone'> & {
  /** What a replay would read in it: events, or why it would be dropped, or why it cannot be replayed. */
  today: { events: readonly StatusEvent[] } | { dropped: string } | { refused: string };
  /** Of the same webhook; oldest first. */
  replays: { deliveryId: string; receivedAt: Date; outcome: DeliveryOutcome; reason: string | null }[];
};

/** @returns undefined when there is no such delivery */
export async function showDelivery(deps: TranslatingAgain, deliveryId: string): Promise<ShownDelivery | undefined> {
  const key = await findDelivery(deps.pool, deliveryId);
  const kept = key && (await readDelivery(deps.pool, key));
  if (kept === undefined) return undefined;
  const again = kept.gone ? { refused: GONE } : await translateAgain(deps, kept);
  const { rows: replays } = await deps.pool.query<ShownDelivery['replays'][number]>(
    `SELECT id AS "deliveryId", received_at AS "receivedAt", outcome, reason
     FROM deliveries WHERE replay_of = $1::uuid AND id <> $2::uuid ORDER BY received_at`,
    [kept.replayOf ?? kept.deliveryId, kept.deliveryId],
  );
  const { sealed: _sealed, day: _day, gone: _gone, ...shown } = kept;
  if ('refused' in again) return { ...shown, today: again, replays };
  const { dropped, events } = again;
  return { ...shown, today: dropped === undefined ? { events } : { dropped }, replays };
}
