import { setTimeout as sleep } from 'node:timers/promises';
import type { ListedOrder } from '../../src/core/orders/list-orders.ts';
import type { ShownOrder } from '../../src/core/orders/show-order.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { signalOrderId } from '../../src/http/pubsub-push.ts';
import { readBody, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { fillMenu } from './fill-menu.ts';
import type { Doors } from './doors.ts';
import type { Timeline } from './journey-lines.ts';
import { unless } from './keep-busy.ts';
import type { OwnPlatform } from './own-platform.ts';
import type { PlacedOrder } from './place-orders.ts';
import { refuseEnded } from './take-orders.ts';

/** Pause between two looks at the held orders. The service reads a held order again only every 30 s. */
const POLL_MS = 2_000;
const HELD = '/v1/orders?state=held&limit=20';

const pathOf = (orderId: string): string => `/v1/orders/${encodeURIComponent(orderId)}`;

export type OwnOrders = {
  /** Signals an order. @throws Error if it is over, or cannot be fetched */
  place(orderId: string): Promise<PlacedOrder>;
  webhookUrlOf(orderId: string): Promise<string>;
  /** Takes the signals for the service, and sends them on when the order's location has a POS. */
  gate: HttpServer;
};

/**
 * Plays the POS systems for orders of the user's own platform. As soon as an order can be read, its location gets a POS
 * that sells its items: when it is signalled, here or by the user, and when a held order was corrected.
 */
export async function ownOrders(about: {
  own: OwnPlatform;
  pos: Simulator;
  signalOrder: Doors['signalOrder'];
  /** The service's URL for signals. */
  signalUrl: string;
  /** The gate's port. */
  port: number;
  /** Sets the location up, if it is not. @returns its webhook's URL */
  openLocation(locationId: string): Promise<string>;
  /** Reads a path of the operator API. */
  show<Shown>(path: string): Promise<Shown | undefined>;
  /** Prints why an order has no ticket, unless that was printed last. Undefined: forgets what was printed. */
  tell(orderId: string, problem: string | undefined): void;
  /** Does so as soon as the problem is known. */
  setAside(orderId: string): Promise<void>;
  timeline: Timeline;
  signal: AbortSignal;
}): Promise<OwnOrders> {
  const { own, pos, signalOrder, timeline, show, signal } = about;
  const webhookUrls = new Map<string, string>();
  const known = new Set<string>();
  /** Orders whose signal is on its way from here to the gate. */
  const placing = new Set<string>();

  const prepare: OwnPlatform['fetch'] = async (orderId) => {
    const order = await own.fetch(orderId);
    if (typeof order === 'object') {
      fillMenu(pos, order);
      webhookUrls.set(orderId, await about.openLocation(order.locationId));
    }
    return order;
  };
  const announce = (orderId: string, order: CanonicalOrder | string): void => {
    const read = typeof order === 'object' ? order : undefined;
    timeline.begin({ serviceOrderId: orderId, fulfillment: read?.fulfillment.type ?? null });
    const what = known.has(orderId) ? 'signals the order again' : 'signals orderPlaced';
    timeline.print(orderId, 'platform', `${what}${read === undefined ? '' : `, for ${read.locationId}`}`);
    known.add(orderId);
    about.tell(orderId, undefined);
  };

  const gate = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    const signalled = signalOrderId(body, request.headers);
    if ('orderId' in signalled && !placing.delete(signalled.orderId)) {
      const { orderId } = signalled;
      const order = await prepare(orderId).catch(() => 'unknown');
      announce(orderId, order);
      if (typeof order === 'string') void about.setAside(orderId).catch(() => {});
    }
    const { authorization = '' } = request.headers;
    const headers = { authorization, 'content-type': 'application/json' };
    const { search } = new URL(request.url ?? '/', 'http://gate');
    const answer = await fetch(`${about.signalUrl}${search}`, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      signal,
    });
    response.writeHead(answer.status).end(await answer.text());
  }, about.port);

  const watchHeld = async (): Promise<void> => {
    for (;;) {
      await sleep(POLL_MS, undefined, { signal });
      const held = await show<{ orders: ListedOrder[] }>(HELD).catch(() => undefined);
      for (const { serviceOrderId, problem } of held?.orders ?? []) {
        about.tell(serviceOrderId, `held: ${problem}`);
        await prepare(serviceOrderId).catch(() => {});
      }
    }
  };
  void watchHeld().catch(unless(signal));

  return {
    async place(orderId) {
      refuseEnded(orderId, await show<ShownOrder>(pathOf(orderId)));
      const order = await prepare(orderId);
      announce(orderId, order);
      placing.add(orderId);
      await signalOrder(orderId);
      if (typeof order === 'string') return { serviceOrderId: orderId, fulfillment: null, expected: order };
      const { fulfillment, cancelledAt } = order;
      return {
        serviceOrderId: orderId,
        fulfillment: fulfillment.type,
        ...(cancelledAt !== undefined && { expected: 'cancelled' }),
      };
    },
    async webhookUrlOf(orderId) {
      for (;;) {
        const known = webhookUrls.get(orderId);
        if (known !== undefined) return known;
        // The service has read it, and the platform may be slow.
        const shown = await show<ShownOrder>(pathOf(orderId)).catch(() => undefined);
        const locationId = shown?.order?.locationId;
        if (locationId) webhookUrls.set(orderId, await about.openLocation(locationId));
        else await sleep(POLL_MS, undefined, { signal });
      }
    },
    gate,
  };
}
