import type { TranslatedWebhook } from '../domain/webhook.ts';
import { withinShare } from '../domain/within-share.ts';

const MAX_QUEUED = 4096;
const MAX_BATCH = 256;
const MAX_BATCH_EVENTS = 1024;

export type FairQueue<Waiting> = {
  size(): number;
  /** True if this location has used its share of the queue. */
  isFullFor(locationId: string): boolean;
  add(waiting: Waiting): void;
  /** Removes a webhook that has not been taken yet. */
  remove(waiting: Waiting): void;
  /** Takes as many webhooks as fit into one statement. */
  take(): Waiting[];
};

/**
 * A queue of waiting webhooks, with one line per location. Lines take turns, one webhook at a time, so no location
 * waits behind another's flood.
 */
export function fairQueue<Waiting extends { webhook: TranslatedWebhook }>(): FairQueue<Waiting> {
  // Empty lines stay. If the Map changed with every webhook, the garbage collector would retain finished webhooks.
  const lines = new Map<string, Waiting[]>();
  /** Lines that are not empty, in the order of their turns. */
  const turns: Waiting[][] = [];
  let size = 0;

  const lineOf = (locationId: string): Waiting[] => {
    let line = lines.get(locationId);
    if (line === undefined) {
      line = [];
      lines.set(locationId, line);
    }
    return line;
  };

  return {
    size: () => size,
    isFullFor: (locationId) => !withinShare((lines.get(locationId)?.length ?? 0) + 1, size + 1, MAX_QUEUED),
    add(waiting) {
      const line = lineOf(waiting.webhook.locationId);
      if (line.length === 0) turns.push(line);
      line.push(waiting);
      size += 1;
    },
    remove(waiting) {
      const line = lineOf(waiting.webhook.locationId);
      const place = line.indexOf(waiting);
      if (place < 0) return;
      line.splice(place, 1);
      size -= 1;
      if (line.length === 0) turns.splice(turns.indexOf(line), 1);
    },
    take() {
      const taken: Waiting[] = [];
      let events = 0;
      for (;;) {
        const [line] = turns;
        const next = line?.[0];
        if (line === undefined || next === undefined) return taken;
        events += next.webhook.events.length;
        if (taken.length === MAX_BATCH || (taken.length > 0 && events > MAX_BATCH_EVENTS)) return taken;
        taken.push(next);
        line.shift();
        turns.shift();
        size -= 1;
        if (line.length > 0) turns.push(line);
      }
    },
  };
}
