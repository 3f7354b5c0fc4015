import { perhapsTaken, classifyError } from '../core/domain/classify-error.ts';
import { helpWith, problemOf } from '../core/domain/explain-cause.ts';
import type { Problem } from '../core/domain/placement-cause.ts';
import { attemptLimit } from '../core/domain/timing.ts';
import type { LocationDeps } from '../core/locations/check-location.ts';
import { storeOrderRef } from '../core/transitions/placement-outcomes.ts';
import { endAttempt } from '../core/transitions/record-attempt.ts';
import { beginTestOrder, endTestOrder, type PlacedTest } from '../core/test-orders/test-order.ts';
import { beginSending, openLocation } from './send-test-order.ts';
import { makeTestOrder } from './test-run.ts';

/** The only item of a test order. */
export type TestItem = { id: string; price: number; currency: string };

const NAME = 'TEST, do not cook';
const DEADLINE_S = 600;
/** Causes that an item may have that is not on the menu. */
const OF_ITEMS: readonly string[] = ['pos_set_up_wrong', 'pos_rejected_order'];
const NEVER_SENT = problemOf({ code: 'process_died' });

/**
 * Places one order for pickup at a location's POS, marked as a test. The kitchen sees a ticket. In our books the order
 * ends when the POS has answered.
 * @throws WrongLocation if there is no such location
 */
export async function placeTestOrder(deps: LocationDeps, locationId: string, item: TestItem): Promise<PlacedTest> {
  const { pool } = deps;
  const location = await openLocation(deps, locationId);
  if ('problem' in location) return { state: 'failed', ...location };
  const { provider, integration } = location;
  const { id, price, currency } = item;
  const contents = {
    items: [{ serviceItemId: id, name: NAME, quantity: 1, unitPrice: price, ageRestricted: false, modifiers: [] }],
    fulfillment: { type: 'pickup' as const },
    money: { subtotal: price, tax: 0, tip: 0, fee: 0, total: price, currency },
  };
  const made = makeTestOrder(locationId, contents, deps.now());
  const test = await beginTestOrder(pool, made, DEADLINE_S);
  const { serviceOrderId, callOutCode = null } = test.order;
  let problem: Problem = NEVER_SENT;
  try {
    const send = await beginSending(deps, location, test, attemptLimit(provider) * 1_000);
    const call = await send();
    if ('error' in call) {
      problem = classifyError(call.error);
      await endAttempt(pool, serviceOrderId, call.attempt);
      const [{ say } = { say: '' }] = helpWith(problem.cause, location);
      const isOfItem = provider.menuOnly === true && OF_ITEMS.includes(problem.cause.code);
      const help = isOfItem ? `Enter the id of an item that is on the menu of the POS. If it is: ${say}` : say;
      const toDo = perhapsTaken(call.error) ? 'The POS may have the ticket: look there, and remove it.' : help;
      return { state: 'failed', problem: problem.problem, toDo };
    }
    const { given: ref = {}, attempt } = call;
    await storeOrderRef(pool, serviceOrderId, integration, ref, attempt);
    return { state: 'placed', serviceOrderId, providerOrderId: ref.providerOrderId ?? null, callOutCode };
  } finally {
    await endTestOrder(pool, test.claim, problem);
  }
}
