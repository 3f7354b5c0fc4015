import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { resolveNotThere, resolveThere } from '../src/core/placements/resolve-doubt.ts';
import type { Pubsub } from '../test/support/start-pubsub.ts';
import type { History } from './history.ts';
import { SPILL_SUBSCRIPTION, type Kitchen } from './set-stage.ts';

/** Work that the service will still do by itself. */
type Open = { placements: number; live: number; parked: number; spilled: number };

const OPEN = `
  SELECT (SELECT count(*)::int FROM unnest($1::text[]) AS accepted(id) LEFT JOIN placements p ON p.service_order_id = id
          WHERE p.service_order_id IS NULL
             OR p.finished_at IS NULL AND NOT (p.state = 'in_doubt' AND p.next_attempt_at = 'infinity')) AS placements,
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
    // Before what follows from it is counted.
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

/** Resolves every flagged order in doubt as an operator does, by what is in the kitchens. */
export async function resolveDoubts(pool: Pool, kitchens: readonly Kitchen[], history: History): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT service_order_id AS id FROM placements
     WHERE state = 'in_doubt' AND finished_at IS NULL AND next_attempt_at = 'infinity'`,
  );
  const tickets = kitchens.flatMap((kitchen) => kitchen.pos.tickets);
  for (const { id } of rows) {
    const ticket = tickets.find((each) => each.serviceOrderId === id);
    history.note('operator looked', { order: id, there: ticket !== undefined });
    if (ticket === undefined) await resolveNotThere(pool, id);
    else await resolveThere(pool, id, { providerOrderId: ticket.providerOrderId });
  }
  return rows.length;
}
