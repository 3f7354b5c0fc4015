import type { Watcher, WholeBoard } from '../../core/orders/board-feed.ts';
import type { BoardOrder } from '../../core/orders/read-board.ts';
import type { Attention } from '../../core/orders/sample-attention.ts';
import type { EventStream } from './event-stream.ts';

/** Small, so that little waits for a slow reader. */
const ORDERS_MAX = 200;
/** A reader that is that far behind is cut off: it comes back, and has the board anew. */
const BEHIND_MAX = 50_000;

/**
 * Writes what a watcher of the board is told into a stream, as fast as its reader takes it. For one that is behind, the
 * newest of each order waits, and the newest of what needs attention.
 */
export function writeBoardEvents(stream: EventStream): Watcher {
  let board: Omit<WholeBoard, 'orders'> | undefined;
  /** Of the whole board; what has changed since comes behind. A list: for each of many readers a Map is large. */
  let rest: BoardOrder[] = [];
  const orders = new Map<string, BoardOrder>();
  let attention: Attention | undefined;

  const next = (): { event: string; data: object } | undefined => {
    const some = rest.splice(0, ORDERS_MAX);
    for (const [id, order] of orders) {
      if (some.length === ORDERS_MAX || rest.length > 0) break;
      some.push(order);
      orders.delete(id);
    }
    if (some.length > 0) return { event: 'orders', data: { orders: some } };
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

  stream.onDrain(flush);
  return {
    whole({ orders: all, ...about }) {
      board = about;
      rest = [...all];
      stream.send({ event: 'reset', data: { at: about.at } });
      flush();
    },
    changed(changed) {
      for (const order of changed) orders.set(order.serviceOrderId, order);
      if (orders.size > BEHIND_MAX) stream.cutOff();
      else flush();
    },
    attention(told) {
      attention = told;
      flush();
    },
  };
}
