import type { Readable } from 'node:stream';

/** Bytes kept of an oversized body, enough to recognise it. */
const KEEP = 64 * 1024;
/** Bytes that a chunk counts for at the least. Each chunk costs time, and the sender chooses how many there are. */
export const CHUNK_BYTES = 64;

/**
 * Reads a request's body as bytes, and never holds more than `limit` of them. Over the limit the first `keep` bytes are
 * returned, `truncated` is true, and up to `limit` more are discarded, so that most senders finish and read the answer.
 * The rest is left unread: close the connection of a truncated request.
 * @param limit bytes, of which a chunk counts for 64 at the least
 * @param about.keep bytes returned of a body over the limit
 * @param about.onBytes called with every chunk's bytes; an error that it throws ends the reading
 * @throws the stream's error, or one of our own if the sender left before the end
 */
export function readBody(
  stream: Readable,
  limit: number,
  about: { keep?: number; onBytes?: (bytes: number) => void } = {},
): Promise<{ body: Buffer; truncated: boolean }> {
  const keep = about.keep ?? KEEP;
  return new Promise((resolve, reject) => {
    let held: Buffer = Buffer.alloc(0);
    let size = 0;
    let cost = 0;
    let truncated = false;

    const onData = (chunk: Buffer): void => {
      cost += Math.max(chunk.length, CHUNK_BYTES);
      if (!truncated) {
        try {
          about.onBytes?.(chunk.length);
        } catch (error) {
          onError(error as Error);
          return;
        }
        held = append(held, size, chunk, limit);
        size += chunk.length;
        if (cost <= limit) return;
        truncated = true;
        held = Buffer.from(held.subarray(0, Math.min(keep, limit, size)));
      } else if (cost > 2 * limit) {
        stream.pause();
        onEnd();
      }
    };
    const onEnd = (): void => {
      stop();
      resolve({ body: truncated ? held : held.subarray(0, size), truncated });
    };
    const onError = (error: Error): void => {
      stop();
      reject(error);
    };
    const onClose = (): void => onError(new Error('the sender left before the body ended'));
    const stop = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      // Without a listener, a failing request would end the process.
      stream.on('error', () => {});
    };

    if (stream.destroyed) {
      onClose();
      return;
    }
    stream.on('end', onEnd).on('error', onError).on('close', onClose).on('data', onData);
  });
}

/**
 * Appends a chunk after the first `size` bytes, growing the buffer if needed. A list of chunks would cost too much,
 * since the sender chooses their number: a mebibyte in chunks of one byte would take two hundred.
 */
function append(held: Buffer, size: number, chunk: Buffer, limit: number): Buffer {
  const needed = size + chunk.length;
  let buffer = held;
  if (needed > held.length) {
    buffer = Buffer.allocUnsafe(size === 0 ? needed : Math.max(needed, Math.min(2 * needed, limit)));
    held.copy(buffer, 0, 0, size);
  }
  chunk.copy(buffer, size);
  return buffer;
}
