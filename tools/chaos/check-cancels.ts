import type { Pool } from 'pg';
import { RANK_CANCELLED, RANK_FAILED } from '../../src/core/domain/lifecycle.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import type { Ticket } from '../../world/pos/start-pos.ts';
import { CHANGED, type Served } from './serve-orders.ts';

export const CANCELS_BALANCED = {
  /**
   * Orders whose cancel by the member had no effect: the cancel was never recorded, or a ticket remains that neither
   * the POS nor an operator cancelled, or the member was notified of something else.
   */
  cancelsLost: 0,
  /** Requests for a ticket that began after a cancel was committed. */
  sentAfterCancel: 0,
  /** Orders with more than one request to cancel, at a POS that does not deduplicate such requests. */
  cancelsDoubled: 0,
  /** Orders that their member changed, while the ticket is unchanged and the change is not recorded for an operator. */
  changesLost: 0,
};

type OrderOfCancel = {
  id: string;
  /** The state of the cancellation; null if none was requested. */
  cancel: string | null;
  /** True if we cancelled it because it was to fail. */
  calledOff: boolean;
  placement: string;
  rank: number;
  ended: boolean;
  /** True if the POS does not deduplicate requests to cancel. */
  repeatless: boolean;
  /** Requests for a ticket that began after the cancel was committed. */
  sentAfter: number;
  /** True if the last recorded comparison with the ticket found a difference. */
  differs: boolean;
  /** What the topic should say of it. */
  change: string | null;
};

type Breaks = (
  count: keyof typeof CANCELS_BALANCED | 'ticketsDoubled' | 'liveMissing',
  order: string,
  why: string,
) => void;

/** Checks the orders that their members cancelled or changed. */
export async function checkCancels(about: {
  pool: Pool;
  served: Served;
  ticketsOf: ReadonlyMap<string, readonly Ticket[]>;
  lastNotified: (order: string) => LiveMessage | undefined;
  /** True if the database was restored: it may have forgotten that a POS was asked. */
  isRestored: boolean;
  breaks: Breaks;
}): Promise<void> {
  const { pool, served, ticketsOf, lastNotified, isRestored, breaks } = about;
  const { rows } = await pool.query<OrderOfCancel>(
    `SELECT o.service_order_id AS id, c.state AS cancel, c.fails_with IS NOT NULL AS "calledOff", p.state AS placement, o.rank,
            o.ended_at IS NOT NULL AS ended, o.integration IS DISTINCT FROM 'standard' AS repeatless,
            (SELECT count(*)::int FROM placement_attempts a
             WHERE a.service_order_id = o.service_order_id AND a.call = 'createOrder' AND a.started_at > c.requested_at)
              AS "sentAfter",
            coalesce((SELECT changes <> '[]' FROM order_changes d WHERE d.service_order_id = o.service_order_id
                      ORDER BY seen_at DESC LIMIT 1), false) AS differs, o.change
     FROM orders o JOIN placements p USING (service_order_id) LEFT JOIN cancellations c USING (service_order_id)`,
  );
  for (const order of rows) {
    const { id, cancel, calledOff, placement, rank, repeatless, sentAfter } = order;
    const tickets = ticketsOf.get(id) ?? [];
    const lost = (why: string): void => breaks('cancelsLost', id, why);
    const last = lastNotified(id);
    if (sentAfter > 0) breaks('sentAfterCancel', id, `it was sent ${sentAfter} times after the cancel`);
    if (placement === 'withdrawn' && tickets.length > 0)
      breaks('ticketsDoubled', id, 'it was withdrawn, but has a ticket');
    if (placement === 'withdrawn' && cancel !== 'cancelled' && !isRestored)
      lost(`it was withdrawn, but its cancellation is ${cancel}`);
    const times = served.cancels.get(id) ?? 0;
    if (repeatless && times > 1 && !isRestored)
      breaks('cancelsDoubled', id, `its POS was asked to cancel ${times} times`);
    const isLeft =
      tickets.some((ticket) => ticket.cancelled === undefined) && !served.reported.get(id)?.has('cancelled');
    if (cancel === null) {
      if (served.cancelled.has(id) && !order.ended) lost('its cancel was never recorded');
      if (last?.cancellation !== undefined && !isRestored) breaks('liveMissing', id, 'its member was told of a cancel');
    } else if (cancel === 'cancelled') {
      if (rank < (calledOff ? RANK_FAILED : RANK_CANCELLED)) lost('its cancellation succeeded, but it continues');
      if (isLeft) lost('its cancellation succeeded, but its POS cooks it');
    } else if (cancel === 'refused') {
      if (tickets.some((ticket) => ticket.cancelled !== undefined)) lost('it was refused, but the ticket is cancelled');
      const wanted = calledOff ? undefined : 'refused';
      const isNotified = rank >= RANK_FAILED || last?.cancellation === wanted;
      if (!isNotified) breaks('liveMissing', id, `its member was told ${last?.cancellation}, not ${wanted}`);
    } else if (placement !== 'failed') {
      // If the POS refuses the order meanwhile, nothing is left to cancel.
      lost(`its cancellation is still ${cancel}`);
    }
    // A process of the previous version publishes messages without it.
    if (last?.change !== undefined && last.change !== order.change && !isRestored)
      breaks('liveMissing', id, `the topic says that its change is ${last.change}, not ${order.change}`);
    // Nor does it know with which content the ticket was made.
    if (!isRestored && served.changed.has(id) && isChangeLost(order, tickets))
      breaks('changesLost', id, 'its ticket is unchanged');
  }
}

/** Only open orders that are sent and not cancelled are compared with their ticket. */
function isChangeLost({ cancel, placement, ended, differs }: OrderOfCancel, [ticket]: readonly Ticket[]): boolean {
  if (cancel !== null || placement !== 'sent' || ended || ticket === undefined) return false;
  return ticket.order.notes?.includes(CHANGED) !== true && !differs;
}
