import type { Readable } from 'node:stream';

/** Enough of an oversized body to see what it was. */
const KEEP = 64 * 1024;

/**
 * Reads a request's body as the bytes it is, and never holds more than `limit` of them.
 * Over the limit the first `keep` bytes stay, `truncated` is true, and up to `limit` more are read and thrown away, so
 * that most senders get to the answer. What comes after that is left unread: close the connection on a truncated one.
 * @param limit bytes
 * @param about.keep bytes, of a body over the limit
 * @param about.onBytes told of every chunk that is held; what it throws ends the reading
 * @throws the stream's error, or one of our own when the sender left before the end
 */
export function readBody(
  stream: Readable,
  limit: number,
  about: { keep?: number; onBytes?: (bytes: number) => void } = {},
): Promise<{ body: Buffer; truncated: boolean }> {
  const keep = about.keep ?? KEEP;
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    let truncated = false;

    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (!truncated) {
        try {
          about.onBytes?.(chunk.length);
        } catch (error) {
          onError(error as Error);
          return;
        }
        chunks.push(chunk);
        if (size <= limit) return;
        truncated = true;
        chunks = [Buffer.concat(chunks).subarray(0, Math.min(keep, limit))].map((start) => Buffer.from(start));
      } else if (size > 2 * limit) {
        stream.pause();
        onEnd();
      }
    };
    const onEnd = (): void => {
      stop();
      resolve({ body: Buffer.concat(chunks), truncated });
    };
    const onError = (error: Error): void => {
      stop();
      reject(error);
    };
    const onClose = (): void => onError(new Error('the sender left before the body ended'));
    const stop = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      // A request that fails once nobody listens any more would take the process down.
      stream.on('error', () => {});
    };

    if (stream.destroyed) {
      onClose();
      return;
    }
    stream.on('end', onEnd).on('error', onError).on('close', onClose).on('data', onData);
  });
}
