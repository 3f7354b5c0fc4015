import { createBoard, type Board } from '../../console/board/create-board.ts';
import type { BoardOrder } from '../../console/wire.ts';

/** Of the reader's clock, six hours before midnight. */
export const NOW = new Date(2027, 0, 31, 18, 0).getTime();

/** So many minutes after `NOW`. */
export const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();

/** A complete board with these orders. */
export function boardOf(orders: BoardOrder[], now = NOW): Board {
  const board = createBoard();
  board.begin();
  board.take(orders, now);
  board.complete(now);
  return board;
}

/** An open order that was signalled ten minutes ago, with `some` other fields. */
export function sampleBoardOrder(serviceOrderId: string, some: Partial<BoardOrder> = {}): BoardOrder {
  return {
    serviceOrderId,
    signalledAt: at(-10),
    locationId: 'club-1',
    integration: 'standard',
    fulfillment: 'pickup',
    callOutCode: 'K472',
    leftOut: [],
    refreshFailure: null,
    placement: 'sent',
    needsOperator: false,
    problem: null,
    cause: null,
    status: null,
    memberState: 'sent',
    cancellation: null,
    change: null,
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
