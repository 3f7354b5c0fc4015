import { randomUUID } from 'node:crypto';
import type { ClientBase, Pool } from 'pg';
import { LEASE_S } from '../domain/placement.ts';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import { describeError } from '../domain/classify-error.ts';
import { inTransaction, isDataError } from '../postgres/transactions.ts';
import { RESTART } from '../transitions/placement-sql.ts';
import { backOff } from '../placements/conclude-placement.ts';
import { waitAfter } from '../placements/call-provider.ts';
import { isRefusal, refetchObserved } from '../placements/refetch-order.ts';
import { beginCancellation } from './begin-cancellation.ts';
import { compareOrders, lockOrder, mayHaveTicket, type OrderChange, storeNewest } from './changed-order.ts';
import { recordChange } from './record-change.ts';
import type { Log } from '../domain/log.ts';
import { workLoop, type WorkLoop } from '../postgres/loops.ts';
import type { RefetchOrder } from '../placements/placement-job.ts';

/** A claimed refresh of a known order, caused by a signal. */
export type Refresh = {
  serviceOrderId: string;
  leaseId: string;
  /** Text with microseconds. A later time in the row means that another signal arrived meanwhile. */
  signalledAt: string;
  /** Seconds since that signal. */
  age: number;
  failures: number;
  /** `wait`: the first fetch is under way. `forget`: the order has ended, or nobody has fetched or is fetching it. */
  to: 'fetch' | 'wait' | 'forget';
};

/** Claims due refreshes. Each order has one row, so one worker at a time fetches it. */
export async function claimRefreshes(pool: Pool, limit: number): Promise<Refresh[]> {
  const { rows } = await pool.query<Refresh>({
    name: 'claim-refreshes',
    text: `
      UPDATE refreshes l SET lease_id = $2::uuid, lease_until = now() + make_interval(secs => ${LEASE_S})
      WHERE service_order_id = ANY (ARRAY(
        SELECT service_order_id FROM refreshes
        WHERE next_attempt_at <= now() AND (lease_until IS NULL OR lease_until < now())
        ORDER BY next_attempt_at LIMIT $1::int FOR UPDATE SKIP LOCKED))
      RETURNING l.service_order_id AS "serviceOrderId", l.lease_id AS "leaseId", l.signalled_at::text AS "signalledAt",
                extract(epoch FROM now() - l.signalled_at)::float8 AS age, l.failures,
                coalesce(
                  (SELECT CASE WHEN o.ended_at IS NULL AND o.erased_at IS NULL THEN 'fetch' ELSE 'forget' END
                   FROM orders o WHERE o.service_order_id = l.service_order_id),
                  (SELECT 'wait' FROM placements p WHERE p.service_order_id = l.service_order_id AND p.lease_until > now()),
                  'forget') AS to`,
    values: [limit, randomUUID()],
  });
  return rows;
}

type Ours = Pick<Refresh, 'serviceOrderId' | 'leaseId' | 'signalledAt'>;

/** Ends a refresh. If another signal arrived meanwhile, the row remains, which starts another refresh. */
export async function endRefresh(
  client: Pick<Pool, 'query'>,
  { serviceOrderId, leaseId, signalledAt }: Ours,
): Promise<void> {
  await client.query({
    name: 'end-refresh',
    text: `
      WITH done AS (
        -- guard: refresh-ends
        DELETE FROM refreshes WHERE service_order_id = $1 AND lease_id = $2::uuid AND signalled_at = $3::timestamptz
      )
      UPDATE refreshes SET lease_id = NULL, lease_until = NULL, failures = 0
      -- guard: refresh-stays
      WHERE service_order_id = $1 AND lease_id = $2::uuid AND signalled_at > $3::timestamptz`,
    values: [serviceOrderId, leaseId, signalledAt],
  });
}

/** Retries a refresh after `delayMs`, or now if another signal arrived. @param failed true to count a failure */
export async function postponeRefresh(
  client: Pick<Pool, 'query'>,
  { serviceOrderId, leaseId, signalledAt }: Ours,
  delayMs: number,
  failed: boolean,
): Promise<void> {
  await client.query({
    name: 'postpone-refresh',
    text: `
      UPDATE refreshes
      SET lease_id = NULL, lease_until = NULL, failures = CASE WHEN $5::boolean THEN failures + 1 ELSE failures END,
          next_attempt_at = CASE WHEN signalled_at > $3::timestamptz THEN now()
                                 ELSE now() + make_interval(secs => $4::float8) END
      WHERE service_order_id = $1 AND lease_id = $2::uuid`,
    values: [serviceOrderId, leaseId, signalledAt, delayMs / 1_000, failed],
  });
}

/** Time until the next refresh of an order whose first fetch is under way. */
const FIRST_FETCH_DELAY_MS = 1_000;
/** First and longest delay of a refresh while a ticket may exist. It doubles, because a person may have to decide. */
const DEFER_MS = 20_000;
const DEFER_MAX_MS = 1_800_000;
/** Seconds for which an order may be unreadable or missing at the platform before its refresh is given up. */
const PATIENCE_S = 600;

export type RefreshDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  deadlineS: number;
  observe: Observe;
  /** Called when placements, cancellations or live messages may have work. */
  onDue: () => void;
};

type Found = Pick<Extract<Observed, { what: 'refresh' }>, 'outcome' | 'paths'>;

/** Fetches a known order again and applies the platform's response. */
export async function refreshOrder(deps: RefreshDeps, refresh: Refresh): Promise<void> {
  const { pool, observe } = deps;
  const { serviceOrderId } = refresh;
  if (refresh.to === 'forget') {
    // The placement may have ended because of a fetch that began before the signal. Then restart the placement.
    const { rowCount } = await pool.query(RESTART, [serviceOrderId]);
    await endRefresh(pool, refresh);
    return rowCount === 1 ? deps.onDue() : undefined;
  }
  if (refresh.to === 'wait') return postponeRefresh(pool, refresh, FIRST_FETCH_DELAY_MS, false);
  try {
    const read = await refetchObserved(deps, serviceOrderId);
    if (read === undefined) return await fail(deps, refresh, 'the platform has no such order');
    const found = await inTransaction(pool, (client) => applyResponse(client, refresh, read, deps.deadlineS));
    observe({ what: 'refresh', serviceOrderId, locationId: read.order.locationId, ...found });
    if (found.outcome === 'withdrawn') {
      const about = { serviceOrderId, locationId: read.order.locationId, integration: null };
      observe({ what: 'cancellation', outcome: 'withdrawn', ...about });
    }
    if (['cancelled', 'withdrawn', 'changed', 'changed_after_sent'].includes(found.outcome)) deps.onDue();
  } catch (error) {
    const isFinal = error instanceof GiveUp || (error instanceof NeedsOperator && !isRefusal(error));
    if (isFinal || isDataError(error)) return fail(deps, refresh, describeError(error));
    await postponeRefresh(pool, refresh, backOff(refresh, waitAfter(error)), true);
  }
}

/** Retries an unreadable or missing order for PATIENCE_S. The placement continues with the stored order. */
async function fail(deps: RefreshDeps, refresh: Refresh, problem: string): Promise<void> {
  if (refresh.age < PATIENCE_S) return postponeRefresh(deps.pool, refresh, backOff(refresh), true);
  return giveUp(deps, refresh, problem);
}

async function giveUp({ pool, observe }: RefreshDeps, refresh: Refresh, problem: string): Promise<void> {
  await endRefresh(pool, refresh);
  observe({ what: 'refresh', outcome: 'given_up', serviceOrderId: refresh.serviceOrderId, problem });
}

/** Decides under the order's lock. Ends or delays the refresh in the same commit. */
async function applyResponse(
  client: ClientBase,
  refresh: Refresh,
  { order, leftOut }: ReadOrder,
  deadlineS: number,
): Promise<Found> {
  const { serviceOrderId } = refresh;
  const ended = async (outcome: Found['outcome'], changes: readonly OrderChange[] = []): Promise<Found> => {
    await endRefresh(client, refresh);
    return { outcome, ...(changes.length > 0 && { paths: changes.map(({ path }) => path) }) };
  };
  const known = await lockOrder(client, serviceOrderId);
  if (known === undefined || known.ended || known.contents === null) return ended('unchanged');
  // Changes do not matter for an order that is cancelled or to be cancelled.
  const { cancelState, contents } = known;
  const isCancelling = cancelState !== null && cancelState !== 'refused';
  if (isCancelling && !known.isCalledOff) return ended('unchanged');
  // Request cancellation even if the POS refused an earlier request by an operator.
  if (order.cancelledAt !== undefined && contents.cancelledAt === undefined) {
    await client.query(`UPDATE order_contents SET contents = contents || $2::jsonb WHERE service_order_id = $1`, [
      serviceOrderId,
      { cancelledAt: order.cancelledAt, cancelReason: order.cancelReason },
    ]);
    if (isCancelling) {
      // The request that is under way is the member's now.
      await client.query(
        `UPDATE cancellations SET requested_by = 'platform', fails_with = NULL WHERE service_order_id = $1`,
        [serviceOrderId],
      );
      return ended('cancelled');
    }
    const notifies = mayHaveTicket(known);
    await beginCancellation(client, serviceOrderId, { requestedBy: 'platform', notifies });
    return ended(notifies ? 'cancelled' : 'withdrawn');
  }
  if (known.finished) {
    const changed = await recordChange(client, contents, order);
    return ended(changed === undefined ? 'unchanged' : 'changed_after_sent', changed);
  }
  const changes = compareOrders(contents, order);
  if (changes.length === 0) return ended('unchanged');
  // If a request was sent, the stored order may not change, because a repeat must be identical to the request.
  // guard: sent-as-it-was
  if (mayHaveTicket(known)) {
    await postponeRefresh(client, refresh, Math.min(Math.max(DEFER_MS, refresh.age * 1_000), DEFER_MAX_MS), false);
    return { outcome: 'deferred' };
  }
  await storeNewest(client, { order, leftOut }, deadlineS);
  return ended('changed', changes);
}

/**
 * Maximum of refreshes under way. A hanging platform can occupy only these. They are enough for 100 signals a second if
 * each response takes a third of a second.
 */
const WORKERS = 32;
const POLL_MS = 1_000;

export function workRefreshes(deps: RefreshDeps & { log: Log }): WorkLoop {
  return workLoop({
    capacity: WORKERS,
    pollMs: POLL_MS,
    claim: (limit) => claimRefreshes(deps.pool, limit),
    work: (refresh) =>
      refreshOrder(deps, refresh).catch((error: unknown) => {
        deps.log.error({ serviceOrderId: refresh.serviceOrderId, err: error }, 'refresh interrupted');
      }),
    log: deps.log,
    failing: 'refreshes could not be claimed',
  });
}
