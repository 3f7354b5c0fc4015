import { z } from 'zod';
import { RANK_FAILED, memberStateAt, rankOf, statusAt, type FulfillmentType } from './lifecycle.ts';
import { LiveMessage, cancellationNotified, type LiveRow } from './live-message.ts';
import { Instant } from './order.ts';

/**
 * A step of an order as its member may see it: a live message without the location and the POS's own id, and with a
 * reason only if the order failed or was cancelled.
 */
export const MemberMessage = LiveMessage.pick({
  sequence: true,
  status: true,
  memberState: true,
  fulfillment: true,
  callOutCode: true,
  cancellation: true,
  reason: true,
  reasonCode: true,
  itemIds: true,
  estimatedReadyAt: true,
  estimatedDeliveryAt: true,
  trackingUrl: true,
  occurredAt: true,
  appliedAt: true,
}).extend({
  requestedAt: Instant.exactOptional().meta({
    description: 'When the member wants it. Missing means as soon as possible. Also missing until the order is read.',
  }),
});
export type MemberMessage = z.infer<typeof MemberMessage>;

/** An order's present state, as its member may see it. An order not read yet is `placed`. */
export const MemberSnapshot = MemberMessage.omit({ occurredAt: true, appliedAt: true }).extend({
  sequence: z.int().min(0),
  appliedAt: Instant.exactOptional(),
});
export type MemberSnapshot = z.infer<typeof MemberSnapshot>;

export type StateRow = Pick<
  LiveRow,
  'reasonCode' | 'itemIds' | 'estimatedReadyAt' | 'estimatedDeliveryAt' | 'trackingUrl'
> & {
  sequence: number;
  rank: number;
  /** Null for an order that was never read. */
  fulfillment: FulfillmentType | null;
  callOutCode: string | null;
  requestedAt: string | null;
  cancellation: LiveRow['cancellation'];
  reason: string | null;
  /** When its last message was applied. Null if the follower gets the message itself, or if none is stored. */
  appliedAt: string | null;
};

/** @param state undefined before the first signal. The order exists, because the platform signed a token for it */
export function toMemberSnapshot(state: StateRow | undefined): MemberSnapshot {
  if (state === undefined) return { sequence: 0, status: null, memberState: memberStateAt(0, null) };
  return {
    sequence: state.sequence,
    status: statusAt(state.rank),
    memberState: memberStateAt(state.rank, state.fulfillment),
    ...(state.fulfillment !== null && { fulfillment: state.fulfillment }),
    ...(state.callOutCode !== null && { callOutCode: state.callOutCode }),
    ...(state.requestedAt !== null && { requestedAt: state.requestedAt }),
    ...cancellationNotified(state),
    ...(state.reason !== null && state.rank >= RANK_FAILED && { reason: state.reason }),
    ...(state.reasonCode !== null && { reasonCode: state.reasonCode }),
    ...(state.itemIds !== null && { itemIds: state.itemIds }),
    ...(state.estimatedReadyAt !== null && { estimatedReadyAt: state.estimatedReadyAt }),
    ...(state.estimatedDeliveryAt !== null && { estimatedDeliveryAt: state.estimatedDeliveryAt }),
    ...(state.trackingUrl !== null && { trackingUrl: state.trackingUrl }),
    ...(state.appliedAt !== null && { appliedAt: state.appliedAt }),
  };
}

/** Copies field by field, so that a new field of live messages does not reach members automatically. */
export function toMemberMessage(message: LiveMessage, requestedAt: string | null): MemberMessage {
  const { sequence, status, memberState, fulfillment, callOutCode, cancellation, reason, reasonCode, itemIds } =
    message;
  const { estimatedReadyAt, estimatedDeliveryAt, trackingUrl, occurredAt, appliedAt } = message;
  return {
    sequence,
    status,
    memberState,
    ...(fulfillment !== undefined && { fulfillment }),
    ...(callOutCode !== undefined && { callOutCode }),
    ...(requestedAt !== null && { requestedAt }),
    ...(cancellation !== undefined && { cancellation }),
    ...(reason !== undefined && status !== null && rankOf(status) >= RANK_FAILED && { reason }),
    ...(reasonCode !== undefined && { reasonCode }),
    ...(itemIds !== undefined && { itemIds }),
    ...(estimatedReadyAt !== undefined && { estimatedReadyAt }),
    ...(estimatedDeliveryAt !== undefined && { estimatedDeliveryAt }),
    ...(trackingUrl !== undefined && { trackingUrl }),
    ...(occurredAt !== undefined && { occurredAt }),
    appliedAt,
  };
}
