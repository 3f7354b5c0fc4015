import { attemptLimit } from '../core/domain/attempt-limit.ts';
import { classifyError } from '../core/domain/classify-error.ts';
import { rankOf, statusAt } from '../core/domain/lifecycle.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import { askPos } from '../core/locations/ask-pos.ts';
import type { Location } from '../core/locations/locations.ts';
import type { Certified } from './certified.ts';
import type { PlaceDeps } from './place-twice.ts';

/**
 * Asks the POS for the order's status, where it can be asked, and compares with what its webhooks said. It may say less:
 * not every POS keeps all that it reports.
 */
export async function readTicket(
  deps: PlaceDeps,
  location: Location,
  order: KitchenOrder,
): Promise<Certified | undefined> {
  const check = 'can be asked';
  const { provider } = location;
  if (provider.readStatus === undefined) return undefined;
  const { rows } = await deps.pool.query<{ rank: number; id: string | null }>(
    'SELECT rank, provider_order_id AS id FROM orders WHERE service_order_id = $1::text',
    [order.serviceOrderId],
  );
  const { rank = 0, id = null } = rows[0] ?? {};
  const told = statusAt(rank);
  const ref = id === null ? {} : { providerOrderId: id };
  const expected = `what its webhooks told, or an earlier status: ${told ?? 'none'}`;
  const toDo = 'see which of the two is right at the till: we ask where webhooks stay away';
  try {
    const events = await askPos(deps, location, { seconds: attemptLimit(provider), sent: false }, async (context) =>
      provider.readStatus?.(ref, order, context),
    );
    // These settings name nobody to ask.
    if (events === undefined) return undefined;
    const says = events.map((event) => event.status);
    const found = `asked for the order, it says ${says.join(', ') || 'nothing'}`;
    const isRight = says.length > 0 && says.every((status) => rankOf(status) <= rank);
    if (isRight || told === null) return { check, state: 'ok', found };
    return { check, state: 'failed', found, expected, toDo };
  } catch (error) {
    return { check, state: 'failed', found: classifyError(error).problem, expected, toDo };
  }
}
