import type { ClientBase } from 'pg';
import type { TranslatedWebhook } from '../domain/webhook.ts';
import { RANK_SENT } from '../domain/lifecycle.ts';
import type { StatusEvent } from '../domain/order.ts';
import { unnestRows } from '../postgres/sql-rows.ts';

/** Time for which an order counts as locked after a webhook about it met a lock. */
const KNOWN_MS = 10_000;

export type LockWaits = {
  size(): number;
  /** True if a webhook about one of the same orders met a lock and no webhook about that order was applied since. */
  has(webhook: TranslatedWebhook): boolean;
  add(webhook: TranslatedWebhook): void;
  remove(webhook: TranslatedWebhook): void;
};

/** Remembers locked orders by our id and by the POS id, so that later webhooks do not wait for the same lock. */
export function lockWaits(): LockWaits {
  // The monotonic time until which each id counts as locked, the earliest first.
  const until = new Map<string, number>();
  const forgetOld = (now: number): void => {
    for (const [name, end] of until) {
      if (end > now) return;
      until.delete(name);
    }
  };
  return {
    size() {
      forgetOld(performance.now());
      return until.size;
    },
    has(webhook) {
      // guard: known-locked
      if (until.size === 0) return false;
      forgetOld(performance.now());
      return namesOf(webhook).some((name) => until.has(name));
    },
    add(webhook) {
      for (const name of namesOf(webhook)) {
        until.delete(name);
        until.set(name, performance.now() + KNOWN_MS);
      }
    },
    remove(webhook) {
      if (until.size > 0) for (const name of namesOf(webhook)) until.delete(name);
    },
  };
}

function namesOf({ locationId, integration, events }: TranslatedWebhook): string[] {
  return events.flatMap(({ serviceOrderId, providerOrderId }) => [
    ...(serviceOrderId === undefined ? [] : [JSON.stringify([locationId, serviceOrderId])]),
    ...(providerOrderId === undefined ? [] : [JSON.stringify([locationId, integration, providerOrderId])]),
  ]);
}

const EVENTS = unnestRows<{ at: number; webhook: TranslatedWebhook; event: StatusEvent }>([
  ['at', 'integer', (item) => item.at],
  ['location_id', 'text', (item) => item.webhook.locationId],
  ['integration', 'text', (item) => item.webhook.integration],
  ['service_order_id', 'text', (item) => item.event.serviceOrderId],
  ['provider_order_id', 'text', (item) => item.event.providerOrderId],
]);

/** Takes the same row locks as `applyWebhooks` until the statement ends. It writes nothing that must be durable. */
const FIND = `
WITH unsynced AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'off', true)
), ours AS MATERIALIZED (
  SELECT e.at, o.service_order_id,
         o.rank < ${RANK_SENT} OR o.provider_order_id IS NULL AND e.provider_order_id IS NOT NULL AS settles
  FROM unsynced CROSS JOIN ${EVENTS.as('e')}
  CROSS JOIN LATERAL (
    SELECT * FROM orders
    WHERE location_id = e.location_id
      AND service_order_id = coalesce(e.service_order_id, (
        SELECT p.service_order_id FROM provider_orders p
        WHERE p.location_id = e.location_id AND p.integration = e.integration
          AND p.provider_order_id = e.provider_order_id))
    OFFSET 0
  ) AS o
), free_orders AS MATERIALIZED (
  SELECT service_order_id FROM orders
  WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM ours))
  FOR UPDATE SKIP LOCKED
), free_placements AS MATERIALIZED (
  SELECT service_order_id FROM placements
  WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM ours WHERE settles))
  FOR NO KEY UPDATE SKIP LOCKED
)
SELECT DISTINCT at FROM ours
WHERE NOT EXISTS (SELECT FROM free_orders f WHERE f.service_order_id = ours.service_order_id)
   OR settles AND NOT EXISTS (SELECT FROM free_placements f WHERE f.service_order_id = ours.service_order_id)
              AND EXISTS (SELECT FROM placements p WHERE p.service_order_id = ours.service_order_id)`;

/**
 * Finds the webhooks whose order or placement is locked elsewhere, without waiting for the lock.
 * @returns their indexes in the list
 */
export async function findLocked(client: ClientBase, webhooks: readonly TranslatedWebhook[]): Promise<Set<number>> {
  const events = webhooks.flatMap((webhook, at) => webhook.events.map((event) => ({ at, webhook, event })));
  if (events.length === 0) return new Set();
  const { rows } = await client.query<{ at: number }>({
    name: 'find-locked',
    text: FIND,
    values: EVENTS.values(events),
  });
  return new Set(rows.map((row) => row.at));
}
