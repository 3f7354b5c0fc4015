import type { Observe } from '../core/domain/observed.ts';
import type { Log } from '../core/domain/log.ts';

export type Readers = {
  observe: Observe;
  /** Adds a reader of the events from now on. */
  add(name: string, read: Observe): void;
};

/** Passes every event to all readers. A reader that throws affects nothing else, and is logged once. */
export function fanOut(log: Pick<Log, 'error'>): Readers {
  const readers: { name: string; read: Observe; failed: boolean }[] = [];
  return {
    observe(observed) {
      for (const reader of readers) {
        try {
          reader.read(observed);
        } catch (error) {
          if (!reader.failed) log.error({ err: error, reader: reader.name }, 'what happened could not be written down');
          reader.failed = true;
        }
      }
    },
    add(name, read) {
      readers.push({ name, read, failed: false });
    },
  };
}
