import type { Pool } from 'pg';
import { z } from 'zod';
import { GATHER_MS, pollWhileWatched } from '../postgres/loops.ts';
import type { Log } from '../domain/log.ts';
import { Instant } from '../domain/order.ts';
import { ENDED_MAX, OPEN_MAX, BoardOrder, readBoard, type Seen } from './read-board.ts';
import {
  CANCELS,
  CASES,
  sampleAttention,
  sumUnnotified,
  type Attention,
  type SampledAttention,
} from './sample-attention.ts';

export type BoardFilter = {
  /** Only these locations are shown. If undefined, all locations and orders without a location are shown. */
  locations?: readonly string[] | undefined;
  locationId?: string | undefined;
  /** The integration that the order's last attempt called. */
  integration?: string | undefined;
};

/** The event `reset`: the reader must discard all orders, because the whole board follows. */
export const BoardReset = z.object({
  at: Instant.meta({ description: "Time of the board, by Postgres's clock." }),
});

/** The event `orders`: each order replaces the reader's order with the same `serviceOrderId`. */
export const BoardOrders = z.object({ orders: z.array(BoardOrder) });

/** The event `complete`: the reader now has the whole board. */
export const BoardComplete = z.object({
  open: z.int().meta({ description: 'Number of orders that have not ended.' }),
  ended: z.int().meta({ description: 'Number of orders that ended within the last 24 hours.' }),
  truncated: z.boolean().meta({ description: 'There are more open or ended orders. The oldest ones are left out.' }),
});
export type BoardComplete = z.infer<typeof BoardComplete>;

export type WholeBoard = z.infer<typeof BoardReset> & z.infer<typeof BoardOrders> & BoardComplete;

export type Watcher = {
  /** Called with the whole board at the start, and again when an order has left `locations`. */
  whole(board: WholeBoard): void;
  /** Called with changed orders. An order that leaves the filter is sent one last time. */
  changed(orders: BoardOrder[]): void;
  /** Called with all problems that need attention, after the board and at every change. */
  attention(attention: Attention): void;
};

export type BoardFeed = {
  /** Starts to send the board to a watcher. @returns a function that stops it */
  watch(filter: BoardFilter, watcher: Watcher): () => void;
  /** Signals a change in this process. Changes by other processes are seen within 200 ms. */
  wake(): void;
  /** Signals a change of a case in this process. Changes by other processes are seen within two seconds. */
  wakeAttention(): void;
  stop(): Promise<void>;
};

const POLL_MS = 150;
const ATTENTION_MS = 2_000;
/** Time between full reads. They also find orders erased after their end, and orders that a failover has set back. */
const REREAD_MS = 5 * 60_000;
const DAY_MS = 24 * 3_600_000;
/** Maximum of orders in memory: more than are shown, so that not every new order causes a search for old ones. */
const STORED_MAX = OPEN_MAX + ENDED_MAX + 1_000;

type Watching = { filter: BoardFilter; watcher: Watcher; hasBoard: boolean; attention?: string };

/**
 * Sends watchers the board's changes from all processes. One copy of the board polls for changes and serves all
 * watchers. Without watchers, Postgres is not queried.
 */
export function boardFeed(deps: { pool: Pool; log: Pick<Log, 'error'> }, rereadMs = REREAD_MS): BoardFeed {
  const { pool, log } = deps;
  const watchers = new Set<Watching>();
  const copy = boardCopy();
  /** Undefined until the whole board was read, and after a failed poll. Then the next poll reads the whole board. */
  let seen: Seen | undefined;
  let rereadAt = 0;
  let at: string | undefined;
  let attention: SampledAttention | undefined;
  /** The number of resets. A poll during which a reset happens discards its result. */
  let resets = 0;

  const reset = (): void => {
    resets += 1;
    copy.clear();
    seen = undefined;
    at = undefined;
    attention = undefined;
  };

  const sendBoard = (watching: Watching, now: string): void => {
    watching.hasBoard = true;
    watching.watcher.whole(copy.whole(watching.filter, now));
    sendAttention(watching, attention);
  };

  const poll = async (): Promise<void> => {
    const since = performance.now() < rereadAt ? seen : undefined;
    const began = resets;
    seen = undefined;
    // A full read also reads the known orders by id, because they may have left the indexes of open orders.
    const known = since === undefined ? copy.ids() : copy.hidden();
    const read = await readBoard(pool, since, known);
    if (began !== resets) return;
    seen = read.seen;
    at = read.seen.at;
    if (since === undefined) rereadAt = performance.now() + rereadMs;
    const changes = copy.merge(read);
    if (since === undefined || copy.isLarge()) copy.leaveOut(at);
    for (const watching of watchers) {
      if (!watching.hasBoard) {
        sendBoard(watching, at);
        continue;
      }
      const theirs = changes
        .filter(({ order, before }) => [order, before].some((each) => each && isIn(watching.filter, each)))
        .map(({ order }) => order);
      // The watcher may not see an order that left its locations, so it gets the whole board again.
      if (!theirs.every((order) => isWithin(watching.filter, order))) sendBoard(watching, at);
      else if (theirs.length > 0) watching.watcher.changed(theirs);
    }
  };

  const isWatched = (): boolean => watchers.size > 0;
  const board = pollWhileWatched({
    pollMs: POLL_MS - GATHER_MS,
    isWatched,
    poll,
    log,
    failing: 'the board cannot be read for its watchers; will try again',
  });
  const samples = pollWhileWatched({
    pollMs: ATTENTION_MS - GATHER_MS,
    isWatched,
    async poll() {
      const sampled = await sampleAttention(pool);
      if (watchers.size === 0) return;
      attention = sampled;
      for (const watching of watchers) sendAttention(watching, sampled);
    },
    log,
    failing: 'the problems that need attention cannot be read for the board; will try again',
  });

  return {
    watch(filter, watcher) {
      const watching: Watching = { filter, watcher, hasBoard: false };
      watchers.add(watching);
      if (at !== undefined) {
        copy.leaveOut(at);
        sendBoard(watching, at);
      }
      board.wake();
      if (attention === undefined) samples.wake();
      return () => {
        watchers.delete(watching);
        if (watchers.size === 0) reset();
      };
    },
    wake: board.wake,
    wakeAttention: samples.wake,
    async stop() {
      await Promise.all([board.stop(), samples.stop()]);
    },
  };
}

function sendAttention(watching: Watching, attention: SampledAttention | undefined): void {
  if (attention === undefined || !watching.hasBoard) return;
  const visible = within(watching.filter, attention);
  const text = JSON.stringify(visible);
  if (text === watching.attention) return;
  watching.attention = text;
  watching.watcher.attention(visible);
}

type Change = { order: BoardOrder; before: BoardOrder | undefined };

/** The copy of the board for all watchers. */
function boardCopy() {
  const orders = new Map<string, BoardOrder>();
  const hidden = new Set<string>();
  let truncated = false;
  return {
    ids: () => [...orders.keys()],
    hidden: () => [...hidden],
    isLarge: () => orders.size > STORED_MAX,
    clear(): void {
      orders.clear();
      hidden.clear();
    },
    merge(read: { orders: readonly BoardOrder[]; hidden: readonly string[] }): Change[] {
      const changes: Change[] = [];
      for (const order of read.orders) {
        const before = orders.get(order.serviceOrderId);
        hidden.delete(order.serviceOrderId);
        if (before !== undefined && JSON.stringify(order) === JSON.stringify(before)) continue;
        orders.set(order.serviceOrderId, order);
        changes.push({ order, before });
      }
      for (const id of read.hidden) hidden.add(id);
      return changes;
    },
    /** Removes orders that ended over a day ago, and then the oldest orders beyond the maximum. */
    leaveOut(now: string): void {
      const dayAgo = Date.parse(now) - DAY_MS;
      const [open, ended]: [Dated[], Dated[]] = [[], []];
      const leaving: Dated[] = [];
      for (const { serviceOrderId, signalledAt, endedAt, cause } of orders.values()) {
        const kind = endedAt === null ? open : Date.parse(endedAt) < dayAgo ? leaving : ended;
        // Orders that are not for us leave before others.
        kind.push({ serviceOrderId, time: cause?.code === 'order_skipped' ? 0 : Date.parse(endedAt ?? signalledAt) });
      }
      truncated = open.length > OPEN_MAX || ended.length > ENDED_MAX;
      leaving.push(...oldestBeyond(OPEN_MAX, open), ...oldestBeyond(ENDED_MAX, ended));
      for (const { serviceOrderId } of leaving) {
        orders.delete(serviceOrderId);
        hidden.delete(serviceOrderId);
      }
    },
    whole(filter: BoardFilter, now: string): WholeBoard {
      const shown = [...orders.values()].filter((order) => isIn(filter, order));
      const open = shown.filter(({ endedAt }) => endedAt === null).length;
      return { at: now, orders: shown, open, ended: shown.length - open, truncated };
    },
  };
}

function isIn(filter: BoardFilter, about: { locationId: string | null; integration: string | null }): boolean {
  return (
    isWithin(filter, about) &&
    (filter.locationId === undefined || filter.locationId === about.locationId) &&
    (filter.integration === undefined || filter.integration === about.integration)
  );
}

function isWithin({ locations }: BoardFilter, { locationId }: { locationId: string | null }): boolean {
  return locations === undefined || (locationId !== null && locations.includes(locationId));
}

function within(filter: BoardFilter, all: SampledAttention): Attention {
  const seen = <Each extends Parameters<typeof isIn>[1]>(list: readonly Each[]): Each[] =>
    list.filter((each) => isIn(filter, each));
  return {
    cases: all.cases.filter((each) => isWithin(filter, each)).slice(0, CASES),
    unnotified: sumUnnotified(all.unnotified.filter((each) => isWithin(filter, each))),
    cancelByPhone: seen(all.cancelByPhone).slice(0, CANCELS),
    cancelByPhoneTotal: seen(all.cancelsByPhone).reduce((sum, { count }) => sum + count, 0),
    changed: seen(all.changed),
    unreachedContacts: seen(all.unreachedContacts),
    conflicts: seen(all.conflicts).map(({ integration: _integration, ...conflict }) => conflict),
    dropped: seen(all.dropped),
    silent: seen(all.silent),
    unreachable: seen(all.unreachable),
  };
}

type Dated = { serviceOrderId: string; time: number };

function oldestBeyond(count: number, all: Dated[]): Dated[] {
  return all.length <= count ? [] : all.toSorted((a, b) => b.time - a.time).slice(count);
}
