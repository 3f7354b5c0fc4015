import type { Observe } from '../core/domain/observed.ts';
import type { Log } from '../core/domain/log.ts';

export type Readers = {
  observe: Observe;
  /** From now on this one is told as well. */
  add(name: string, read: Observe): void;
};

/** Tells every reader what happened. One that throws harms neither the journey nor the others; it is logged once. */
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
