import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { LEASE_S } from '../domain/placement.ts';

/** A signal for a known order, in work. */
export type Look = {
  serviceOrderId: string;
  leaseId: string;
  /** To the microsecond. A later time in the row means that another signal came meanwhile. */
  signalledAt: string;
  /** Seconds since that signal. */
  age: number;
  failures: number;
  /** `wait` while the order is fetched for the first time, `forget` where it is still to be, or is over. */
  to: 'fetch' | 'wait' | 'forget';
};

/** Claims looks that are due. There is one row for each order, so it is fetched by one worker at a time. */
export async function claimLooks(pool: Pool, limit: number): Promise<Look[]> {
  const { rows } = await pool.query<Look>({
    name: 'claim-looks',
    text: `
      UPDATE looks l SET lease_id = $2::uuid, lease_until = now() + make_interval(secs => ${LEASE_S})
      WHERE service_order_id = ANY (ARRAY(
        SELECT service_order_id FROM looks
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

type Ours = Pick<Look, 'serviceOrderId' | 'leaseId' | 'signalledAt'>;

/** Ends a look. If another signal came meanwhile, there is one more. */
export async function endLook(
  client: Pick<Pool, 'query'>,
  { serviceOrderId, leaseId, signalledAt }: Ours,
): Promise<void> {
  await client.query({
    name: 'end-look',
    text: `
      WITH done AS (
        -- guard: look-ends
        DELETE FROM looks WHERE service_order_id = $1 AND lease_id = $2::uuid AND signalled_at = $3::timestamptz
      )
      UPDATE looks SET lease_id = NULL, lease_until = NULL, failures = 0
      -- guard: look-stays
      WHERE service_order_id = $1 AND lease_id = $2::uuid AND signalled_at > $3::timestamptz`,
    values: [serviceOrderId, leaseId, signalledAt],
  });
}

/** Puts a look back for a while, or for no time if another signal came. @param failed counts a failed try */
export async function postponeLook(
  client: Pick<Pool, 'query'>,
  { serviceOrderId, leaseId, signalledAt }: Ours,
  delayMs: number,
  failed: boolean,
): Promise<void> {
  await client.query({
    name: 'postpone-look',
    text: `
      UPDATE looks
      SET lease_id = NULL, lease_until = NULL, failures = CASE WHEN $5::boolean THEN failures + 1 ELSE failures END,
          next_attempt_at = CASE WHEN signalled_at > $3::timestamptz THEN now()
                                 ELSE now() + make_interval(secs => $4::float8) END
      WHERE service_order_id = $1 AND lease_id = $2::uuid`,
    values: [serviceOrderId, leaseId, signalledAt, delayMs / 1_000, failed],
  });
}
