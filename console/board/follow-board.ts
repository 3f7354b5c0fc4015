import { batch, signal } from '@preact/signals';
import { API } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { findSession, session } from '../sign-in.ts';
import type { Attention, BoardComplete, BoardOrder } from '../wire.ts';
import { attention, board, draw, isThere } from './live-board.ts';

export type Connection =
  | { state: 'connecting' }
  | { state: 'live'; isTruncated: boolean }
  /** Milliseconds since the epoch. */
  | { state: 'lost'; since: number };

/** The state of the connection: whether the screen is up to date. */
export const connection = signal<Connection>({ state: 'connecting' });

/** Time without connection before it is shown: streams end now and then and reconnect at once. */
const PATIENCE_MS = 5_000;
/** Time until a new connection after an error answer, after which an EventSource does not reconnect. */
const AGAIN_MS = 3_000;
/**
 * Time without events after which to reconnect. A machine that slept, or whose network changed, does not learn that its
 * connection is dead; where little happens, reconnecting is cheap.
 */
const QUIET_MS = 120_000;
const CHECK_EVERY_MS = 10_000;

/** Follows the board until the returned function is called. If the session has ended, the login appears. */
export function followBoard(): () => void {
  let source: EventSource | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let patience: ReturnType<typeof setTimeout> | undefined;
  let lastSeenAt = Date.now();

  const open = (): void => {
    clearTimeout(again);
    source?.close();
    lastSeenAt = Date.now();
    source = new EventSource(`${API}/live`);
    source.addEventListener('reset', () => board.begin());
    source.addEventListener('orders', (event) => {
      lastSeenAt = Date.now();
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
      lastSeenAt = Date.now();
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

  const doubt = (since: number): void => {
    patience ??= setTimeout(() => {
      connection.value = { state: 'lost', since };
      announce('The board is not live');
    }, PATIENCE_MS);
  };

  const lost = (): void => {
    if (connection.value.state === 'live') connection.value = { state: 'connecting' };
    doubt(Date.now());
    // It reconnects by itself, unless the answer was not a stream, whose status is hidden.
    if (source?.readyState === EventSource.CLOSED) void comeBack();
  };

  const comeBack = async (): Promise<void> => {
    await findSession().catch(() => {});
    if (source !== undefined && session.value.state === 'in') again = setTimeout(open, AGAIN_MS);
  };

  const lookout = setInterval(() => {
    if (Date.now() - lastSeenAt <= QUIET_MS) return;
    doubt(lastSeenAt);
    open();
  }, CHECK_EVERY_MS);
  // A page from the browser's back-forward cache has no connection any more.
  const backAgain = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) open();
  };
  addEventListener('pageshow', backAgain);

  connection.value = { state: 'connecting' };
  open();
  return () => {
    source?.close();
    source = undefined;
    clearTimeout(again);
    clearTimeout(patience);
    clearInterval(lookout);
    removeEventListener('pageshow', backAgain);
  };
}
