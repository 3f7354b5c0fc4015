import { randomUUIDv7 } from 'node:crypto';
import type { Pool } from 'pg';
import { rankOf } from '../domain/lifecycle.ts';
import type { StatusEvent } from '../domain/order.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { applyWebhooks, type Applied } from '../statuses/apply-webhooks.ts';
import type { QuietOrder } from './claim-quiet.ts';

/** What an answer was worth. `toldMore`: a webhook is missing; `applied`: what it changed, if it was stored. */
export type Recorded = { toldMore: boolean; applied: Applied | undefined };

type Known = {
  rank: number;
  providerOrderId: string | null;
  estimate: (Date | null)[] | null;
  tracking: string[] | null;
  now: Date;
};

/**
 * Applies what the POS answered, as a webhook would have been, if it says more than we know, in one commit with that its
 * location misses webhooks. An answer that says nothing new is not stored: an order would never come to rest.
 * @param parkTtlS seconds for which an unknown POS id may still become ours
 */
export async function recordAnswer(
  pool: Pool,
  { serviceOrderId, locationId, integration }: QuietOrder,
  events: readonly StatusEvent[],
  parkTtlS: number,
): Promise<Recorded> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<Known>(
      `SELECT rank, provider_order_id AS "providerOrderId", estimate, tracking, clock_timestamp() AS now
       FROM orders WHERE service_order_id = $1::text FOR UPDATE`,
      [serviceOrderId],
    );
    const [known] = rows;
    if (known === undefined) return { toldMore: false, applied: undefined };
    const toldMore = events.some(({ status }) => rankOf(status) > known.rank);
    const tellsPosId = known.providerOrderId === null && events.some((event) => event.providerOrderId !== undefined);
    if (!toldMore && !tellsPosId && !events.some((event) => tellsMore(event, known)))
      return { toldMore, applied: undefined };
    const answer = {
      id: randomUUIDv7(),
      locationId,
      integration,
      receivedAt: known.now,
      headers: {},
      body: Buffer.from(JSON.stringify(events)),
      truncated: false,
      asked: true,
      events,
    } as const;
    const applied = await applyWebhooks(client, [answer], parkTtlS);
    if (toldMore) {
      await client.query(
        `WITH missed AS (
           UPDATE placements SET missed = missed + 1 WHERE service_order_id = $1::text
         )
         UPDATE location_asks SET missed_at = now() WHERE location_id = $2::text AND integration = $3::text`,
        [serviceOrderId, locationId, integration],
      );
    }
    return { toldMore, applied };
  });
}

/** Whether the POS says another time or link than it said last. */
function tellsMore(
  { estimatedReadyAt: ready, estimatedDeliveryAt: delivery, trackingUrl }: StatusEvent,
  { estimate, tracking }: Known,
): boolean {
  if (trackingUrl !== undefined && trackingUrl !== tracking?.[1]) return true;
  if (ready === undefined && delivery === undefined) return false;
  return [ready, delivery].some((time, nth) => (time && Date.parse(time)) !== estimate?.[nth + 1]?.getTime());
}
