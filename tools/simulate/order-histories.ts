/** What happened to each order of a run, for the model. */
import type { Pool } from 'pg';
import type { Kitchen } from '../chaos/send-status.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import type { Code } from './load-code.ts';
import { asSimulator, inOrder } from './schedule.ts';
import { acceptHistories, type ModelledPos, type OrderHistory } from './search-model.ts';

/**
 * Triggers that note rows in their order. All rows of an order are written under its lock, so this is also the order of
 * the commits.
 */
export const NOTE_SQL = `
  CREATE TABLE clock.noted (
    nth bigint GENERATED ALWAYS AS IDENTITY, service_order_id text NOT NULL, what text NOT NULL, rank int, cancellation text);
  CREATE FUNCTION clock.note_call() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO clock.noted (service_order_id, what) VALUES (NEW.service_order_id, NEW.call);
      RETURN NULL;
    END $$;
  CREATE FUNCTION clock.note_message() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO clock.noted (service_order_id, what, rank, cancellation) VALUES (NEW.service_order_id, 'message', NEW.rank,
        (SELECT cancellation FROM expediter.orders o WHERE o.service_order_id = NEW.service_order_id AND NOT EXISTS (
           -- Its member hears nothing of the attempt to call it off.
           SELECT FROM expediter.cancellations c WHERE c.service_order_id = o.service_order_id AND c.fails_with IS NOT NULL)));
      RETURN NULL;
    END $$;
  CREATE TRIGGER noted AFTER INSERT ON expediter.placement_attempts FOR EACH ROW EXECUTE FUNCTION clock.note_call();
  CREATE TRIGGER noted AFTER INSERT ON expediter.outbox FOR EACH ROW EXECUTE FUNCTION clock.note_message();`;

/** Notes each new ticket as well. */
export function noteTickets(pool: Pool, kitchens: readonly Kitchen[]): void {
  for (const { pos } of kitchens) {
    const { onTicket } = pos;
    pos.onTicket = async (ticket) => {
      const note = `INSERT INTO clock.noted (service_order_id, what) VALUES ($1, 'ticket')`;
      await inOrder(() => asSimulator(() => pool.query(note, [ticket.serviceOrderId])));
      await onTicket?.(ticket);
    };
  }
}

type Noted = {
  order: string;
  integration: string | null;
  state: string;
  what: string;
  rank: number | null;
  cancellation: string | null;
};

/** The events of one order, and the integration of its POS. It is null if the order was never read. */
export type OrderOfRun = { order: string; integration: string | null; events: OrderHistory };

/** Reads the histories of all orders whose placement has ended. The model reads each order before it cancels the order. */
export async function readHistories(pool: Pool): Promise<OrderOfRun[]> {
  const { rows } = await pool.query<Noted>(
    `SELECT n.service_order_id AS "order", l.integration, p.state, n.what, n.rank, n.cancellation
     FROM clock.noted n JOIN expediter.placements p USING (service_order_id)
     LEFT JOIN expediter.locations l USING (location_id)
     WHERE p.finished_at IS NOT NULL AND p.cause ->> 'code' IS DISTINCT FROM 'order_cancelled' ORDER BY n.nth`,
  );
  return Array.from(Map.groupBy(rows, (each) => each.order).values(), (noted) => {
    let was: Pick<Noted, 'rank' | 'cancellation'> = { rank: null, cancellation: null };
    const events = noted.flatMap((each) => {
      if (each.rank === null) return [each.what];
      const before = was;
      was = each;
      if (each.rank !== before.rank) return [`rank ${each.rank}`];
      // A message without news of the order brings a new estimate.
      return each.cancellation === before.cancellation ? [] : [`cancel ${each.cancellation}`];
    });
    const { order = '', integration = null, state } = noted[0] ?? {};
    return { order, integration, events: [...events, `ends ${state}`] };
  });
}

/** A POS as the model knows it. No run is as long as the time for which a POS recognises repeats. */
const modelled = ({ deduplicates, findOrder, deduplicatesCancels }: Provider): ModelledPos => ({
  dedup: deduplicates ? 1 : 0,
  find: findOrder === undefined ? 0 : 1,
  cancels: deduplicatesCancels === true ? 1 : 0,
});

/** Feeds the histories of runs to the model. @returns how many it accepts of each integration, and the refused orders */
export async function feedModel(
  orders: readonly OrderOfRun[],
  registry: Code['registry'],
): Promise<{ accepted: ReadonlyMap<string, number>; refused: OrderOfRun[] }> {
  const accepted = new Map<string, number>();
  const refused: OrderOfRun[] = [];
  for (const [name, all] of Map.groupBy(orders, ({ integration }) => integration ?? 'standard')) {
    const provider = registry.get(name);
    if (provider === undefined) throw new Error(`there is no provider ${name}`);
    const same = [...Map.groupBy(all, ({ events }) => events.join()).values()];
    const isAccepted = await acceptHistories(
      modelled(provider),
      same.map(([first]) => first?.events ?? []),
    );
    refused.push(...same.filter((_, nth) => isAccepted[nth] !== true).flat());
    accepted.set(name, same.filter((_, nth) => isAccepted[nth] === true).flat().length);
  }
  return { accepted, refused };
}
