import type { ToldAttention, Watcher, WholeBoard } from '../../core/follow-board.ts';
import type { BoardOrder } from '../../core/read-board.ts';
import type { EventStream } from './event-stream.ts';

/** Small, so that little waits for a slow reader. */
const ORDERS_MAX = 200;
/** A reader that is that far behind is cut off: it comes back, and has the board anew. */
const BEHIND_MAX = 50_000;

/**
 * Writes what a watcher of the board is told into a stream, as fast as its reader takes it. For one that is behind, the
 * newest of each order waits, and the newest of what needs attention.
 */
export function tellBoard(stream: EventStream): Watcher {
  let board: Omit<WholeBoard, 'orders'> | undefined;
  const orders = new Map<string, BoardOrder>();
  let attention: ToldAttention | undefined;

  const next = (): { event: string; data: object } | undefined => {
    if (orders.size > 0) {
      const some: BoardOrder[] = [];
      for (const [id, order] of orders) {
        some.push(order);
        orders.delete(id);
        if (some.length === ORDERS_MAX) break;
      }
      return { event: 'orders', data: { orders: some } };
    }
    if (board !== undefined) {
      const { open, ended, truncated } = board;
      board = undefined;
      return { event: 'complete', data: { open, ended, truncated } };
    }
    const data = attention;
    attention = undefined;
    return data && { event: 'attention', data };
  };
  const flush = (): void => {
    while (!stream.isBehind()) {
      const event = next();
      if (event === undefined) return;
      stream.send(event);
    }
  };
  const add = (changed: readonly BoardOrder[]): void => {
    for (const order of changed) orders.set(order.serviceOrderId, order);
    if (orders.size > BEHIND_MAX) stream.cutOff();
    else flush();
  };

  stream.onDrain(flush);
  return {
    whole({ orders: all, ...about }) {
      board = about;
      stream.send({ event: 'reset', data: { at: about.at } });
      add(all);
    },
    changed: add,
    attention(told) {
      attention = told;
      flush();
    },
  };
}
