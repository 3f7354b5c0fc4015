import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { withinShare } from '../core/domain/within-share.ts';
import { BEGINNING } from '../core/domain/webhook.ts';

/** Too many bytes of bodies are in memory. The sender may retry. */
class NoCapacity extends Error {
  override readonly name = 'NoCapacity';
}

export type BodyBudget = {
  /** Starts a body of this location. `take` counts its bytes and throws NoCapacity; `release` frees them. */
  open(locationId: string): { take(bytes: number): void; release(): void };
};

/**
 * Limits the memory of all bodies. One location gets a share of what is free, so floods and slow senders harm only
 * themselves, however many there are.
 * @param limit bytes
 */
export function bodyBudget(limit: number): BodyBudget {
  // Entries are never deleted: a Map that changes with every webhook would hold on to garbage.
  const heldOf = new Map<string, number>();
  let held = 0;
  return {
    open(locationId) {
      let mine = 0;
      return {
        take(bytes) {
          const here = (heldOf.get(locationId) ?? 0) + bytes;
          if (!withinShare(here, held + bytes, limit)) throw new NoCapacity('too many bytes are held already');
          held += bytes;
          mine += bytes;
          heldOf.set(locationId, here);
        },
        release() {
          heldOf.set(locationId, (heldOf.get(locationId) ?? 0) - mine);
          held -= mine;
          mine = 0;
        },
      };
    },
  };
}

/**
 * Makes a scope's handlers read bodies themselves and ignore Content-Type. A sender would take the framework's 400, 413
 * or 415 for an answer to its payload.
 */
export function takeRawBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  scope.addHook('onRequest', (request, _reply, done) => {
    // Fastify refuses a malformed content type before it calls any parser.
    delete request.raw.headers['content-type'];
    done();
  });
}

/** Bytes of a chunk that is stored without a copy. It holds on to at most one read of a socket, 64 KiB. */
const LARGE = 32 * 1024;
const BLOCK = 64 * 1024;
/** Minimum bytes that a chunk counts for. Each chunk costs time, and the sender decides how many there are. */
export const CHUNK_BYTES = 64;

/**
 * Reads a request's body as bytes, and never holds more than `limit` of them. Over the limit it returns the first `keep`
 * bytes with `truncated` true, and discards up to `limit` more, so that most senders finish and read the answer.
 * The rest stays unread: close the connection of a truncated request.
 * @param limit bytes; a chunk counts for at least 64
 * @param about.keep bytes returned of a body over the limit
 * @param about.onBytes called with every chunk's bytes; an error that it throws stops the reading
 * @throws the stream's error, or our own if the sender left before the end
 */
export function readBody(
  stream: Readable,
  limit: number,
  about: { keep?: number; onBytes?: (bytes: number) => void } = {},
): Promise<{ body: Buffer; truncated: boolean }> {
  const keep = about.keep ?? BEGINNING;
  return new Promise((resolve, reject) => {
    let held = gather();
    let cost = 0;
    let beginning: Buffer | undefined;

    const onData = (chunk: Buffer): void => {
      cost += Math.max(chunk.length, CHUNK_BYTES);
      if (beginning === undefined) {
        try {
          about.onBytes?.(chunk.length);
        } catch (error) {
          onError(error as Error);
          return;
        }
        held.add(chunk);
        if (cost <= limit) return;
        beginning = Buffer.from(held.bytes().subarray(0, Math.min(keep, limit)));
        held = gather();
      } else if (cost > 2 * limit) {
        stream.pause();
        onEnd();
      }
    };
    const onEnd = (): void => {
      stop();
      resolve({ body: beginning ?? held.bytes(), truncated: beginning !== undefined });
    };
    const onError = (error: Error): void => {
      stop();
      reject(error);
    };
    const onClose = (): void => onError(new Error('the sender left before the body ended'));
    const stop = (): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      // Without a listener, an error of the request would end the process.
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
 * Collects chunks. Small ones are copied into blocks that double, since the sender decides their number: as a list, a
 * mebibyte in chunks of one byte would take two hundred. Large ones are not copied: the garbage collector would be busy
 * with the copies, and all requests would wait.
 */
function gather(): { add(chunk: Buffer): void; bytes(): Buffer } {
  const full: Buffer[] = [];
  let block: Buffer = Buffer.alloc(0);
  let used = 0;
  let size = 0;
  const close = (): void => {
    if (used > 0) full.push(block.subarray(0, used));
    block = block.subarray(used);
    used = 0;
  };
  return {
    add(chunk) {
      if (chunk.length >= LARGE) {
        close();
        full.push(chunk);
      } else {
        if (chunk.length > block.length - used) {
          close();
          block = Buffer.allocUnsafe(Math.max(chunk.length, Math.min(size, BLOCK)));
        }
        chunk.copy(block, used);
        used += chunk.length;
      }
      size += chunk.length;
    },
    bytes() {
      close();
      const [only = Buffer.alloc(0)] = full;
      return full.length > 1 ? Buffer.concat(full, size) : only;
    },
  };
}
