import { expect } from 'vitest';
import { z } from 'zod';
import { GiveUp, TryAgain } from '../../../src/core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef, StatusEvent } from '../../../src/core/domain/order.ts';
import type { CancelAnswer, Provider } from '../../../src/core/domain/provider.ts';
import type { SampleOptions } from '../../../world/platform/sample-order.ts';
import { startSystem } from '../../../world/system/start-system.ts';

type Answer<Result> = Result | Error | 'hang' | (() => Promise<Result>);

/** What the tills of all kinds were asked, and what they answer. */
export type Tills = {
  /** Tickets as they were sent, those made in a request whose answer is lost included. */
  tickets: KitchenOrder[];
  cancels: { ref: OrderRef; serviceOrderId: string; reason: string | undefined; code: string | undefined }[];
  creates: ((order: KitchenOrder) => Answer<OrderRef> | undefined) | undefined;
  cancel: ((serviceOrderId: string, nth: number) => Answer<CancelAnswer | undefined>) | undefined;
  reads: ((serviceOrderId: string) => readonly StatusEvent[]) | undefined;
  finds: ((serviceOrderId: string) => OrderRef | undefined | Promise<OrderRef | undefined>) | undefined;
};

/** An answer that was lost: the request was sent. */
export const lost = (): TryAgain => new TryAgain('no answer', { sent: true });
export const tooLate = (): GiveUp => new GiveUp('it is in the oven', { reason: 'too late', httpStatus: 409 });

/** An answer that a till gives when the test says so. `asked` resolves when the till is asked. */
export function heldAnswer<Result>(): {
  asked: Promise<void>;
  wait: () => Promise<Result>;
  resolve: (result: Result) => void;
  reject: (error: Error) => void;
} {
  const asked = Promise.withResolvers<void>();
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const wait = (): Promise<Result> => {
    asked.resolve();
    return promise;
  };
  return { asked: asked.promise, wait, resolve, reject };
}

const WORKERS = ['refreshes', 'placements', 'cancellations', 'sweep of cancellations'] as const;

export type Shop = Awaited<ReturnType<typeof startTills>>;

/**
 * Starts the service with tills: `exact` takes the same order and the same cancel once, `asked` can be asked for an order
 * and its status, `blind` makes a ticket and a cancel of every request, `mute` cannot cancel. Its workers are stepped.
 */
export async function startTills() {
  const tills: Tills = {
    tickets: [],
    cancels: [],
    creates: undefined,
    cancel: undefined,
    reads: undefined,
    finds: undefined,
  };
  const give = async <Result>(answer: Answer<Result>): Promise<Result> => {
    if (answer instanceof Error) throw answer;
    if (answer === 'hang') return new Promise(() => {});
    return typeof answer === 'function' ? (answer as () => Promise<Result>)() : answer;
  };
  const mute: Provider = {
    integration: 'mute',
    settings: z.object({ account: z.string().optional() }),
    deduplicates: true,
    account: (settings) => (settings as { account?: string }).account ?? '',
    // Longer than a test takes.
    attemptWithinS: 110,
    async createOrder(order) {
      if (!tills.tickets.some(({ serviceOrderId }) => serviceOrderId === order.serviceOrderId))
        tills.tickets.push(order);
      return give(tills.creates?.(order) ?? { providerOrderId: `pos-${order.serviceOrderId}` });
    },
    translateWebhook: ({ body }) => (JSON.parse(body.toString()) as { says: StatusEvent[] }).says,
  };
  const cancelOrder: NonNullable<Provider['cancelOrder']> = async (
    ref,
    { serviceOrderId, cancelReason, callOutCode },
  ) => {
    tills.cancels.push({ ref, serviceOrderId, reason: cancelReason, code: callOutCode });
    const nth = tills.cancels.filter((each) => each.serviceOrderId === serviceOrderId).length;
    return give(tills.cancel === undefined ? 'cancelled' : tills.cancel(serviceOrderId, nth));
  };
  const exact: Provider = { ...mute, integration: 'exact', cancelOrder, deduplicatesCancels: true };
  const blind: Provider = { ...mute, integration: 'blind', deduplicates: false, cancelOrder };
  const asked: Provider = {
    ...blind,
    integration: 'asked',
    findOrder: async (serviceOrderId) => tills.finds?.(serviceOrderId),
    readStatus: async (_ref, { serviceOrderId }) => tills.reads?.(serviceOrderId),
  };
  const system = await startSystem({
    providers: [mute, exact, blind, asked],
    stepped: ['placements', 'refreshes', 'cancellations', 'relay'],
    env: { ORDER_MODULE: './examples/order-with-cancels.ts' },
  });
  for (const integration of ['mute', 'exact', 'blind', 'asked']) await system.addLocation(integration, {}, integration);
  const state = async (id: string): Promise<unknown> => (await system.placement(id))?.['state'];
  return {
    system,
    tills,
    /** The state of an order's placement. */
    state,
    /** What its member was told, and of the cancellation. */
    async told(id: string): Promise<string[]> {
      await system.finish('relay');
      return system.live(id).map(({ memberState, cancellation: c }) => (c ? `${memberState} ${c}` : memberState));
    },
    /** The order changes on the platform, which signals it. */
    async change(order: CanonicalOrder, about: Partial<CanonicalOrder> = {}): Promise<void> {
      system.platform.orders.set(order.serviceOrderId, { ...order, ...about });
      expect(await system.signal(order.serviceOrderId)).toBe(204);
    },
    /** A new order, which is tried once. */
    async place(about: SampleOptions, wanted?: string): Promise<{ order: CanonicalOrder; id: string }> {
      const order = await system.placeOrder(about);
      await system.round('placements');
      const id = order.serviceOrderId;
      if (wanted !== undefined) expect(await state(id)).toBe(wanted);
      return { order, id };
    },
    /** Lets time pass for an order, and each worker has a turn. */
    async later(id: string, seconds: number): Promise<void> {
      await system.query(
        `WITH p AS (
           UPDATE placements
           SET next_attempt_at = CASE WHEN next_attempt_at < 'infinity' THEN now() ELSE 'infinity' END,
               deadline_at = deadline_at - make_interval(secs => $2),
               request_ended_at = request_ended_at - make_interval(secs => $2),
               missing_since = missing_since - make_interval(secs => $2)
           WHERE service_order_id = $1
         )
         UPDATE cancellations SET next_attempt_at = now(), deadline_at = deadline_at - make_interval(secs => $2)
         WHERE service_order_id = $1 AND next_attempt_at < 'infinity'`,
        [id, seconds],
      );
      for (const worker of WORKERS) await system.round(worker);
    },
    /** Makes all answer as usual, and leaves no work to the next test. */
    async rest(): Promise<void> {
      tills.creates = tills.cancel = tills.reads = tills.finds = undefined;
      system.platform.answer = undefined;
      await system.query(
        `WITH p AS (UPDATE placements SET next_attempt_at = 'infinity' WHERE finished_at IS NULL),
              r AS (DELETE FROM refreshes)
         UPDATE cancellations SET next_attempt_at = 'infinity' WHERE finished_at IS NULL`,
      );
    },
  };
}
