import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { terminalText } from './terminal-text.ts';

/** Maximum bytes that wait for a slow reader. A busy process logs this much in half a minute. */
const MOST_WAITING = 8 * 1_024 * 1_024;
const AGAIN_MS = 20;
/** Time to write the last lines at exit. Hosting platforms allow a process much more time to exit. */
const LAST_MS = 1_000;

export type LogOutput = DestinationStream & {
  dropped(): number;
};

/**
 * Writes lines to standard output. A slow reader never stops the process: lines wait in memory, and above the limit
 * they are dropped and counted. Lines of one turn of the event loop are written together, because a write is expensive.
 * pino's own destination is not used: on a full pipe it either blocks the process or loses its last lines at exit.
 * @param onRoom called with the number of dropped lines when lines can be written again
 */
export function logOutput(onRoom: (dropped: number) => void): LogOutput {
  // Reading `process.stdout` makes a pipe or socket non-blocking. A write to a full pipe then fails at once.
  const { fd } = process.stdout;
  let lines: string[] = [];
  let linesLength = 0;
  /** The bytes that are being written. */
  let chunk = Buffer.alloc(0);
  let dropped = 0;
  let reported = 0;
  let isRead = true;
  let isScheduled = false;

  /** @returns true if everything is written; false if the pipe is full, so the rest must wait for the reader */
  const writeAll = (): boolean => {
    for (;;) {
      if (chunk.length === 0) {
        if (lines.length === 0) return true;
        chunk = Buffer.from(lines.join(''));
        lines = [];
        linesLength = 0;
      }
      try {
        chunk = chunk.subarray(writeSync(fd, chunk));
        isRead = true;
      } catch (error) {
        // guard: unread-log
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
        // The reader has closed the pipe, or the disk is full.
        isRead = false;
        dropped += chunk.toString().split('\n').length - 1;
        chunk = Buffer.alloc(0);
      }
    }
  };
  const flush = (): void => {
    isScheduled = !writeAll();
    if (isScheduled) setTimeout(flush, AGAIN_MS).unref();
    else if (isRead && dropped > reported) {
      onRoom(dropped - reported);
      reported = dropped;
    }
  };
  process.once('exit', () => {
    const clock = new Int32Array(new SharedArrayBuffer(4));
    const until = performance.now() + LAST_MS;
    while (!writeAll() && performance.now() < until) Atomics.wait(clock, 0, 0, AGAIN_MS);
  });

  return {
    dropped: () => dropped,
    write(json) {
      const line = terminalText(json);
      if (chunk.length + linesLength + line.length > MOST_WAITING) {
        dropped += 1;
        return;
      }
      lines.push(line);
      linesLength += line.length;
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(flush);
    },
  };
}
