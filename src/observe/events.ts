import type { Log } from '../core/domain/log.ts';
import type { Observe, Observed } from '../core/domain/observed.ts';
import type { EventReading, EventReadings, Limited } from './event.ts';
import { orderEvents } from './order-events.ts';
import { serviceEvents } from './service-events.ts';
import { webhookEvents } from './webhook-events.ts';

/** Lines of one kind in a second. Whoever reads them learns no more from the next. */
const MOST = 20;
const WINDOW_MS = 1_000;

/** All kinds of events, in the order of their metrics. */
const EVENTS: EventReadings<Observed['what']> = { ...webhookEvents, ...orderEvents, ...serviceEvents };

/** Makes one reader of all events. `pick` is called once for each kind, and returns its reader, if it has one. */
export function readerOf(pick: (reading: EventReading<never>) => ((observed: never) => void) | undefined): Observe {
  const readers = new Map<string, ReturnType<typeof pick>>();
  for (const [what, reading] of Object.entries(EVENTS))
    readers.set(what, pick(reading as unknown as EventReading<never>));
  return (observed) => readers.get(observed.what)?.(observed as never);
}

/** Logs one line per journey, and per failed piece of work: its ids and its time, nothing of its payload. */
export function logJourneys(log: Log): Observe {
  const limits = new Map<string, (write: () => void) => void>();
  const limited: Limited = (level, more, write) => {
    const limit = limits.get(more) ?? limitLines((count) => log[level]({ more: count }, more));
    limits.set(more, limit);
    limit(write);
  };
  return readerOf(({ log: write }) => write && ((observed) => write(log, observed, limited)));
}

/**
 * Limits the lines of a kind that strangers can cause, or an outage: the first twenty in a second are said, and a second
 * later how many came beyond.
 */
function limitLines(sayMore: (more: number) => void): (say: () => void) => void {
  let count = 0;
  let began = -Infinity;
  const end = (): void => {
    if (count > MOST) sayMore(count - MOST);
    count = 0;
  };
  return (say) => {
    const now = performance.now();
    if (now - began >= WINDOW_MS && count <= MOST) {
      began = now;
      count = 0;
    }
    count += 1;
    if (count <= MOST) say();
    // Those at the end of a flood are told, too.
    else if (count === MOST + 1) setTimeout(end, WINDOW_MS).unref();
  };
}
