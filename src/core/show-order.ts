import type { Pool } from 'pg';
import type { DeliveryOutcome } from './apply-deliveries.ts';
import type { PlacementState } from './claim-placements.ts';
import { memberStateAt, type FulfillmentType, type MemberState, type Status } from './lifecycle.ts';

/**
 * All that is known of one order but its contents: no member, no items. `reason`, `problem` and an attempt's `error`
 * are what a member or an operator was told. Times are RFC 3339.
 */
export type ShownOrder = {
  serviceOrderId: string;
  placement: {
    state: PlacementState;
    /** Null until the order was fetched for the first time. */
    locationId: string | null;
    problem: string | null;
    /** A worker holds it now; a call to the platform or the POS may be under way. */
    underWay: boolean;
    attempts: number;
    failures: number;
    signalledAt: string;
    deadlineAt: string;
    /** Null when nothing more is tried by itself: it is finished, or an operator decides. */
    nextAttemptAt: string | null;
    requestEndedAt: string | null;
    finishedAt: string | null;
  };
  /** Null until the order was fetched for the first time. */
  order: {
    locationId: string;
    /** At the last attempt. */
    integration: string | null;
    fulfillment: FulfillmentType;
    status: Status | null;
    memberState: MemberState;
    sequence: number;
    providerOrderId: string | null;
    reason: string | null;
    failedByUs: boolean;
    requestedAt: string | null;
    createdAt: string;
    updatedAt: string;
    endedAt: string | null;
  } | null;
  attempts: {
    attempt: number;
    call: 'createOrder' | 'findOrder';
    outcome: string;
    httpStatus: number | null;
    milliseconds: number | null;
    error: string | null;
    startedAt: string;
    /** Null while the call is under way, or when its process died. */
    endedAt: string | null;
  }[];
  posIds: { locationId: string; integration: string; providerOrderId: string; createdAt: string }[];
  history: {
    status: Status;
    nativeStatus: string;
    outcome: DeliveryOutcome;
    conflict: boolean;
    /** Of an applied one. */
    sequence: number | null;
    providerOrderId: string | null;
    reason: string | null;
    /** Null for what we decided ourselves. */
    deliveryId: string | null;
    occurredAt: string | null;
    recordedAt: string;
  }[];
  /** Live messages that the topic does not have yet. */
  unpublished: { sequence: number; memberState: MemberState; attempts: number; appliedAt: string }[];
};

type Ranked = { rank: number; fulfillment: FulfillmentType };
type Row = Omit<ShownOrder, 'serviceOrderId' | 'placement' | 'order' | 'unpublished'> & {
  placement: ShownOrder['placement'] | null;
  order: (Omit<NonNullable<ShownOrder['order']>, 'memberState'> & Ranked) | null;
  unpublished: (Omit<ShownOrder['unpublished'][number], 'memberState'> & Ranked)[];
};

/** One statement, so that all of it is of the same moment. @returns undefined when no signal ever named this order */
export async function showOrder(pool: Pool, serviceOrderId: string): Promise<ShownOrder | undefined> {
  const { rows } = await pool.query<Row>(
    `SELECT
       (SELECT to_json(p) FROM (
          SELECT state, location_id AS "locationId", problem,
                 coalesce(lease_until > now(), false) AS "underWay", attempts, failures,
                 signalled_at AS "signalledAt", deadline_at AS "deadlineAt",
                 CASE WHEN finished_at IS NULL THEN nullif(next_attempt_at, 'infinity') END AS "nextAttemptAt",
                 request_ended_at AS "requestEndedAt", finished_at AS "finishedAt"
          FROM placements WHERE service_order_id = $1) AS p) AS placement,
       (SELECT to_json(o) FROM (
          SELECT location_id AS "locationId", integration, fulfillment, status, rank, sequence,
                 provider_order_id AS "providerOrderId", reason, failed_by_us AS "failedByUs",
                 requested_at AS "requestedAt", created_at AS "createdAt", updated_at AS "updatedAt",
                 ended_at AS "endedAt"
          FROM orders WHERE service_order_id = $1) AS o) AS "order",
       (SELECT coalesce(json_agg(a ORDER BY a.attempt), '[]') FROM (
          SELECT attempt, call, outcome, http_status AS "httpStatus", milliseconds, error,
                 started_at AS "startedAt", ended_at AS "endedAt"
          FROM placement_attempts WHERE service_order_id = $1) AS a) AS attempts,
       (SELECT coalesce(json_agg(i ORDER BY i."createdAt"), '[]') FROM (
          SELECT location_id AS "locationId", integration, provider_order_id AS "providerOrderId",
                 created_at AS "createdAt"
          FROM provider_orders WHERE service_order_id = $1) AS i) AS "posIds",
       (SELECT coalesce(json_agg(to_jsonb(e) - 'nth' ORDER BY e.nth), '[]') FROM (
          SELECT event_id AS nth, status, native_status AS "nativeStatus", outcome, conflict, sequence,
                 provider_order_id AS "providerOrderId", reason, delivery_id AS "deliveryId",
                 occurred_at AS "occurredAt", recorded_at AS "recordedAt"
          FROM status_events WHERE service_order_id = $1) AS e) AS history,
       (SELECT coalesce(json_agg(x ORDER BY x.sequence), '[]') FROM (
          SELECT sequence, rank, fulfillment, attempts, applied_at AS "appliedAt"
          FROM outbox WHERE service_order_id = $1) AS x) AS unpublished`,
    [serviceOrderId],
  );
  const row = rows[0];
  if (row === undefined || row.placement === null) return undefined;
  return {
    serviceOrderId,
    placement: row.placement,
    order: row.order && withMemberState(row.order),
    attempts: row.attempts,
    posIds: row.posIds,
    history: row.history,
    unpublished: row.unpublished.map(({ fulfillment, rank, ...message }) => ({
      ...message,
      memberState: memberStateAt(rank, fulfillment),
    })),
  };
}

function withMemberState({ rank, ...order }: NonNullable<Row['order']>): NonNullable<ShownOrder['order']> {
  return { ...order, memberState: memberStateAt(rank, order.fulfillment) };
}
