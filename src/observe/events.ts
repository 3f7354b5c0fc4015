import type { Log } from '../core/domain/log.ts';
import type { Observe } from '../core/domain/observed.ts';
import type { EventReading, EventReadings, Limited } from './event.ts';
import { orderEvents } from './order-events.ts';
import { serviceEvents } from './service-events.ts';
import { webhookEvents } from './webhook-events.ts';

/** Maximum log lines of one kind in a second. */
const MOST = 20;
const WINDOW_MS = 1_000;

/** All kinds of events. The metrics are exposed in this order. */
const EVENTS: EventReadings = { ...webhookEvents, ...orderEvents, ...serviceEvents };

/** Makes one reader of all events. `pick` is called once for each kind, and returns the kind's reader, if any. */
export function readerOf(pick: (reading: EventReading<never>) => ((observed: never) => void) | undefined): Observe {
  const readers = new Map<string, ReturnType<typeof pick>>();
  for (const [what, reading] of Object.entries(EVENTS))
    readers.set(what, pick(reading as unknown as EventReading<never>));
  return (observed) => readers.get(observed.what)?.(observed as never);
}

/** Logs one line per request and per failed job, with ids and times but no payload. */
export function logJourneys(log: Log): Observe {
  const limits = new Map<string, (write: () => void) => void>();
  const limited: Limited = (level, more, write) => {
    const limit = limits.get(more) ?? limitLines((count) => log[level]({ more: count }, more));
    limits.set(more, limit);
    limit(write);
  };
  return readerOf(({ log: write }) => write && ((observed) => write(log, observed, limited)));
}

/** Limits the lines of one kind as `Limited` describes. */
function limitLines(writeMore: (more: number) => void): (write: () => void) => void {
  let count = 0;
  let began = -Infinity;
  const end = (): void => {
    if (count > MOST) writeMore(count - MOST);
    count = 0;
  };
  return (write) => {
    const now = performance.now();
    if (now - began >= WINDOW_MS && count <= MOST) {
      began = now;
      count = 0;
    }
    count += 1;
    if (count <= MOST) write();
    // A timer writes the number of left out lines, because no further line may come after the flood.
    else if (count === MOST + 1) setTimeout(end, WINDOW_MS).unref();
  };
}
