import type { Watcher, WholeBoard } from '../../core/orders/board-feed.ts';
import type { BoardOrder } from '../../core/orders/read-board.ts';
import type { Attention } from '../../core/orders/sample-attention.ts';
import type { EventStream } from './event-stream.ts';

/** Orders per event. Small, so that little waits for a slow reader. */
const ORDERS_MAX = 200;
/** Orders waiting at which a reader is cut off. It reconnects and gets the board anew. */
const BEHIND_MAX = 50_000;

/**
 * Writes the board's events into a stream, as fast as its reader reads. For a slow reader only the newest state of each
 * order waits, and the newest attention list.
 */
export function writeBoardEvents(stream: EventStream): Watcher {
  let board: Omit<WholeBoard, 'orders'> | undefined;
  /** Orders of the whole board, sent before later changes. An array: a Map for each of many readers is large. */
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
      orders.clear();
      rest = [...all];
      stream.send({ event: 'reset', data: { at: about.at } });
      flush();
    },
    changed(changed) {
      for (const order of changed) orders.set(order.serviceOrderId, order);
      if (orders.size > BEHIND_MAX) stream.cutOff();
      else flush();
    },
    attention(latest) {
      attention = latest;
      flush();
    },
  };
}
