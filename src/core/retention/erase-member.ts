import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { ERASE_BATCH, eraseBatch } from './erase-members.ts';
import type { PlacementState } from '../domain/placement.ts';

/** Time to wait for locks. A webhook locks an order for milliseconds, the hourly erasure for seconds. */
const PATIENCE_MS = 20_000;
const RETRY_MS = 200;

/** Order ids, which say nothing about the member. */
export type ErasedMember = {
  /** Erased orders, or in a dry run those that would be. */
  erased: string[];
  /** Orders whose contents are still there, and why. To be tried again. */
  left: { serviceOrderId: string; why: string }[];
};

/**
 * Erases one member's data, whatever the retention: of all orders that have ended or are at their POS. An order on its
 * way there keeps its contents, since it cannot be placed without. Orders without contents have been erased, and name
 * no member any more.
 */
export async function eraseMember(pool: Pool, memberId: string, dryRun: boolean): Promise<ErasedMember> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  const tried = new Set<string>();
  for (;;) {
    const orders = await ordersOf(pool, memberId);
    const ready = orders.filter((order) => order.isOver).map((order) => order.serviceOrderId);
    for (const id of ready) tried.add(id);
    if (ready.length === 0 || dryRun || performance.now() > giveUpAt) {
      const kept = dryRun ? orders.filter((order) => !order.isOver) : orders;
      const left = kept.map(({ serviceOrderId, ...order }) => ({ serviceOrderId, why: whyLeft(order) }));
      const isLeft = new Set(left.map((order) => order.serviceOrderId));
      return { erased: [...tried].filter((id) => !isLeft.has(id)), left };
    }
    let count = 0;
    for (let from = 0; from < ready.length; from += ERASE_BATCH) {
      count += (await eraseBatch(pool, ready.slice(from, from + ERASE_BATCH), { sent: true })) ?? 0;
    }
    // Some orders were locked, so they are tried again.
    if (count < ready.length) await sleep(RETRY_MS);
  }
}

type MembersOrder = { serviceOrderId: string; isOver: boolean; state: PlacementState | null };

async function ordersOf(pool: Pool, memberId: string): Promise<MembersOrder[]> {
  const { rows } = await pool.query<MembersOrder>(
    `SELECT c.service_order_id AS "serviceOrderId", p.state,
            o.ended_at IS NOT NULL OR p.finished_at IS NOT NULL AS "isOver"
     FROM order_contents c
     JOIN orders o USING (service_order_id)
     LEFT JOIN placements p USING (service_order_id)
     WHERE (c.contents #>> '{member,id}') COLLATE "C" = $1::text
     ORDER BY c.service_order_id`,
    [memberId],
  );
  return rows;
}

function whyLeft({ isOver, state }: Omit<MembersOrder, 'serviceOrderId'>): string {
  if (isOver) return 'it could not be erased now: try again';
  return `it is ${(state ?? 'waiting').replace('_', ' ')}, and its contents are needed to place it`;
}
