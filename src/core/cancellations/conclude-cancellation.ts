import type { Pool } from 'pg';
import type { CancellationObserved, Observe } from '../domain/observed.ts';
import type { Problem } from '../domain/placement-cause.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { retryWrite } from '../postgres/transactions.ts';
import { HELD_RETRY_MS, backOff } from '../placements/conclude-placement.ts';
import { WITHDRAWN, endCancelled } from '../transitions/placement-outcomes.ts';
import { lockedFirst } from '../transitions/placement-sql.ts';
import {
  END_ATTEMPT_PARAMETERS,
  attemptEndJson,
  endAttemptIf,
  type AttemptEnd,
} from '../transitions/record-attempt.ts';
import type { CancelClaim } from './claim-cancellations.ts';
import { refuseCancellation } from './begin-cancellation.ts';
import { unlessErased } from './changed-order.ts';

/** The decision after a try. `end` is the end of the try's cancel request, if there was one. */
export type CancelDecision = { end?: AttemptEnd } & (
  | { do: 'nothing' }
  /** The POS has cancelled the order, or says that it will. Some POS systems say this of orders that they never had. */
  | { do: 'cancelled' | 'asked' }
  /** There is no ticket. */
  | { do: 'withdraw' }
  | ({ do: 'refuse' | 'by phone' } & Problem)
  /** The POS may have cancelled the order. */
  | ({ do: 'doubt' } & Problem)
  /** `isOurs`: retries cannot succeed until an operator fixes the cause. */
  | ({ do: 'try later'; isOurs?: boolean; retryAfterMs?: number | undefined } & Problem)
);

/** Time to wait for a webhook with the result. After that, the POS's status is read, or a person telephones. */
const WEBHOOK_WAIT_MS = 180_000;
/** Time until the result of a request in doubt is read. Until then, the POS may still be processing the request. */
const READ_STATUS_MS = 10_000;
/** The last try begins this many seconds before the deadline, even if the POS requested a longer wait. */
const LAST_TRY_S = 5;

export type ConcludeDeps = { pool: Pool; observe: Observe; onLive: () => void };

export async function concludeCancellation(
  deps: ConcludeDeps,
  claim: CancelClaim,
  decision: CancelDecision,
): Promise<void> {
  const { pool } = deps;
  const { serviceOrderId, locationId, integration } = claim;
  const { end } = decision;
  const observe = (outcome: CancellationObserved['outcome'], about: Partial<Problem> = {}): void =>
    deps.observe({ what: 'cancellation', outcome, serviceOrderId, locationId, integration, ...about });

  switch (decision.do) {
    case 'nothing':
      return undefined;
    case 'cancelled': {
      const about = { nativeStatus: 'answer to the cancel', state: 'sent', end } as const;
      const ended = await retryWrite(() => endCancelled(pool, serviceOrderId, about));
      if (ended?.conflict && integration !== null) {
        deps.observe({ what: 'conflict', serviceOrderId, locationId, integration, status: 'cancelled' });
      }
      observe('cancelled');
      return deps.onLive();
    }
    case 'withdraw': {
      const about = { ...WITHDRAWN, end };
      // If the result is undefined, a webhook was faster. Then there is a ticket.
      if ((await retryWrite(() => endCancelled(pool, serviceOrderId, about))) === undefined) {
        return postpone(pool, claim, { state: 'due', delayMs: 0, failed: false });
      }
      observe('withdrawn');
      return deps.onLive();
    }
    case 'asked':
      observe('asked');
      return retryWrite(() => postpone(pool, claim, { state: 'asked', delayMs: WEBHOOK_WAIT_MS, failed: false, end }));
    case 'refuse':
      await retryWrite(() => refuseCancellation(pool, serviceOrderId, decision));
      observe('refused', decision);
      return deps.onLive();
    case 'doubt':
      observe('in_doubt', decision);
      return retryWrite(() =>
        postpone(pool, claim, { ...decision, state: 'in_doubt', delayMs: READ_STATUS_MS, failed: true }),
      );
    case 'try later': {
      const { isOurs = false, retryAfterMs } = decision;
      // Report the problem once, and not again at every retry.
      if (!isOurs || claim.problem !== decision.problem) observe(isOurs ? 'held' : 'waiting', decision);
      const delayMs = isOurs ? HELD_RETRY_MS : backOff(claim, retryAfterMs);
      return retryWrite(() => postpone(pool, claim, { ...decision, delayMs, failed: !isOurs }));
    }
    case 'by phone':
      observe('by_phone', decision);
      return retryWrite(() =>
        postpone(pool, claim, { ...decision, state: 'by_phone', delayMs: undefined, failed: false }),
      );
  }
}

const { $, valuesOf } = nameParameters(
  ...END_ATTEMPT_PARAMETERS,
  'leaseId',
  'state',
  'delayS',
  'failed',
  'problem',
  'cause',
);

/** SQL that stops retries of placements in doubt, for the orders in `c`. The person who telephones decides instead. */
export const LEAVING_DOUBT = `
  UPDATE placements SET next_attempt_at = 'infinity'
  WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM c)) AND state = 'in_doubt' AND num_nulls(finished_at) = 1`;

const LAST_TRY = `deadline_at - interval '${LAST_TRY_S} s'`;

const POSTPONE = `
  WITH known AS MATERIALIZED (
    SELECT erased_at FROM orders WHERE service_order_id = ${$.serviceOrderId} FOR UPDATE
  ), c AS (
    UPDATE cancellations
    SET state = coalesce(${$.state}, state), problem = ${unlessErased(`left(${$.problem}, 500)`)}, cause = ${$.cause}::jsonb,
        failures = CASE WHEN ${$.failed}::boolean THEN failures + 1 ELSE failures END,
        next_attempt_at = CASE WHEN ${$.delayS}::float8 IS NULL THEN 'infinity'
                               ELSE least(now() + make_interval(secs => ${$.delayS}),
                                          CASE WHEN now() < ${LAST_TRY} THEN ${LAST_TRY} ELSE deadline_at END) END,
        lease_id = NULL, lease_until = NULL
    WHERE service_order_id = ${$.serviceOrderId} AND lease_id = ${$.leaseId}::uuid AND num_nulls(finished_at) = 1
      AND ${lockedFirst('known', '= 1')}
    RETURNING service_order_id
  ), ${endAttemptIf(`(${$.state} IS DISTINCT FROM 'in_doubt' OR (SELECT count(*) FROM c) = 1)`)}
  ${LEAVING_DOUBT} AND ${$.state} = 'by_phone'`;

/** Releases a cancellation until its next try. @param about.delayMs undefined if a person must act */
async function postpone(
  client: Pool,
  { serviceOrderId, leaseId }: CancelClaim,
  about: {
    /** By default the state in the row does not change, so a request in doubt remains in doubt. */
    state?: CancelClaim['state'] | 'by_phone';
    delayMs: number | undefined;
    failed: boolean;
    end?: AttemptEnd | undefined;
  } & Partial<Problem>,
): Promise<void> {
  await client.query({
    name: 'postpone-cancellation',
    text: POSTPONE,
    values: valuesOf({
      serviceOrderId,
      attemptEnd: attemptEndJson(about.end),
      leaseId,
      state: about.state ?? null,
      delayS: about.delayMs === undefined ? null : about.delayMs / 1_000,
      failed: about.failed,
      problem: about.problem ?? null,
      cause: about.cause ?? null,
    }),
  });
}

/** Releases a claim after an internal error. A request that had begun stays recorded in its attempt's row. */
export async function releaseCancellation(pool: Pool, claim: CancelClaim): Promise<void> {
  await postpone(pool, claim, { delayMs: 1_000, failed: false });
}
