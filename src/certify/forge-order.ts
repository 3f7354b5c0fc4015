import { randomBytes } from 'node:crypto';
import { GiveUp, NeedsOperator } from '../core/domain/errors.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import { askPos } from '../core/locations/ask-pos.ts';
import type { Location } from '../core/locations/locations.ts';
import type { Certified } from './certified.ts';
import { pageFor } from './page-for.ts';
import type { PlaceDeps } from './place-twice.ts';
import { watchFetch } from './watch-fetch.ts';

/**
 * Sends another order, signed by a secret that nobody has: its POS must refuse it. Only to one that is built for us: what
 * others do with wrong credentials is theirs, and may lock an account.
 */
export async function forgeOrder(
  deps: PlaceDeps,
  location: Location,
  order: KitchenOrder,
  answerMs: number,
): Promise<Certified | undefined> {
  const { provider, integration } = location;
  if (provider.builtForUs === undefined) return undefined;
  const check = 'forged order';
  const settings = provider.builtForUs.forge(location.settings);
  if (settings === undefined) {
    return { check, state: 'skipped', found: 'nothing signs orders: whoever knows the URL for orders can order' };
  }
  const forged = { ...order, serviceOrderId: `certify-${randomBytes(8).toString('hex')}` };
  const { fetch, lastExchange } = watchFetch(deps.posFetch);
  const expected = '401 for an order with a wrong signature';
  try {
    const limit = { seconds: answerMs / 1000, sent: true };
    await askPos({ ...deps, posFetch: fetch }, { integration, settings }, limit, (context) =>
      provider.createOrder(forged, context),
    );
  } catch (error) {
    const exchange = await lastExchange();
    const { status } = exchange ?? {};
    const request = exchange === undefined ? {} : { request: exchange.line };
    const refused = error instanceof NeedsOperator || error instanceof GiveUp;
    if (refused && status !== undefined && status >= 400) {
      return { check, state: 'ok', ...request, found: `an order with a wrong signature was answered ${status}` };
    }
    return {
      check,
      state: 'failed',
      ...request,
      found: `an order with a wrong signature was not refused: ${(error as Error).message}`,
      expected,
      toDo: `answer 401 before anything else is done with the order: ${pageFor(location, 'the-signature')}`,
    };
  }
  const exchange = await lastExchange();
  return {
    check,
    state: 'failed',
    ...(exchange !== undefined && { request: exchange.line }),
    found: `anybody who knows the URL can order: an order with a wrong signature was taken, ${forged.serviceOrderId}`,
    expected,
    toDo: `throw the ticket of ${forged.serviceOrderId} away, and verify the signature: ${pageFor(location, 'the-signature')}`,
  };
}
