import { perhapsTaken, classifyError } from '../core/domain/classify-error.ts';
import { OrderRef } from '../core/domain/order.ts';
import { problemOf, type Problem } from '../core/domain/placement-cause.ts';
import { attemptLimit } from '../core/domain/timing.ts';
import type { LocationDeps } from '../core/locations/check-location.ts';
import { getLocation, refuseHosts, WrongLocation, type Location } from '../core/locations/locations.ts';
import { storeOrderRef } from '../core/placements/placement-outcomes.ts';
import { endAttempt } from '../core/placements/record-attempt.ts';
import { beginTestOrder, endTestOrder, type PlacedTest } from '../core/placements/test-order.ts';
import { callWatched } from './call-watched.ts';
import { beginCall, endOf, fixForAnswer } from './place-twice.ts';
import { makeTestOrder } from './test-run.ts';

/** The only item of a test order. */
export type TestItem = { id: string; price: number; currency: string };

const NAME = 'TEST, do not cook';
const DEADLINE_S = 600;
const NEVER_SENT = problemOf({ code: 'process_died' });

/**
 * Places one order for pickup at a location's POS, marked as a test. The kitchen sees a ticket. In our books the order
 * ends when the POS has answered.
 * @throws WrongLocation if there is no such location
 */
export async function placeTestOrder(deps: LocationDeps, locationId: string, item: TestItem): Promise<PlacedTest> {
  const { pool } = deps;
  const stored = await getLocation(pool, locationId);
  let location: Location;
  try {
    location = { ...stored, ...(await deps.decryptSettings(stored)) };
    refuseHosts(location.settings, location.provider, deps.allowedHosts);
  } catch (error) {
    if (!(error instanceof WrongLocation)) throw error;
    return { state: 'failed', problem: error.message, toDo: 'Correct the settings of the location, then try again.' };
  }
  const { provider, integration } = location;
  const { id, price, currency } = item;
  const contents = {
    items: [{ serviceItemId: id, name: NAME, quantity: 1, unitPrice: price, ageRestricted: false, modifiers: [] }],
    fulfillment: { type: 'pickup' as const },
    money: { subtotal: price, tax: 0, tip: 0, fee: 0, total: price, currency },
  };
  const made = makeTestOrder(locationId, contents, deps.now());
  const { claim, order } = await beginTestOrder(pool, made, DEADLINE_S);
  const { serviceOrderId, callOutCode = null } = order;
  let problem: Problem = NEVER_SENT;
  try {
    const attempt = await beginCall(pool, claim, 'createOrder', location);
    const call = await callWatched(deps, location, attemptLimit(provider) * 1_000, async (context) =>
      OrderRef.parse(await provider.createOrder(order, context)),
    );
    if ('error' in call) {
      problem = classifyError(call.error);
      await endAttempt(pool, serviceOrderId, endOf(attempt, call));
      const toDo = perhapsTaken(call.error)
        ? 'The POS may have the ticket: look there, and remove it.'
        : fixForAnswer(call.exchange, location);
      return { state: 'failed', problem: problem.problem, toDo };
    }
    await storeOrderRef(pool, serviceOrderId, integration, call.given, endOf(attempt, call));
    return { state: 'placed', serviceOrderId, providerOrderId: call.given.providerOrderId ?? null, callOutCode };
  } finally {
    await endTestOrder(pool, claim, problem);
  }
}
