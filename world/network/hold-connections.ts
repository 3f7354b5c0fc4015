import { connect, type Socket } from 'node:net';

export type Held = {
  /** Connections that were closed by the other side so far. */
  readonly closed: number;
  open(): number;
  stop(): void;
};

/** So many at once fit a listener's backlog. */
const AT_ONCE = 250;

/**
 * Opens connections that never send a whole request. Resolves once all were accepted.
 * @param about.says what each sends at once
 * @param about.againMs after how long each that is closed comes again
 */
export async function holdConnections(
  port: number,
  count: number,
  about: { says?: string | undefined; againMs?: number } = {},
): Promise<Held> {
  const open = new Set<Socket>();
  let closed = 0;
  let isOver = false;
  const hold = (): Promise<void> =>
    new Promise((accepted) => {
      const socket = connect(port, '127.0.0.1', () => {
        if (about.says !== undefined) socket.write(about.says);
        accepted();
      });
      open.add(socket);
      // What is answered is read, or the end would not be seen.
      socket.resume().on('error', () => {});
      socket.once('close', () => {
        open.delete(socket);
        accepted();
        if (isOver) return;
        closed += 1;
        const { againMs } = about;
        if (againMs !== undefined) setTimeout(() => !isOver && void hold(), againMs).unref();
      });
    });
  for (let begun = 0; begun < count; begun += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - begun) }, hold));
  }
  return {
    get closed() {
      return closed;
    },
    open: () => open.size,
    stop() {
      isOver = true;
      for (const socket of open) socket.destroy();
    },
  };
}
