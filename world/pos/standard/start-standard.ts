import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { KitchenOrder } from '../../../src/core/domain/order.ts';
import { signWebhook } from '../sign-webhook.ts';
import { startPos, type Ticket as PosTicket } from '../start-pos.ts';
import { deliverWebhook, type Delivery } from '../deliver-webhook.ts';
import type { Fault, Kitchen, SignedWebhook, Simulator, StartSimulator, Ticket, TicketModifier } from '../simulator.ts';

/** The schedule that Standard Webhooks recommends: at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h. */
const DELIVERY: Delivery = {
  waits: [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1_000),
  timeoutMs: 15_000,
  acknowledges: (status) => status >= 200 && status < 300,
};

/** The sample POS of our own format, as a simulator. */
export const startStandard: StartSimulator = async ({ hurry = 1, port = 0 } = {}) => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const pos = await startPos({ secret, port });
  const known = new Map<PosTicket, Ticket>();
  const refusals: string[] = [];

  const read = (ticket: PosTicket): Ticket => {
    const before = known.get(ticket);
    if (before !== undefined) return before;
    const fresh = readTicket(ticket);
    known.set(ticket, fresh);
    return fresh;
  };

  const simulator: Simulator = {
    integration: 'standard',
    url: pos.url,
    settings: { ordersUrl: pos.ordersUrl, statusUrl: pos.statusUrl, cancelUrl: pos.cancelUrl, secret },
    get tickets() {
      return pos.tickets.map(read);
    },
    get requests() {
      return pos.requests;
    },
    refusals,
    behave: undefined,
    onTicket: undefined,
    become(ticket, nativeStatus) {
      ticket.status = nativeStatus;
      pos.become(ofPos(ticket), nativeStatus);
    },
    get reads() {
      return pos.reads;
    },
    misread: undefined,
    get cancels() {
      return pos.cancels;
    },
    miscancel: undefined,
    estimate: undefined,
    lifeOf: (fulfillment) => [
      'RECEIVED',
      'IN_PROGRESS',
      'READY',
      ...(fulfillment === 'delivery' ? ['EN_ROUTE'] : []),
      'COMPLETED',
    ],
    // A reason's code and items follow the status, as in `FAILED item_unavailable burger-classic`.
    sign(_webhookUrl, { serviceOrderId, providerOrderId }, native) {
      const [status, reasonCode, ...itemIds] = native.split(' ');
      const { estimate } = simulator;
      const order = {
        thirdPartyReference: serviceOrderId,
        id: providerOrderId,
        status,
        occurredAt: new Date().toISOString(),
        ...(reasonCode !== undefined && { reasonCode, itemIds }),
        ...(estimate !== undefined && { estimatedReadyAt: estimate, estimatedDeliveryAt: estimate }),
      };
      return seal({ eventType: 'order.status', order });
    },
    report(webhookUrl, ticket, nativeStatus) {
      simulator.become?.(ticket, nativeStatus);
      return deliverWebhook(webhookUrl, () => simulator.sign(webhookUrl, ticket, nativeStatus), DELIVERY, hurry);
    },
    signKitchen,
    setKitchen: (webhookUrl, kitchen) => deliverWebhook(webhookUrl, () => signKitchen(kitchen), DELIVERY, hurry),
    stop: () => pos.stop(),
  };

  function signKitchen(kitchen: Kitchen): SignedWebhook {
    return seal({ eventType: 'kitchen.status', kitchen: { ...kitchen, state: kitchen.state.toUpperCase() } });
  }

  function seal(event: object): SignedWebhook {
    const body = JSON.stringify(event);
    const signed = signWebhook(secret, body, { id: `msg_${randomUUID()}` });
    return { headers: { 'content-type': 'application/json', ...signed }, body: Buffer.from(body) };
  }

  function ofPos(ticket: Ticket): PosTicket {
    const [its] = [...known].find(([, each]) => each === ticket) ?? [];
    if (its === undefined) throw new Error('the ticket belongs to another simulator');
    return its;
  }

  pos.behave = ({ order, query }) =>
    simulator.behave?.({ serviceOrderId: order.serviceOrderId }) ??
    malformed(order, refusals) ??
    unknownIn(query, [], refusals);
  pos.miscancel = (cancel, query) =>
    simulator.miscancel?.() ??
    unknownIn(query, [], refusals) ??
    unknownIn(cancel, ['serviceOrderId', 'providerOrderId', 'reason'], refusals);
  pos.misread = (query) => simulator.misread?.() ?? unknownIn(query, ['thirdPartyReference', 'id'], refusals);

  pos.onTicket = (ticket) => simulator.onTicket?.(read(ticket));
  return simulator;
};

function readTicket(ticket: PosTicket): Ticket {
  const order = KitchenOrder.parse(ticket.order);
  const { providerOrderId, serviceOrderId } = ticket;
  return {
    providerOrderId,
    serviceOrderId,
    key: ticket.idempotencyKey ?? serviceOrderId,
    fulfillment: order.fulfillment.type,
    callOut: order.callOutCode,
    lines: order.items.map((item) => ({
      reference: item.serviceItemId,
      name: item.name,
      quantity: item.quantity,
      price: item.unitPrice,
      note: item.notes,
      ageRestricted: item.ageRestricted,
      modifiers: item.modifiers.map(readModifier),
    })),
    paid: order.money.total,
    tip: order.money.tip,
    fee: order.money.fee,
    discount: order.money.discount,
    total: tillTotal(order),
    guest: { name: order.member.name, phone: order.member.phone, email: order.member.email },
    address: order.fulfillment.destination && Object.values(order.fulfillment.destination).join(' '),
    wantedAt: order.fulfillment.requestedAt,
    note: order.notes ?? '',
    get requests() {
      return ticket.requests;
    },
    status: undefined,
    get cancelled() {
      return ticket.cancelled && true;
    },
  };
}

/** Checks the order against the schema that makes docs/providers/standard-order.schema.json. `refusals` gets the reason. */
function malformed(order: unknown, refusals: string[]): Fault | undefined {
  const { data, error } = KitchenOrder.safeParse(order);
  const isWhole = data !== undefined && isDeepStrictEqual(data, order);
  if (isWhole && addsUp(data)) return undefined;
  const why = isWhole ? 'its sums do not add up' : 'it has an unknown field';
  refusals.push(`the order does not match the schema: ${error?.message ?? why}`);
  return { status: 422, body: { reason: 'The prices have changed.', reasonCode: 'price_changed' } };
}

/** Fields: docs/providers/standard.md#when-the-pos-is-silent and docs/connect-your-pos.md#cancels. */
function unknownIn(given: object, documented: readonly string[], refusals: string[]): Fault | undefined {
  const names = given instanceof URLSearchParams ? [...given.keys()] : Object.keys(given);
  const unknown = names.filter((name) => !documented.includes(name));
  if (unknown.length === 0) return undefined;
  refusals.push(`${unknown.join(', ')} is not documented`);
  return { status: 400 };
}

function addsUp({ discounts, money: { discount } }: KitchenOrder): boolean {
  return discounts === undefined || discounts.reduce((sum, { amount }) => sum + amount, 0) === discount;
}

/** The till's total. The order does not say whether the prices include the tax. */
function tillTotal({ money: { subtotal, discount = 0, tax, tip, fee, total } }: KitchenOrder): number {
  const without = subtotal - discount + tip + fee;
  return without === total ? without : without + tax;
}

function readModifier(modifier: KitchenOrder['items'][number]['modifiers'][number]): TicketModifier {
  const { serviceModifierId: reference, name, quantity, unitPrice: price, modifiers = [] } = modifier;
  return { reference, name, quantity, price, modifiers: modifiers.map(readModifier) };
}
