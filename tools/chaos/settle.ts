import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { concludeByPhone } from '../../src/core/cancellations/operator-cancellations.ts';
import { resolveNotThere, resolveThere } from '../../src/core/placements/resolve-doubt.ts';
import type { Ticket } from '../../world/pos/start-pos.ts';
import type { Pubsub } from '../../world/pubsub/start-pubsub.ts';
import type { History } from './history.ts';
import { COOKED, type Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';
import { SPILL_SUBSCRIPTION } from './set-stage.ts';

/** Work that the service will still do automatically. */
type Open = {
  placements: number;
  refreshes: number;
  cancellations: number;
  live: number;
  parked: number;
  spilled: number;
};

const IS_DOUBTED = `(p.state = 'in_doubt' AND p.finished_at IS NULL AND p.next_attempt_at = 'infinity')`;

const OPEN = `
  SELECT (SELECT count(*)::int FROM unnest($1::text[]) AS accepted(id) LEFT JOIN placements p ON p.service_order_id = id
          WHERE p.service_order_id IS NULL OR p.finished_at IS NULL AND NOT ${IS_DOUBTED}) AS placements,
         -- Not counted for an order in doubt or to be cancelled by telephone: its refresh waits until a person settles that.
         (SELECT count(*)::int FROM refreshes l
          WHERE NOT EXISTS (SELECT FROM placements p WHERE p.service_order_id = l.service_order_id AND ${IS_DOUBTED})
            AND NOT EXISTS (SELECT FROM cancellations c WHERE c.service_order_id = l.service_order_id
                                                          AND c.finished_at IS NULL AND c.state = 'by_phone'))
           AS refreshes,
         (SELECT count(*)::int FROM cancellations WHERE finished_at IS NULL AND state <> 'by_phone') AS cancellations,
         (SELECT count(*)::int FROM outbox) AS live,
         (SELECT count(*)::int FROM parked_events JOIN provider_orders USING (location_id, integration, provider_order_id))
           AS parked`;

/**
 * Waits until the service has nothing left to do, after all faults.
 * @returns what is left after `patienceS` seconds, or undefined
 */
export async function settle(
  pool: Pool,
  pubsub: Pubsub,
  accepted: ReadonlySet<string>,
  patienceS: number,
): Promise<Open | undefined> {
  const deadline = performance.now() + patienceS * 1_000;
  for (;;) {
    // Read before the query. Otherwise, the work of a webhook that leaves the spill in between would be missed.
    const spilled = pubsub.unacknowledged(SPILL_SUBSCRIPTION);
    const { rows } = await pool.query<Omit<Open, 'spilled'>>(OPEN, [[...accepted]]);
    const [row] = rows;
    if (row === undefined) throw new Error('no answer');
    const open = { ...row, spilled };
    if (Object.values(open).every((count) => count === 0)) return undefined;
    if (performance.now() > deadline) return open;
    await sleep(250);
  }
}

/** The first ticket of an order. */
export const ticketOf = (kitchens: readonly Kitchen[], order: string): Ticket | undefined =>
  kitchens.flatMap(({ pos }) => pos.tickets).find((each) => each.serviceOrderId === order);

/** A kitchen cancels what it has not cooked yet, and says that it has cancelled what is cancelled. */
export const agreesToCancel = (ticket: Ticket | undefined, reported: ReadonlySet<string> | undefined): boolean =>
  ticket?.cancelled !== undefined || !COOKED.some((status) => reported?.has(status));

/**
 * Resolves every order in doubt that waits for an operator, by the tickets in the kitchens. If a ticket may still be
 * created, waits as long as the service says; the caller then calls again.
 */
export async function resolveDoubts(pool: Pool, kitchens: readonly Kitchen[], history: History): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT service_order_id AS id FROM placements p WHERE ${IS_DOUBTED}`,
  );
  let waitS = 0;
  for (const { id } of rows) {
    const ticket = ticketOf(kitchens, id);
    history.note('operator looked', { order: id, there: ticket !== undefined });
    const done =
      ticket === undefined
        ? await resolveNotThere(pool, id)
        : await resolveThere(pool, id, { providerOrderId: ticket.providerOrderId });
    if (done !== undefined && 'refused' in done && done.cause.code === 'absent_too_early') {
      waitS = Math.max(waitS, done.cause.seconds);
    }
  }
  await sleep(waitS * 1_000);
  return rows.length;
}

/**
 * Phones about every cancellation that must be made by phone. The kitchen cancels orders that it has not cooked yet. It
 * may have cancelled the order already, without an answer.
 * @returns how many of these cancellations are finished now
 */
export async function telephone(
  pool: Pool,
  kitchens: readonly Kitchen[],
  { reported }: Pick<Served, 'reported'>,
  history: History,
): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT service_order_id AS id FROM cancellations WHERE state = 'by_phone' AND finished_at IS NULL`,
  );
  const tickets = kitchens.flatMap((kitchen) => kitchen.pos.tickets);
  let over = 0;
  for (const { id } of rows) {
    const isCancelled = agreesToCancel(ticketOf(kitchens, id), reported.get(id));
    history.note('operator telephoned', { order: id, isCancelled });
    const concluded = await concludeByPhone(pool, id, isCancelled);
    if (concluded === undefined || 'refused' in concluded) continue;
    over += 1;
    for (const ticket of tickets) if (isCancelled && ticket.serviceOrderId === id) ticket.cancelled ??= {};
  }
  return over;
}
