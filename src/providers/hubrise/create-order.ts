import { NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { PosAnswer } from '../call-pos.ts';
import { neverTaken, notItsOwn } from '../refusals.ts';
import { callHubrise, type HubriseRequest, nameRefusal } from './call-hubrise.ts';
import { Customer, Customers, OrderTaken, Refusal, type Settings } from './payloads.ts';
import { writeCustomer, writeOrder } from './write-order.ts';

/** HubRise's customer ids, by list and private ref. A known id saves a search: HubRise allows only ten a minute. */
const KNOWN = new Map<string, string>();

/**
 * Writes the member's data into the restaurant's customer list. The private ref is unique in a list, and only this
 * client sees it.
 * @returns the customer's id
 * @throws TryAgain `sent: false`, because the order itself was not sent yet; NeedsOperator; GiveUp
 */
async function attachCustomer(order: CanonicalOrder, context: PosContext<Settings>): Promise<string> {
  const { customerListId } = context.settings;
  if (customerListId === undefined) {
    throw new NeedsOperator('customerListId is missing: run expediter provider connect to get it');
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

  /** @returns undefined if another process or another order of the member has made the customer in the meantime */
  async function make(allowed: readonly number[]): Promise<string | undefined> {
    const made = await call({ method: 'POST', path: list, body: { private_ref: privateRef, ...data } }, allowed);
    return made.status < 300 ? idOf(made) : undefined;
  }

  async function updateListed(): Promise<string | undefined> {
    const listed = await find();
    return listed && update(listed);
  }

  async function find(): Promise<string | undefined> {
    const path = `${list}?${new URLSearchParams({ private_ref: privateRef }).toString()}`;
    const found = Customers.safeParse((await call({ method: 'GET', path, heavy: true })).json).data;
    if (found === undefined) throw new TryAgain('HubRise’s list of customers cannot be read', { sent: false });
    const customer = found.find(({ private_ref }) => private_ref === privateRef);
    if (customer === undefined || customer.anonymised !== true) return customer?.id;
    // An anonymised customer takes no data. Its private ref is removed, so that a new customer can have the ref.
    await call({ method: 'PATCH', path: `${list}/${encodeURIComponent(customer.id)}`, body: { private_ref: null } });
    return undefined;
  }

  /** @returns undefined if the customer was deleted or takes no more data */
  async function update(id: string): Promise<string | undefined> {
    // HubRise keeps a field that we leave out. So an empty one is sent as null, or part of an old address would remain.
    const whole = Object.fromEntries(Object.entries(data).map(([field, value]) => [field, value ?? null]));
    const body = order.fulfillment.destination === undefined ? data : whole;
    const path = `${list}/${encodeURIComponent(id)}`;
    const { status, json } = await call({ method: 'PATCH', path, body, allow404: true }, [404, 422]);
    return status < 300 && Customer.safeParse(json).data?.anonymised !== true ? id : undefined;
  }

  async function call(request: HubriseRequest, allowed: readonly number[] = []): Promise<PosAnswer> {
    let answer: PosAnswer;
    try {
      answer = await callHubrise(context, request);
    } catch (error) {
      throw aboutCustomer(error);
    }
    if (answer.status < 300 || allowed.includes(answer.status)) return answer;
    throw refused("the order's customer", answer);
  }
}

function idOf({ json }: PosAnswer): string {
  const id = Customer.safeParse(json).data?.id;
  if (id !== undefined) return id;
  throw new TryAgain("HubRise took the order's customer, but its answer has no id", { sent: false });
}

/** Sets `sent: false`: the order was not sent yet, so a lost answer about its customer must not put it in doubt. */
function aboutCustomer(error: unknown): unknown {
  if (!(error instanceof TryAgain)) return listRefused(error);
  return tryAgainWith(error, { message: `the order's customer: ${error.message}`, sent: false });
}

/** Explains a 403 or 404 about a customer list. Returns any other error unchanged. */
export function listRefused(error: unknown): unknown {
  if (!(error instanceof NeedsOperator) || (error.httpStatus !== 403 && error.httpStatus !== 404)) return error;
  const { httpStatus } = error;
  return new NeedsOperator(
    `HubRise refuses access to the customer list (${httpStatus}): check that customerListId is the connection's, and its scope ` +
      'location[orders.write,customer_list.write]',
    { httpStatus },
  );
}

/** 200 means taken, even without a usable id: webhooks name our id too. @throws as `callHubrise` does, and GiveUp */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const { customers, itemMap } = context.settings;
  // Throws before any request if HubRise's format cannot express the order.
  const guests = writeOrder(order, itemMap, context.now);
  const body =
    customers === 'guest' ? guests : writeOrder(order, itemMap, context.now, await attachCustomer(order, context));
  const answer = await callHubrise(context, { method: 'POST', path: '/location/orders', body });
  if (answer.status < 300) return { providerOrderId: OrderTaken.safeParse(answer.json).data?.id };
  // HubRise checks only the format. The till's refusal comes as `rejected` or `cancelled`.
  throw refused('the order', answer);
}

function refused(what: string, answer: PosAnswer): Error {
  const message = `HubRise refused ${what} with ${nameRefusal(answer)}`;
  const { error_type: type, errors } = Refusal.safeParse(answer.json).data ?? {};
  if (type === undefined && errors === undefined) return notItsOwn(message, answer.status);
  return neverTaken(message, { httpStatus: answer.status });
}
