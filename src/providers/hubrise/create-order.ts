import { GiveUp, NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callHubrise, type HubriseRequest, nameRefusal } from './call-hubrise.ts';
import { Customer, Customers, OrderTaken, type Settings } from './payloads.ts';
import { writeCustomer, writeOrder } from './write-order.ts';

/** Ids of up to 10,000 customers by list and private ref: a list is a heavy call, of which a connection has ten a minute. */
const KNOWN = new Map<string, string>();

/**
 * Brings the member into the restaurant's customer list as the order has them, under the platform's id of the member as
 * the private ref, which is unique in a list and seen by this client alone. An order takes its customer's data from there:
 * https://www.hubrise.com/developers/api/orders#customer, and "update their details just before pushing the order" says
 * https://www.hubrise.com/developers/integration-guide (both read in November 2026).
 * @returns the customer's id
 * @throws TryAgain `sent: false`, NeedsOperator or GiveUp: whatever happens here, no order was sent
 */
async function attachCustomer(order: CanonicalOrder, context: PosContext<Settings>): Promise<string> {
  const { customerListId } = context.settings;
  if (customerListId === undefined) {
    throw new NeedsOperator('no customerListId yet: expediter provider connect gets it with the access token');
  }
  const list = `/customer_lists/${encodeURIComponent(customerListId)}/customers`;
  const privateRef = order.member.id;
  const data = writeCustomer(order);

  const key = JSON.stringify([context.settings.baseUrl, customerListId, privateRef]);
  const known = KNOWN.get(key);
  const id =
    (known && (await update(known))) ?? (await make([422])) ?? (await updateListed()) ?? (await make([])) ?? '';
  if (KNOWN.size >= 10_000) KNOWN.clear();
  KNOWN.set(key, id);
  return id;

  /** @returns undefined if it is there, and another process or another of the member's orders made it */
  async function make(allowed: readonly number[]): Promise<string | undefined> {
    const made = await ask({ method: 'POST', path: list, body: { private_ref: privateRef, ...data } }, allowed);
    return made.status < 300 ? idOf(made) : undefined;
  }

  async function updateListed(): Promise<string | undefined> {
    const listed = await find();
    return listed && update(listed);
  }

  async function find(): Promise<string | undefined> {
    const path = `${list}?${new URLSearchParams({ private_ref: privateRef }).toString()}`;
    const found = Customers.safeParse((await ask({ method: 'GET', path, heavy: true })).json).data;
    if (found === undefined) throw new TryAgain('HubRise’s list of customers cannot be read', { sent: false });
    const customer = found.find(({ private_ref }) => private_ref === privateRef);
    if (customer === undefined || customer.anonymised !== true) return customer?.id;
    // It takes no data any more. Without the private ref, a new one can have it.
    await ask({ method: 'PATCH', path: `${list}/${encodeURIComponent(customer.id)}`, body: { private_ref: null } });
    return undefined;
  }

  /** @returns undefined if it is gone, or takes no data any more */
  async function update(id: string): Promise<string | undefined> {
    // What is left out stays: of an address nothing of the one before may.
    const whole = Object.fromEntries(Object.entries(data).map(([field, value]) => [field, value ?? null]));
    const body = order.fulfillment.destination === undefined ? data : whole;
    const path = `${list}/${encodeURIComponent(id)}`;
    const { status, json } = await ask({ method: 'PATCH', path, body, mayLack: true }, [404, 422]);
    return status < 300 && Customer.safeParse(json).data?.anonymised !== true ? id : undefined;
  }

  async function ask(request: HubriseRequest, allowed: readonly number[] = []): Promise<PosAnswer> {
    let answer: PosAnswer;
    try {
      answer = await callHubrise(context, request);
    } catch (error) {
      throw aboutCustomer(error);
    }
    if (answer.status < 300 || allowed.includes(answer.status)) return answer;
    throw refused(answer);
  }
}

function idOf({ json }: PosAnswer): string {
  const id = Customer.safeParse(json).data?.id;
  if (id !== undefined) return id;
  throw new TryAgain('HubRise took a customer and named no id', { sent: false });
}

function refused(answer: PosAnswer): GiveUp {
  return new GiveUp(`HubRise refused the order's customer with ${nameRefusal(answer)}`, {
    reason: 'The restaurant could not take this order.',
    reasonCode: 'technical',
    httpStatus: answer.status,
  });
}

/** The error for the order, which was not sent: a status of 5xx or a lost answer would mean that it may be there. */
function aboutCustomer(error: unknown): unknown {
  if (!(error instanceof TryAgain)) return listRefused(error);
  const { message, retryAfterMs, httpStatus } = error;
  return new TryAgain(`the order's customer: ${message}`, {
    sent: false,
    retryAfterMs,
    ...(httpStatus === 429 && { httpStatus }),
  });
}

/** Explains a 403 or 404 of a customer list. Returns any other error as it is. */
export function listRefused(error: unknown): unknown {
  if (!(error instanceof NeedsOperator) || (error.httpStatus !== 403 && error.httpStatus !== 404)) return error;
  const { httpStatus } = error;
  return new NeedsOperator(
    `HubRise does not open the customer list (${httpStatus}): is customerListId the connection's, and its scope ` +
      'location[orders.write,customer_list.write]?',
    { httpStatus },
  );
}

/**
 * Creates the order by `POST /location/orders`. HubRise makes another order of every request: never repeat it blindly.
 *
 * - 200 with the order: taken, also without a usable id, since webhooks name our id too
 * - 400, 415, 422: malformed, or "needs to be modified before being attempted again"; `errors` name the fields
 * - 5xx: perhaps taken, so `findOrder` is asked
 * @throws as `callHubrise` does, and GiveUp
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const { customers, itemMap } = context.settings;
  // What HubRise's format cannot hold is given up before anything is sent.
  const guests = writeOrder(order, itemMap, context.now);
  const body =
    customers === 'guest' ? guests : writeOrder(order, itemMap, context.now, await attachCustomer(order, context));
  const answer = await callHubrise(context, { method: 'POST', path: '/location/orders', body });
  if (answer.status < 300) return { providerOrderId: OrderTaken.safeParse(answer.json).data?.id };
  throw new GiveUp(`HubRise refused the order with ${nameRefusal(answer)}`, {
    reason: 'The restaurant could not take this order.',
    // HubRise judges the form alone: what the till makes of the order comes as `rejected` or `cancelled`.
    reasonCode: 'technical',
    httpStatus: answer.status,
  });
}
