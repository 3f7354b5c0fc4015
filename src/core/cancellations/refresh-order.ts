import { randomUUID } from 'node:crypto';
import type { ClientBase, Pool } from 'pg';
import { LEASE_S } from '../domain/placement.ts';
import { GiveUp, NeedsOperator } from '../domain/errors.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { CancelOnly, ReadOrder } from '../domain/read-canonical-order.ts';
import { classifyError } from '../domain/classify-error.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { Problem } from '../domain/placement-cause.ts';
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
import { whenDue } from '../postgres/when-due.ts';
import type { RefetchOrder } from '../placements/placement-job.ts';

/** A claimed refresh of a known order, caused by a signal. */
export type Refresh = {
  serviceOrderId: string;
  leaseId: string;
  /** Text with microseconds. A later time in the row means that another signal arrived meanwhile. */
  signalledAt: string;
  /** Seconds since that signal. */
  age: number;
  /** Seconds since that signal, or since it fails if that began later. 0 if it did not fail. */
  failingS: number;
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
                -- guard: patience-since-failing
                extract(epoch FROM now() - greatest(l.signalled_at, coalesce(l.failing_since, now())))::float8 AS "failingS",
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
      UPDATE refreshes
      SET lease_id = NULL, lease_until = NULL, failures = 0, failing_since = NULL, problem = NULL, cause = NULL
      -- guard: refresh-stays
      WHERE service_order_id = $1 AND lease_id = $2::uuid AND signalled_at > $3::timestamptz`,
    values: [serviceOrderId, leaseId, signalledAt],
  });
}

/**
 * Retries a refresh after `delayMs`, or now if another signal arrived.
 * @param failures in a row, for the next back-off
 * @param failure why it failed, which operators see until a refresh succeeds
 * @returns true if it has begun to fail
 */
async function postponeRefresh(
  client: Pick<Pool, 'query'>,
  { serviceOrderId, leaseId, signalledAt }: Ours,
  { delayMs, failures, failure }: { delayMs: number; failures: number; failure?: Problem },
): Promise<boolean> {
  const { rows } = await client.query<{ begins: boolean }>({
    name: 'postpone-refresh',
    text: `
      UPDATE refreshes
      SET lease_id = NULL, lease_until = NULL, failures = $5::int, problem = left($6, 500), cause = $7::jsonb,
          failing_since = CASE WHEN $6::text IS NOT NULL THEN coalesce(failing_since, now()) END,
          next_attempt_at = CASE WHEN signalled_at > $3::timestamptz THEN now()
                                 ELSE now() + make_interval(secs => $4::float8) END
      WHERE service_order_id = $1 AND lease_id = $2::uuid
      RETURNING failing_since IS NOT DISTINCT FROM now() AS begins`,
    values: [serviceOrderId, leaseId, signalledAt, delayMs / 1_000, failures, failure?.problem, failure?.cause],
  });
  return rows[0]?.begins === true;
}

/** Time until the next refresh of an order whose first fetch is under way. */
const FIRST_FETCH_DELAY_MS = 1_000;
/** First and longest delay of a refresh while a ticket may exist. It doubles, because a person may have to decide. */
const DEFER_MS = 20_000;
const DEFER_MAX_MS = 1_800_000;
/** Seconds for which an order may be unreadable or missing at the platform before its refresh is given up. */
const PATIENCE_S = 600;
/** Time until a refresh that was given up is tried once more. By then its order has usually ended. */
const GIVEN_UP_MS = 86_400_000;

export type RefreshDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  deadlineS: number;
  observe: Observe;
  /** Called when placements, cancellations or live messages may have work. */
  onDue: () => void;
};

type Found = Pick<Extract<Observed, { what: 'refresh' }>, 'outcome' | 'locationId' | 'paths'>;

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
  if (refresh.to === 'wait') {
    await postponeRefresh(pool, refresh, { delayMs: FIRST_FETCH_DELAY_MS, failures: refresh.failures });
    return;
  }
  try {
    const read = await refetchObserved(deps, serviceOrderId);
    if (read === undefined) return await fail(deps, refresh, problemOf({ code: 'order_missing' }));
    const found = await inTransaction(pool, (client) => applyResponse(client, refresh, read, deps.deadlineS));
    const { locationId } = found;
    observe({ what: 'refresh', serviceOrderId, ...found });
    if (found.outcome === 'withdrawn' && locationId !== undefined) {
      observe({ what: 'cancellation', outcome: 'withdrawn', serviceOrderId, locationId, integration: null });
    }
    if (['cancelled', 'withdrawn', 'changed', 'changed_after_sent'].includes(found.outcome)) deps.onDue();
  } catch (error) {
    const isFinal = error instanceof GiveUp || (error instanceof NeedsOperator && !isRefusal(error));
    if (isDataError(error))
      return fail(deps, refresh, problemOf({ code: 'refused_by_postgres', sqlstate: error.code ?? '' }));
    if (isFinal) return fail(deps, refresh, classifyError(error));
    await retry(deps, refresh, classifyError(error), waitAfter(error));
  }
}

/** Retries an unreadable or missing order for PATIENCE_S. The placement continues with the stored order. */
async function fail(deps: RefreshDeps, refresh: Refresh, failure: Problem): Promise<void> {
  if (refresh.failingS < PATIENCE_S) return retry(deps, refresh, failure);
  // The row stays, so that operators see the failure. A signal makes it due at once.
  // guard: given-up-is-seen
  await postponeRefresh(deps.pool, refresh, { delayMs: GIVEN_UP_MS, failures: 0, failure });
  deps.observe({ what: 'refresh', outcome: 'given_up', serviceOrderId: refresh.serviceOrderId, ...failure });
}

async function retry(deps: RefreshDeps, refresh: Refresh, failure: Problem, waitMs?: number): Promise<void> {
  const [delayMs, failures] = [backOff(refresh, waitMs), refresh.failures + 1];
  const begins = await postponeRefresh(deps.pool, refresh, { delayMs, failures, failure });
  if (begins) deps.observe({ what: 'refresh', outcome: 'failing', serviceOrderId: refresh.serviceOrderId, ...failure });
}

async function isOurs(client: ClientBase, { serviceOrderId, leaseId }: Ours): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'own-refresh',
    text: 'SELECT FROM refreshes WHERE service_order_id = $1 AND lease_id = $2::uuid FOR UPDATE',
    values: [serviceOrderId, leaseId],
  });
  return rowCount === 1;
}

/** Decides under the order's lock. Ends or delays the refresh in the same commit. */
async function applyResponse(
  client: ClientBase,
  refresh: Refresh,
  read: ReadOrder | CancelOnly,
  deadlineS: number,
): Promise<Found> {
  const { serviceOrderId } = refresh;
  const { cancelledAt, cancelReason } = read.order ?? read;
  const ended = async (outcome: Found['outcome'], changes: readonly OrderChange[] = []): Promise<Found> => {
    await endRefresh(client, refresh);
    const locationId = read.order?.locationId ?? known?.locationId;
    return {
      outcome,
      ...(locationId !== undefined && { locationId }),
      ...(changes.length > 0 && { paths: changes.map(({ path }) => path) }),
    };
  };
  const known = await lockOrder(client, serviceOrderId);
  if (known === undefined || known.ended || known.contents === null) return ended('unchanged');
  // After a long stall, another process may have a newer answer.
  // guard: newest-answer
  if (!(await isOurs(client, refresh))) return { outcome: 'unchanged', locationId: known.locationId };
  // Changes do not matter for an order that is cancelled or to be cancelled.
  const { cancelState, contents } = known;
  const isCancelling = cancelState !== null && cancelState !== 'refused';
  const isNews = (): boolean =>
    cancelledAt !== undefined || (read.order !== undefined && compareOrders(contents, read.order).length > 0);
  const later = async (): Promise<Found> => {
    const delayMs = Math.min(Math.max(DEFER_MS, refresh.age * 1_000), DEFER_MAX_MS);
    await postponeRefresh(client, refresh, { delayMs, failures: 0 });
    return { outcome: 'deferred', locationId: read.order?.locationId ?? known.locationId };
  };
  // If the POS refuses, the order goes on, and the answer counts.
  // guard: cancel-may-be-refused
  if (isCancelling && !known.isCalledOff)
    return contents.cancelledAt === undefined && isNews() ? later() : ended('unchanged');
  // Request cancellation even if the POS refused an earlier request by an operator.
  if (cancelledAt !== undefined && contents.cancelledAt === undefined) {
    await client.query(`UPDATE order_contents SET contents = contents || $2::jsonb WHERE service_order_id = $1`, [
      serviceOrderId,
      { cancelledAt, cancelReason },
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
  // A platform may empty an order that it has cancelled. That is no change for the kitchen, even if the POS has refused.
  // guard: cancelled-is-no-change
  if (read.order === undefined || cancelledAt !== undefined) return ended('unchanged');
  if (known.finished) {
    const changed = await recordChange(client, contents, read.order);
    return ended(changed === undefined ? 'unchanged' : 'changed_after_sent', changed);
  }
  const changes = compareOrders(contents, read.order);
  if (changes.length === 0) return ended('unchanged');
  // If a request was sent, the stored order may not change, because a repeat must be identical to the request.
  // guard: sent-as-it-was
  if (mayHaveTicket(known)) return later();
  await storeNewest(client, read, deadlineS);
  return ended('changed', changes);
}

/**
 * Maximum of refreshes under way. A hanging platform can occupy only these. They are enough for 100 signals a second if
 * each response takes a third of a second.
 */
const WORKERS = 32;
export const REFRESHES_DUE = 'EXISTS (SELECT FROM refreshes WHERE next_attempt_at <= now())';

export function workRefreshes(deps: RefreshDeps & { log: Log }): WorkLoop {
  return workLoop({
    capacity: WORKERS,
    poll: () => whenDue(deps.pool, REFRESHES_DUE),
    claim: (limit) => claimRefreshes(deps.pool, limit),
    work: (refresh) =>
      refreshOrder(deps, refresh).catch((error: unknown) => {
        deps.log.error({ serviceOrderId: refresh.serviceOrderId, err: error }, 'refresh interrupted');
      }),
    log: deps.log,
    failing: 'refreshes could not be claimed',
  });
}
