import type { TranslatedWebhook } from '../domain/webhook.ts';
import { withinShare } from '../domain/within-share.ts';

const MAX_QUEUED = 4096;
const MAX_BATCH = 256;
const MAX_BATCH_EVENTS = 1024;

export type FairQueue<Waiting> = {
  size(): number;
  /** True if this location has its share of the queue. */
  isFullFor(locationId: string): boolean;
  add(waiting: Waiting): void;
  /** Removes a webhook that has not been taken yet. */
  remove(waiting: Waiting): void;
  /** Takes as many as fit into one statement. */
  take(): Waiting[];
};

/**
 * Waiting webhooks, in one line per location. The lines are served in turn, one webhook at a time: a location that
 * sends little never waits behind another's flood.
 */
export function fairQueue<Waiting extends { webhook: TranslatedWebhook }>(): FairQueue<Waiting> {
  const lines = new Map<string, Waiting[]>();
  let size = 0;
  return {
    size: () => size,
    isFullFor: (locationId) => !withinShare((lines.get(locationId)?.length ?? 0) + 1, size + 1, MAX_QUEUED),
    add(waiting) {
      const { locationId } = waiting.webhook;
      const line = lines.get(locationId);
      if (line === undefined) lines.set(locationId, [waiting]);
      else line.push(waiting);
      size += 1;
    },
    remove(waiting) {
      const { locationId } = waiting.webhook;
      const line = lines.get(locationId) ?? [];
      const place = line.indexOf(waiting);
      if (place < 0) return;
      line.splice(place, 1);
      size -= 1;
      if (line.length === 0) lines.delete(locationId);
    },
    take() {
      const taken: Waiting[] = [];
      let events = 0;
      for (const [locationId, line] of lines) {
        const [next] = line;
        if (next === undefined) throw new Error('an empty line was kept');
        events += next.webhook.events.length;
        if (taken.length === MAX_BATCH || (taken.length > 0 && events > MAX_BATCH_EVENTS)) break;
        taken.push(next);
        line.shift();
        size -= 1;
        // Moves the line to the end of the Map, where this same loop meets it again.
        lines.delete(locationId);
        if (line.length > 0) lines.set(locationId, line);
      }
      return taken;
    },
  };
}
