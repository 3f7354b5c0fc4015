import type { MedusaContainer } from '@medusajs/framework';
import { ContainerRegistrationKeys, MedusaError, Modules } from '@medusajs/framework/utils';
import {
  cancelOrderFulfillmentWorkflow,
  cancelOrderWorkflow,
  createOrderFulfillmentWorkflow,
  createOrderShipmentWorkflow,
  markOrderFulfillmentAsDeliveredWorkflow,
} from '@medusajs/medusa/core-flows';

/** The fields that are read here. `docs/live-message.schema.json` of Expediter has all. */
export type LiveMessage = {
  serviceOrderId: string;
  sequence: number;
  memberState: string;
  trackingUrl?: string;
};

/**
 * What each state does in Medusa: a fulfillment is what the kitchen cooks. An order that failed, or that the kitchen
 * cancelled, is cancelled, and Medusa gives the money back. Other states stand only in the order's metadata.
 */
const STEPS = new Map<string, readonly Step[]>([
  ['preparing', ['create']],
  ['ready_for_pickup', ['create']],
  ['ready_for_delivery', ['create']],
  ['out_for_delivery', ['create', 'ship']],
  ['picked_up', ['create', 'deliver']],
  ['delivered', ['create', 'ship', 'deliver']],
  ['failed', ['cancel']],
  ['cancelled', ['cancel']],
]);
type Step = 'create' | 'ship' | 'deliver' | 'cancel';

/** What Medusa refuses for good, such as to cancel what is shipped. Any other error may pass. */
const REFUSALS: readonly string[] = [MedusaError.Types.NOT_ALLOWED, MedusaError.Types.INVALID_DATA];

type Order = {
  id: string;
  status: string;
  metadata: Record<string, unknown> | null;
  items: { id: string; quantity: number }[];
  fulfillments: Fulfillment[];
};
type Fulfillment = {
  id: string;
  items: { line_item_id: string; quantity: number }[];
  shipped_at: Date | null;
  delivered_at: Date | null;
  canceled_at: Date | null;
};

/**
 * Applies a message, unless this or a later message of the order was applied. Medusa's steps have transactions of their own,
 * so each step first looks whether it is done, and a message that comes again after a crash does nothing twice. The sequence
 * is stored at the end, in one update with the state.
 * @throws if the message must come again
 */
export async function applyStatus(container: MedusaContainer, message: LiveMessage): Promise<void> {
  const { serviceOrderId: id, ...state } = message;
  const apply = async (): Promise<void> => {
    const order = await readOrder(container, id);
    const last = order?.metadata?.expediter as LiveMessage | undefined;
    if (order === undefined || message.sequence <= (last?.sequence ?? 0)) return;
    let problem: string | null = null;
    try {
      const steps = order.status === 'canceled' ? [] : (STEPS.get(message.memberState) ?? []);
      for (const step of steps) await take(step, container, message);
    } catch (error) {
      // The errors of workflows are copies, without their class.
      const { type, message } = error as MedusaError;
      if (!REFUSALS.includes(type)) throw error;
      problem = message;
    }
    // Unlike the workflow, this sends no event `order.updated`.
    const metadata = { ...order.metadata, expediter: { ...state, problem } };
    await container.resolve(Modules.ORDER).updateOrders(id, { metadata });
  };
  // The message comes again while its first delivery is still at work, if that takes longer than 15 s.
  await container.resolve(Modules.LOCKING).execute(`expediter-${id}`, apply, { timeout: 10 });
}

async function take(step: Step, container: MedusaContainer, message: LiveMessage): Promise<void> {
  const order = await readOrder(container, message.serviceOrderId);
  if (order === undefined) return;
  const { id: order_id } = order;
  const cooked = order.fulfillments.find(({ canceled_at }) => !canceled_at);
  if (step === 'create' && !cooked) {
    const items = order.items.map(({ id, quantity }) => ({ id, quantity }));
    await createOrderFulfillmentWorkflow(container).run({ input: { order_id, items } });
  } else if (step === 'ship' && cooked && !cooked.shipped_at) {
    const items = cooked.items.map(({ line_item_id: id, quantity }) => ({ id, quantity }));
    const { trackingUrl: tracking_url } = message;
    const labels = tracking_url ? [{ tracking_number: '', tracking_url, label_url: '' }] : [];
    await createOrderShipmentWorkflow(container).run({ input: { order_id, fulfillment_id: cooked.id, items, labels } });
  } else if (step === 'deliver' && cooked && !cooked.delivered_at) {
    const input = { orderId: order_id, fulfillmentId: cooked.id };
    await markOrderFulfillmentAsDeliveredWorkflow(container).run({ input });
  } else if (step === 'cancel') {
    const input = { order_id, fulfillment_id: cooked?.id ?? '' };
    if (cooked) await cancelOrderFulfillmentWorkflow(container).run({ input });
    await cancelOrderWorkflow(container).run({ input: { order_id } });
  }
}

async function readOrder(container: MedusaContainer, id: string): Promise<Order | undefined> {
  const fields = ['id', 'status', 'metadata', 'items.*', 'items.detail.*', 'fulfillments.*', 'fulfillments.items.*'];
  const query = container.resolve(ContainerRegistrationKeys.QUERY);
  const { data } = await query.graph({ entity: 'order', fields, filters: { id } });
  return data[0] as unknown as Order | undefined;
}
