import type { ClientBase, Pool } from 'pg';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import { describeError } from '../domain/describe-error.ts';
import { inTransaction } from '../postgres/in-transaction.ts';
import { isDataError } from '../postgres/is-data-error.ts';
import { BEGIN_AGAIN } from '../placements/begin-again.ts';
import { backOff } from '../placements/conclude-placement.ts';
import { waitAfter } from '../placements/decide-by-kind.ts';
import { refetchObserved } from '../placements/refetch-observed.ts';
import type { RefetchOrder } from '../placements/refetch-order.ts';
import { isRefusal } from '../placements/refetch-unless-refused.ts';
import { beginCancellation } from './begin-cancellation.ts';
import { endLook, postponeLook, type Look } from './claim-looks.ts';
import { compareOrders, type OrderChange } from './compare-orders.ts';
import { lockOrder, mayHaveTicket } from './lock-order.ts';
import { storeNewest } from './store-newest.ts';

/** Time until an order is looked at again whose first fetch is under way. */
const FETCHED_MS = 1_000;
/**
 * Time until an order is looked at again of which nobody knows yet whether it will be sent as it was, and the longest: it
 * doubles, since a person may have to say so.
 */
const SETTLED_MS = 20_000;
const SETTLED_MOST_MS = 1_800_000;
/** Seconds for which an order may be unreadable, or missing at the platform, before its signal is given up. */
const PATIENCE_S = 600;

/** Differences of one order that are kept, the newest: a platform may change its mind with every answer. */
const CHANGES_KEPT = 20;

export type LookDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  deadlineS: number;
  observe: Observe;
  /** Called when there is something for the workers of placements and of cancellations, and perhaps to tell. */
  onDue: () => void;
};

type Found = Pick<Extract<Observed, { what: 'look' }>, 'outcome' | 'paths'>;

/** Fetches a known order once more, and does what the platform's answer says. */
export async function lookAgain(deps: LookDeps, look: Look): Promise<void> {
  const { pool, observe } = deps;
  const { serviceOrderId } = look;
  if (look.to === 'forget') {
    // The signal may have come while the order was fetched in vain for the last time.
    const { rowCount } = await pool.query(BEGIN_AGAIN, [serviceOrderId]);
    await endLook(pool, look);
    return rowCount === 1 ? deps.onDue() : undefined;
  }
  if (look.to === 'wait') return postponeLook(pool, look, FETCHED_MS, false);
  try {
    const read = await refetchObserved(deps, serviceOrderId);
    if (read === undefined) return await fail(deps, look, 'the platform has no such order');
    const found = await inTransaction(pool, (client) => follow(client, look, read, deps.deadlineS));
    observe({ what: 'look', serviceOrderId, locationId: read.order.locationId, ...found });
    if (found.outcome === 'withdrawn') {
      const about = { serviceOrderId, locationId: read.order.locationId, integration: null };
      observe({ what: 'cancellation', outcome: 'withdrawn', ...about });
    }
    if (['cancelled', 'withdrawn', 'changed'].includes(found.outcome)) deps.onDue();
  } catch (error) {
    const isFinal = error instanceof GiveUp || (error instanceof NeedsOperator && !isRefusal(error));
    if (isFinal || isDataError(error)) return fail(deps, look, describeError(error));
    await postponeLook(pool, look, backOff(look, waitAfter(error)), true);
  }
}

/** The platform has answered, and not with an order that can be read: perhaps it will. The placement goes on as it was. */
async function fail({ pool, observe }: LookDeps, look: Look, problem: string): Promise<void> {
  if (look.age < PATIENCE_S) return postponeLook(pool, look, backOff(look), true);
  await endLook(pool, look);
  observe({ what: 'look', outcome: 'given_up', serviceOrderId: look.serviceOrderId, problem });
}

/** Decides under the order's lock, and ends the look in the same commit. */
async function follow(
  client: ClientBase,
  look: Look,
  { order, leftOut }: ReadOrder,
  deadlineS: number,
): Promise<Found> {
  const { serviceOrderId } = look;
  const ended = async (outcome: Found['outcome'], changes: readonly OrderChange[] = []): Promise<Found> => {
    await endLook(client, look);
    return { outcome, ...(changes.length > 0 && { paths: changes.map(({ path }) => path) }) };
  };
  const known = await lockOrder(client, serviceOrderId);
  if (known === undefined || known.ended || known.contents === null) return ended('unchanged');
  // What is to be cancelled is not sent any more.
  const { cancelState, contents } = known;
  if (cancelState !== null && cancelState !== 'refused') return ended('unchanged');
  // What was refused to an operator may be granted to the member.
  if (order.cancelledAt !== undefined && contents.cancelledAt === undefined) {
    await client.query(`UPDATE order_contents SET contents = contents || $2::jsonb WHERE service_order_id = $1`, [
      serviceOrderId,
      { cancelledAt: order.cancelledAt, cancelReason: order.cancelReason },
    ]);
    const tells = mayHaveTicket(known);
    await beginCancellation(client, serviceOrderId, { askedBy: 'platform', tells });
    return ended(tells ? 'cancelled' : 'withdrawn');
  }
  const changes = compareOrders(contents, order);
  if (known.finished) {
    return (await isNews(client, serviceOrderId, changes)) ? ended('changed_after_sent', changes) : ended('unchanged');
  }
  if (changes.length === 0) return ended('unchanged');
  // What was sent once is repeated exactly as it was sent.
  // guard: sent-as-it-was
  if (mayHaveTicket(known)) {
    await postponeLook(client, look, Math.min(Math.max(SETTLED_MS, look.age * 1_000), SETTLED_MOST_MS), false);
    return { outcome: 'deferred' };
  }
  await storeNewest(client, { order, leftOut }, deadlineS);
  return ended('changed', changes);
}

/**
 * Keeps how the platform's order differs from the ticket. A row is the whole difference, for whoever telephones; an empty
 * one says that there is none any more.
 * @returns false if that is known
 */
async function isNews(client: ClientBase, serviceOrderId: string, changes: readonly OrderChange[]): Promise<boolean> {
  const { rowCount } = await client.query(
    `WITH gone AS (
       DELETE FROM order_changes WHERE service_order_id = $1 AND seen_at <= (
         SELECT seen_at FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at DESC OFFSET ${CHANGES_KEPT - 1} LIMIT 1)
     )
     INSERT INTO order_changes (service_order_id, changes)
     SELECT $1::text, $2::jsonb
     WHERE $2::jsonb <> coalesce((SELECT changes FROM order_changes WHERE service_order_id = $1
                                  ORDER BY seen_at DESC LIMIT 1), '[]')`,
    [serviceOrderId, JSON.stringify(changes)],
  );
  return rowCount === 1;
}
