import { batch, signal } from '@preact/signals';
import { API } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { findSession, session } from '../session.ts';
import type { Attention, BoardComplete, BoardOrder } from '../wire.ts';
import { attention, board, draw, isThere } from './live-board.ts';

export type Connection =
  | { state: 'connecting' }
  | { state: 'live'; isTruncated: boolean }
  /** Milliseconds since the epoch. */
  | { state: 'lost'; since: number };

/** Whether what is on screen is so now. */
export const connection = signal<Connection>({ state: 'connecting' });

/** Streams end now and then and are back at once: nobody need hear of that. */
const PATIENCE_MS = 5_000;
/** After the service itself said no, an EventSource does not come back. */
const AGAIN_MS = 3_000;
/** A machine that slept has a connection which nobody has told that it is dead. */
const SLEPT_MS = 120_000;
const LOOK_MS = 10_000;

/** Follows the board until the returned function is called. A session that has ended leads to the login. */
export function followBoard(): () => void {
  let source: EventSource | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let patience: ReturnType<typeof setTimeout> | undefined;

  const open = (): void => {
    clearTimeout(again);
    source?.close();
    source = new EventSource(`${API}/live`);
    source.addEventListener('reset', () => board.begin());
    source.addEventListener('orders', (event) => {
      board.take((JSON.parse(event.data) as { orders: BoardOrder[] }).orders, Date.now());
      draw();
    });
    source.addEventListener('complete', (event) => {
      const { truncated } = JSON.parse(event.data) as BoardComplete;
      board.complete(Date.now());
      draw();
      live(truncated);
    });
    source.addEventListener('attention', (event) => {
      attention.value = JSON.parse(event.data) as Attention;
    });
    source.addEventListener('error', lost);
  };

  const live = (isTruncated: boolean): void => {
    clearTimeout(patience);
    patience = undefined;
    if (connection.value.state === 'lost') announce('The board is live again');
    batch(() => {
      isThere.value = true;
      connection.value = { state: 'live', isTruncated };
    });
  };

  const lost = (): void => {
    const since = Date.now();
    if (connection.value.state === 'live') connection.value = { state: 'connecting' };
    patience ??= setTimeout(() => {
      connection.value = { state: 'lost', since };
      announce('The board is not live');
    }, PATIENCE_MS);
    // It comes back by itself, unless the answer was something else than a stream. Its status nobody tells us.
    if (source?.readyState === EventSource.CLOSED) void comeBack();
  };

  const comeBack = async (): Promise<void> => {
    await findSession().catch(() => {});
    if (source !== undefined && session.value.state === 'in') again = setTimeout(open, AGAIN_MS);
  };

  let looked = Date.now();
  const lookout = setInterval(() => {
    const slept = Date.now() - looked;
    looked = Date.now();
    if (slept > SLEPT_MS) open();
  }, LOOK_MS);

  connection.value = { state: 'connecting' };
  open();
  return () => {
    source?.close();
    source = undefined;
    clearTimeout(again);
    clearTimeout(patience);
    clearInterval(lookout);
  };
}
