import type { Pool } from 'pg';
import type { OrderModule } from '../domain/order-module.ts';
import { readOrderOrCancel, type CancelOnly, type ReadOrder } from '../domain/read-canonical-order.ts';
import { orderFetcher } from './fetch-order.ts';
import type { Credentials } from './platform-headers.ts';
import { classifyError } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { problemOf } from '../domain/explain-cause.ts';
import { wordOf } from '../domain/member-text.ts';
import type { PlacementCode } from '../domain/placement-cause.ts';
import type { Observe, Observed } from '../domain/observed.ts';
import type { Claim } from '../domain/placement.ts';
import { stopwatch } from '../domain/timing.ts';
import { IS_UNFINISHED } from '../transitions/placement-sql.ts';
import { isDataError } from '../postgres/transactions.ts';
import { type Decision, failLate, REJECTED } from './conclude-placement.ts';
import { decideByKind } from './call-provider.ts';
import type { PlacementDeps, PlacementJob, RefetchOrder } from './placement-job.ts';
import { type ActiveOrder, readOrder, recordOrder } from './record-order.ts';

/**
 * @param about.countryOf returns a location's country, for telephone numbers in national format
 * @param about.warn called once if the module's `errorCode` throws
 */
export function orderRefetcher(
  about: Credentials & {
    url: string;
    module: OrderModule;
    countryOf: (locationId: string) => Promise<string | null>;
    warn: (problem: string) => void;
  },
): RefetchOrder {
  const fetchOrder = orderFetcher(about);
  return async (serviceOrderId) => {
    const order = await fetchOrder(serviceOrderId);
    if (order === null) return undefined;
    const read = readOrderOrCancel(order, { serviceOrderId });
    if (read.order === undefined || !read.leftOut.some(({ code }) => code === 'phone_unusable')) return read;
    const country = await about.countryOf(read.order.locationId);
    return country === null ? read : readOrderOrCancel(order, { serviceOrderId, country });
  };
}

/** After this many refused orders in a row, the platform counts as refusing us. Fewer may be faults of these orders. */
const REFUSED_ORDERS = 3;
/** Interval of probes while the platform refuses us. */
const PROBE_EVERY_MS = 5_000;

/** The most refused orders that are remembered. Any more probe like orders that were not refused. */
const REMEMBERED = 1_000;

/**
 * Limits requests to a platform that refuses us, for example because of an invalid token. Every held order is
 * retried, but in PROBE_EVERY_MS only one fetch makes a request, and one more for an order that was not refused itself:
 * those that were may be the only ones. The other fetches repeat the last refusal, until the platform accepts a request.
 */
export function refetchUnlessRefused(refetch: RefetchOrder): RefetchOrder {
  const refused = new Set<string>();
  let refusal: NeedsOperator | undefined;
  const fetchedAt = { refused: -Infinity, other: -Infinity };
  return async (serviceOrderId) => {
    // guard: probe-with-others
    const kind = refused.has(serviceOrderId) ? 'refused' : 'other';
    const isLimited = refused.size >= REFUSED_ORDERS && performance.now() - fetchedAt[kind] < PROBE_EVERY_MS;
    if (isLimited && refusal !== undefined) throw refusal;
    fetchedAt.refused = performance.now();
    if (kind === 'other') fetchedAt.other = fetchedAt.refused;
    try {
      const read = await refetch(serviceOrderId);
      refused.clear();
      return read;
    } catch (error) {
      if (isRefusal(error)) {
        refusal = error;
        if (refused.size < REMEMBERED) refused.add(serviceOrderId);
      } else if (!(error instanceof TryAgain)) {
        refused.clear();
      }
      throw error;
    }
  };
}

/** Causes that affect all orders. */
const ABOUT_ALL = new Set<PlacementCode>([
  'platform_refuses_us',
  'platform_refuses_query',
  'platform_redirects',
  'query_without_order',
]);

/** True if the platform refuses all orders. An unreadable order is not a refusal, because the platform has answered. */
export function isRefusal(error: unknown): error is NeedsOperator {
  const { code } = classifyError(error).cause;
  return error instanceof NeedsOperator && ABOUT_ALL.has(code);
}

/** True if the mapper said that the order is not for us. */
function isSkip(error: unknown): boolean {
  return error instanceof GiveUp && classifyError(error).cause.code === 'order_skipped';
}

/** Fetches the current order and reports the outcome. @throws the errors of the fetch */
export async function refetchObserved(
  { refetch, observe }: { refetch: RefetchOrder; observe: Observe },
  serviceOrderId: string,
): Promise<ReadOrder | CancelOnly | undefined> {
  const began = performance.now();
  const report = (outcome: Extract<Observed, { what: 'refetch' }>['outcome']): void =>
    observe({ what: 'refetch', serviceOrderId, outcome, milliseconds: performance.now() - began });
  try {
    const read = await refetch(serviceOrderId);
    report(read === undefined ? 'missing' : 'fetched');
    return read;
  } catch (error) {
    report(isSkip(error) ? 'fetched' : outcomeOf(error));
    throw error;
  }
}

/** An unreadable order has its own outcome, because it is not a failure of the platform. */
function outcomeOf(error: unknown): Extract<Observed, { what: 'refetch' }>['outcome'] {
  if (error instanceof NeedsOperator) return isRefusal(error) ? 'NeedsOperator' : 'unreadable';
  return error instanceof GiveUp ? 'GiveUp' : 'TryAgain';
}

/**
 * Stores when the platform first reported that it does not have the order.
 * @returns the seconds since the first such report, or undefined if the claim was lost meanwhile
 */
export async function recordMissing(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ seconds: number }>({
    name: 'record-missing',
    text: `UPDATE placements SET missing_since = coalesce(missing_since, now())
           WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_UNFINISHED}
           RETURNING extract(epoch FROM now() - missing_since)::float8 AS seconds`,
    values: [claim.serviceOrderId, claim.leaseId],
  });
  return rows[0]?.seconds;
}

const CANCELLED = { code: 'order_cancelled' } as const;

/** Fetches the order from the platform. If the order was fetched before, reads our stored copy instead. */
export async function fetchOnce(deps: PlacementDeps, job: PlacementJob): Promise<ActiveOrder | Decision> {
  // The placement's location is stored in the same commit as the order, so without a location there is no order.
  const known = job.locationId === null ? undefined : await readOrder(deps.pool, job.serviceOrderId);
  if (known?.ended) {
    return job.doubt === undefined
      ? { do: 'fail', reason: REJECTED, ...problemOf({ code: 'order_ended' }) }
      : { do: 'ask operator', ...problemOf({ code: 'order_ended_in_doubt' }) };
  }
  if (known !== undefined) return known;
  // guard: past-order
  if (job.isPast) {
    deps.observe({ what: 'past order', serviceOrderId: job.serviceOrderId });
    return { do: 'nothing' };
  }
  if (job.late && job.doubt === undefined) return failLate(job);
  const sinceAsked = stopwatch();
  let read: ReadOrder | CancelOnly | undefined;
  try {
    read = await refetchObserved(deps, job.serviceOrderId);
  } catch (error) {
    return isSkip(error) ? { do: 'skip', ...classifyError(error) } : decideByKind(error);
  }
  if (read === undefined) {
    const missingS = await recordMissing(deps.pool, job);
    if (missingS === undefined) return { do: 'nothing' };
    // A slow answer may be as old as its question.
    // guard: missing-since
    return missingS > deps.missingS + sinceAsked() / 1_000
      ? { do: 'fail', reason: REJECTED, ...problemOf({ code: 'order_missing' }) }
      : { do: 'try later', ...problemOf({ code: 'order_missing_yet' }) };
  }
  if (read.order === undefined) {
    const { skipped } = read;
    const isForUs = skipped === undefined;
    return { do: 'skip', ...problemOf(isForUs ? CANCELLED : { code: 'order_skipped', reason: wordOf(skipped) }) };
  }
  const { leftOut } = read;
  let recorded: ActiveOrder | undefined;
  try {
    recorded = await recordOrder(deps.pool, job, read, deps.deadlineS);
  } catch (error) {
    if (!isDataError(error)) throw error;
    if (read.order.cancelledAt !== undefined) return { do: 'skip', ...problemOf(CANCELLED) };
    const cause = { code: 'refused_by_postgres', sqlstate: error.code ?? '' } as const;
    return { do: 'hold', ...problemOf(cause) };
  }
  if (recorded === undefined) return { do: 'nothing' };
  if (leftOut.length > 0) {
    const { serviceOrderId, locationId } = recorded.order;
    deps.observe({ what: 'left out', serviceOrderId, locationId, leftOut });
  }
  // Failures of the platform must not lengthen the back-off for the POS.
  job.failures = 0;
  deps.onLive();
  return recorded;
}

/**
 * Makes held orders due now if they were never read. Called when a process starts, because its mapping may be new and
 * able to read them. Skips locked rows, because another process is changing them.
 */
export async function retryUnread(pool: Pool): Promise<void> {
  await pool.query(
    `UPDATE placements SET next_attempt_at = now()
     WHERE service_order_id = ANY (ARRAY(
       SELECT service_order_id FROM placements
       WHERE finished_at IS NULL AND coalesce(location_id, '') = '' AND next_attempt_at > now() AND state = 'held'
       FOR UPDATE SKIP LOCKED))`,
  );
}
