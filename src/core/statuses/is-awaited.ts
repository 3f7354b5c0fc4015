/**
 * SQL of a condition: events wait for this POS id.
 * @param posId the alias of a row with `location_id`, `integration` and `provider_order_id`
 */
export function isAwaited(posId: string): string {
  // Not EXISTS, which could become a join that reads all that waits.
  return `(SELECT true FROM parked_events w
           WHERE w.location_id = ${posId}.location_id AND w.integration = ${posId}.integration
             AND w.provider_order_id = ${posId}.provider_order_id LIMIT 1)`;
}
