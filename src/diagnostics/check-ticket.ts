import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { attemptLimit } from '../core/domain/timing.ts';
import { classifyError } from '../core/domain/classify-error.ts';
import { GiveUp, NeedsOperator } from '../core/domain/errors.ts';
import { rankOf, statusAt } from '../core/domain/lifecycle.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import { askPos } from '../core/locations/check-location.ts';
import type { Location } from '../core/locations/locations.ts';
import { callWatched } from './send-test-order.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { pageFor, type PlaceDeps } from './test-run.ts';

/** Checks that the POS named an id by which people find the ticket, and that no other order has this id. */
export async function namesTicket(
  pool: Pool,
  { builtForUs }: Location['provider'],
  { serviceOrderId, locationId }: KitchenOrder,
  { ids, lastExchange: request }: { ids: readonly string[]; lastExchange: string | undefined },
): Promise<Check> {
  const check = 'ticket id';
  const { rows } = await pool.query<{ id: string | null; takenId: string | null; namedIds: string[] }>(
    `SELECT o.provider_order_id AS id,
            ARRAY(SELECT DISTINCT e.provider_order_id FROM status_events e
                  WHERE e.service_order_id = $1::text AND e.provider_order_id IS NOT NULL ORDER BY 1) AS "namedIds",
            (SELECT t.provider_order_id FROM provider_orders t
             WHERE t.location_id = $2::text AND t.integration = o.integration
               AND t.provider_order_id = ANY ($3::text[]) AND t.service_order_id <> $1::text LIMIT 1) AS "takenId"
     FROM orders o WHERE o.service_order_id = $1::text`,
    [serviceOrderId, locationId, ids],
  );
  const { id = null, takenId = null, namedIds = [] } = rows[0] ?? {};
  if (takenId !== null) {
    const toDo =
      'answer with the id under which the POS stores the ticket, not with a number that starts again each day' +
      (builtForUs === undefined ? '' : '. If your test database was emptied: delete .certify, or use --dir');
    const expected = 'an id that no other ticket of this restaurant has or had';
    const found = `the id "${takenId}" already belongs to an earlier order at this POS`;
    return failed(check, found, toDo, { request, expected });
  }
  if (builtForUs !== undefined && namedIds.length > 1) {
    const found = `webhooks named the order by ${namedIds.length} ids: ${namedIds.map((each) => `"${each}"`).join(', ')}`;
    const toDo = 'check whether the kitchen has two tickets for it; store the id of each order with its ticket';
    return failed(check, found, toDo, { expected: "one ticket for an order, and this ticket's id in each webhook" });
  }
  if (id !== null) return ok(check, `the POS calls the order "${id}"`);
  const found = 'neither the answer to the order nor a webhook named the id of the ticket at the POS';
  const expected = 'an id by which people find the ticket at the till';
  return failed(check, found, "return the ticket's id in the answer to the order", { request, expected });
}

/**
 * Sends another order that is signed with a wrong secret. The POS must refuse it. Only a POS that is built for us is
 * checked, because another POS may handle wrong credentials differently, or lock the account.
 */
export async function forgeOrder(
  deps: PlaceDeps,
  location: Location,
  order: KitchenOrder,
  answerMs: number,
): Promise<Check | undefined> {
  const { provider, integration } = location;
  if (provider.builtForUs === undefined) return undefined;
  const check = 'forged order';
  const settings = provider.builtForUs.forge(location.settings);
  if (settings === undefined)
    return skipped(check, 'orders are not signed: anyone who knows the URL for orders can order');
  const forged = { ...order, serviceOrderId: `certify-${randomBytes(8).toString('hex')}` };
  const call = await callWatched(deps, { integration, provider, settings }, answerMs, (context) =>
    provider.createOrder(forged, context),
  );
  const page = pageFor(location, 'the-signature');
  const { line: request, status } = call.exchange ?? {};
  const expected = '401 for an order with a wrong signature';
  if ('given' in call) {
    const found = `anyone who knows the URL can order: an order with a wrong signature was accepted, ${forged.serviceOrderId}`;
    const toDo = `discard the ticket of ${forged.serviceOrderId}, and verify the signature: ${page}`;
    return failed(check, found, toDo, { request, expected });
  }
  const { error } = call;
  if ((error instanceof NeedsOperator || error instanceof GiveUp) && status !== undefined && status >= 400) {
    return ok(check, `an order with a wrong signature was answered ${status}`, { request });
  }
  const found = `an order with a wrong signature was not refused: ${(error as Error).message}`;
  const toDo = `answer 401 before doing anything else with the order: ${page}`;
  return failed(check, found, toDo, { request, expected });
}

/**
 * Polls the POS for the order's status, if it can be polled, and compares the result with its webhooks. The result may
 * be an earlier status, because not every POS stores every status that it reports.
 */
export async function readTicket(deps: PlaceDeps, location: Location, order: KitchenOrder): Promise<Check | undefined> {
  const check = 'can be polled';
  const { provider } = location;
  if (provider.readStatus === undefined) return undefined;
  const { rows } = await deps.pool.query<{ rank: number; id: string | null }>(
    'SELECT rank, provider_order_id AS id FROM orders WHERE service_order_id = $1::text',
    [order.serviceOrderId],
  );
  const { rank = 0, id = null } = rows[0] ?? {};
  const notified = statusAt(rank);
  const ref = id === null ? {} : { providerOrderId: id };
  const wrong = (found: string): Check =>
    failed(check, found, 'check at the till which status is right; we poll if webhooks do not come', {
      expected: `the status from its webhooks, or an earlier one: ${notified ?? 'none'}`,
    });
  try {
    const events = await askPos(deps, location, { seconds: attemptLimit(provider), sent: false }, async (context) =>
      provider.readStatus?.(ref, order, context),
    );
    // The settings of this location do not allow polling.
    if (events === undefined) return undefined;
    const says = events.map((event) => event.status);
    const found = `when polled, the POS reports ${says.join(', ') || 'nothing'}`;
    const isRight = says.length > 0 && says.every((status) => rankOf(status) <= rank);
    return isRight || notified === null ? ok(check, found) : wrong(found);
  } catch (error) {
    return wrong(classifyError(error).problem);
  }
}
