import type { MemberState } from '../../src/core/domain/lifecycle.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import type { OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import type { Live } from './follow-live.ts';
import type { Doors } from './doors.ts';
import type { Timeline } from './journey-lines.ts';
import type { PlaceOrder } from './place-orders.ts';

/** An order that its member cancelled. */
export type Cancelled = {
  serviceOrderId: string;
  /** The member states in their order, without immediate repeats. */
  memberStates: MemberState[];
  ticketsAtPos: number;
  cancelledAtPos: boolean;
};

/** The expected end of each of the three orders. */
const EXPECTED = [
  { when: 'before it was sent', end: 'cancelled', ticketsAtPos: 0, cancelledAtPos: false },
  { when: 'after it was sent', end: 'cancelled', ticketsAtPos: 1, cancelledAtPos: true },
  { when: 'too late', end: 'picked_up', ticketsAtPos: 1, cancelledAtPos: false },
] as const;

/**
 * Cancels three orders for their members: one before it is sent, one after, and one when it is ready, which the POS
 * refuses. @param about.holds promises by order id. The kitchen awaits an order's promise before it hands it out
 */
export async function cancelOrders(about: {
  platform: OrderingPlatform;
  signalOrder: Doors['signalOrder'];
  place: PlaceOrder;
  live: Live;
  pos: Simulator;
  holds: Map<string, Promise<void>>;
  timeline: Timeline;
  signal: AbortSignal;
}): Promise<Cancelled[]> {
  const { platform, place, live, pos, timeline, signal } = about;
  const cancel = async (orderId: string): Promise<void> => {
    const cancelledAt = new Date().toISOString();
    platform.orders.set(orderId, { ...(platform.orders.get(orderId) as object), cancelledAt });
    timeline.print(orderId, 'platform', 'the member cancels the order: signals it again');
    await about.signalOrder(orderId);
  };

  const isTried = Promise.withResolvers<void>();
  pos.behave = ({ serviceOrderId }) => {
    timeline.print(serviceOrderId, 'POS', 'is too busy now (429)', 'bad');
    isTried.resolve();
    return { status: 429 };
  };
  const { serviceOrderId: before } = await place('pickup');
  await Promise.race([isTried.promise, live.ended(before, signal)]);
  await cancel(before);
  await live.ended(before, signal);
  pos.behave = undefined;

  const [{ serviceOrderId: after }, { serviceOrderId: late }] = await Promise.all([place('pickup'), place('pickup')]);
  const isRefused = live.heard(late, ({ cancellation }) => cancellation === 'refused', signal);
  about.holds.set(
    late,
    isRefused.catch(() => {}),
  );
  await Promise.all([
    live.sent(after, signal).then(() => cancel(after)),
    live.heard(late, ({ memberState }) => memberState === 'ready_for_pickup', signal).then(() => cancel(late)),
    isRefused,
    ...[after, late].map((orderId) => live.ended(orderId, signal)),
  ]);
  return [before, after, late].map((serviceOrderId) => {
    const tickets = pos.tickets.filter((ticket) => ticket.serviceOrderId === serviceOrderId);
    const states = live.messagesOf(serviceOrderId).map(({ memberState }) => memberState);
    return {
      serviceOrderId,
      memberStates: states.filter((state, i) => state !== states[i - 1]),
      ticketsAtPos: tickets.length,
      cancelledAtPos: tickets.some((ticket) => ticket.cancelled),
    };
  });
}

/** @returns a sentence that names the broken promise, or undefined */
export function checkCancelled(cancelled: readonly Cancelled[]): string | undefined {
  for (const [nth, { when, ...expected }] of EXPECTED.entries()) {
    const { memberStates, ticketsAtPos, cancelledAtPos } = cancelled[nth] ?? { memberStates: [] };
    const found = { end: memberStates.at(-1), ticketsAtPos, cancelledAtPos };
    if (JSON.stringify(found) !== JSON.stringify(expected)) {
      return `the order cancelled ${when} became ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`;
    }
  }
  return undefined;
}
