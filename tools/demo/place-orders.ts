import { randomBytes } from 'node:crypto';
import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';
import { sampleOrder, type SampleOptions } from '../../world/platform/sample-order.ts';
import type { OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import type { Doors } from './doors.ts';
import type { Timeline } from './journey-lines.ts';

export type PlacedOrder = {
  serviceOrderId: string;
  /** Null if the order cannot be read. */
  fulfillment: FulfillmentType | null;
  /** The right end of an order that is not cooked: the platform has cancelled it, or the mapper cannot read or skips it. */
  expected?: 'cancelled' | 'held' | 'withdrawn' | 'waiting';
};
export type PlaceOrder = (fulfillment: FulfillmentType) => Promise<PlacedOrder>;

/** Plays the ordering platform: stores an order for a member, and signals it. */
export function placeOrders(about: {
  platform: OrderingPlatform;
  signalOrder: Doors['signalOrder'];
  locationId: string;
  timeline: Timeline;
}): PlaceOrder {
  const { platform, signalOrder, locationId, timeline } = about;
  platform.answer = (serviceOrderId) => {
    timeline.print(serviceOrderId, 'platform', 'answers the GraphQL query for the order');
    return undefined;
  };
  return async (fulfillment) => {
    const serviceOrderId = writeDown(platform, { locationId, type: fulfillment });
    const placed = { serviceOrderId, fulfillment };
    timeline.begin(placed);
    timeline.print(serviceOrderId, 'platform', 'signals orderPlaced');
    await signalOrder(serviceOrderId);
    return placed;
  };
}

/** Adds an order like the sample order to the platform. @returns its id */
export function writeDown(platform: OrderingPlatform, order: SampleOptions): string {
  const serviceOrderId = `order-${randomBytes(5).toString('hex')}`;
  platform.orders.set(serviceOrderId, sampleOrder({ ...order, serviceOrderId }));
  return serviceOrderId;
}
