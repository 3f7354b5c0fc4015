import { batch, signal } from '@preact/signals';
import { API, query } from '../api.ts';
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

/** Shorter interruptions are not shown, because streams end periodically and reconnect at once. */
const PATIENCE_MS = 5_000;
/** Time before we reconnect after an error answer. An EventSource does not do that automatically. */
const AGAIN_MS = 3_000;
/**
 * Time without events before a reconnect: two heartbeats are missing. After sleep or a change of network, a browser does
 * not notice that its connection is dead.
 */
const QUIET_MS = 22_000;
const CHECK_EVERY_MS = 2_000;

/**
 * Follows the board until the returned function is called. If the session has ended, the login appears.
 * @param group empty for all locations
 */
export function followBoard(group: string): () => void {
  let source: EventSource | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let patience: ReturnType<typeof setTimeout> | undefined;
  let lastSeenAt = Date.now();

  const open = (): void => {
    clearTimeout(again);
    source?.close();
    lastSeenAt = Date.now();
    source = new EventSource(`${API}/live${query({ group })}`);
    source.addEventListener('reset', () => board.begin());
    for (const any of ['reset', 'orders', 'complete', 'attention', 'heartbeat'])
      source.addEventListener(any, () => (lastSeenAt = Date.now()));
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

  const showLostLater = (since: number): void => {
    patience ??= setTimeout(() => {
      connection.value = { state: 'lost', since };
      announce('The board is not live');
    }, PATIENCE_MS);
  };

  const lost = (): void => {
    if (connection.value.state === 'live') connection.value = { state: 'connecting' };
    showLostLater(Date.now());
    // An EventSource reconnects automatically, except after an error answer. It hides the status of that answer.
    if (source?.readyState === EventSource.CLOSED) void reconnect();
  };

  const reconnect = async (): Promise<void> => {
    await findSession().catch(() => {});
    if (source !== undefined && session.value.state === 'in') again = setTimeout(open, AGAIN_MS);
  };

  const watchdog = setInterval(() => {
    if (Date.now() - lastSeenAt <= QUIET_MS) return;
    showLostLater(lastSeenAt);
    open();
  }, CHECK_EVERY_MS);
  // A page from the browser's back-forward cache has lost its connection.
  const reopen = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) open();
  };
  addEventListener('pageshow', reopen);
  addEventListener('online', open);

  connection.value = { state: 'connecting' };
  open();
  return () => {
    source?.close();
    source = undefined;
    clearTimeout(again);
    clearTimeout(patience);
    clearInterval(watchdog);
    removeEventListener('pageshow', reopen);
    removeEventListener('online', open);
  };
}
