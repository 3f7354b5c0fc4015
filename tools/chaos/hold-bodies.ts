import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const CHUNK = Buffer.alloc(64 * 1024, 'x');
const EVERY_MS = 500;
const AGAIN_MS = 3_000;
/** The beginnings of the senders are spread over this time, because real senders are independent. */
const SPREAD_MS = 1_000;

/**
 * Sends `count` bodies at a time, each on its own connection. They arrive slowly and never end. A body that is refused
 * or cut off is sent again some seconds later.
 * @param urlOf the webhook URL of the nth sender; undefined while it has none
 * @returns a function that stops all senders
 */
export function holdBodies(
  count: number,
  bytes: number,
  urlOf: (nth: number) => string | undefined,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const hold = async (nth: number): Promise<void> => {
    await sleep((SPREAD_MS * nth) / count, undefined, { signal }).catch(() => {});
    while (!signal.aborted) {
      const url = urlOf(nth);
      if (url !== undefined) await sendSlowly(new URL(url), bytes, signal);
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => {});
    }
  };
  const holding = Array.from({ length: count }, (_, nth) => hold(nth));
  return async () => {
    stopping.abort();
    await Promise.all(holding);
  };
}

/** Resolves when the connection is closed, by the other side or by the signal. */
async function sendSlowly(url: URL, bytes: number, signal: AbortSignal): Promise<void> {
  // The signal ends the socket with an error. After a plain close, `once(socket, 'connect')` would never settle.
  const socket = connect({ port: Number(url.port), host: url.hostname, signal }).on('error', () => {});
  // The answer must be read: otherwise the end from the other side is not noticed.
  socket.resume();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await writeSlowly(socket, url, bytes).catch(() => socket.destroy());
  await closed;
}

async function writeSlowly(socket: Socket, { pathname, search }: URL, bytes: number): Promise<void> {
  await once(socket, 'connect');
  socket.write(`POST ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes + 1}\r\n\r\n`);
  for (let left = bytes; left > 0 && !socket.destroyed; left -= CHUNK.length) {
    socket.write(CHUNK.subarray(0, left));
    await sleep(EVERY_MS);
  }
}
