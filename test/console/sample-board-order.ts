import type { BoardOrder } from '../../console/wire.ts';

/** An open order with `some` other fields. */
export function sampleBoardOrder(
  serviceOrderId: string,
  some: Partial<BoardOrder> & Pick<BoardOrder, 'signalledAt'>,
): BoardOrder {
  return {
    serviceOrderId,
    locationId: 'club-1',
    integration: 'standard',
    fulfillment: 'pickup',
    callOutCode: 'K472',
    leftOut: [],
    placement: 'sent',
    needsOperator: false,
    problem: null,
    cause: null,
    status: null,
    memberState: 'sent',
    cancellation: null,
    providerOrderId: null,
    requestedAt: null,
    estimatedAt: null,
    ordered: null,
    nextAttemptAt: null,
    updatedAt: null,
    endedAt: null,
    ...some,
  };
}
