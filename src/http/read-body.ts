import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { withinShare } from '../core/domain/within-share.ts';
import { BEGINNING } from '../core/domain/webhook.ts';

/** Request bodies already take too much memory. The sender may retry. */
class NoCapacity extends Error {
  override readonly name = 'NoCapacity';
}

export type BodyBudget = {
  /**
   * Starts a reservation for one body. `take` adds bytes or throws NoCapacity. `release` frees them all.
   * @param owner a location, or a token for signals
   */
  open(owner: string): { take(bytes: number): void; release(): void };
};

/**
 * Limits the memory that all bodies take together. One owner may take a share of the free bytes, so an owner that floods
 * or sends slowly uses up only its own share.
 * @param limit bytes
 */
export function bodyBudget(limit: number): BodyBudget {
  // Entries are never deleted, because a Map that changes with every webhook keeps garbage in memory.
  const heldOf = new Map<string, number>();
  let held = 0;
  return {
    open(owner) {
      let mine = 0;
      return {
        take(bytes) {
          const here = (heldOf.get(owner) ?? 0) + bytes;
          if (!withinShare(here, held + bytes, limit)) throw new NoCapacity('too many bytes are held already');
          held += bytes;
          mine += bytes;
          heldOf.set(owner, here);
        },
        release() {
          heldOf.set(owner, (heldOf.get(owner) ?? 0) - mine);
          held -= mine;
          mine = 0;
        },
      };
    },
  };
}

/**
 * Makes a scope's handlers read bodies themselves and ignore Content-Type. Otherwise Fastify itself would answer some
 * requests with 400, 413 or 415, and the sender would conclude that we refuse its payload.
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

/** Chunks of at least this many bytes are not copied. Such a chunk keeps at most 64 KiB, one socket read, in memory. */
const LARGE = 32 * 1024;
const BLOCK = 64 * 1024;
/** A smaller chunk counts as this many bytes. Each chunk costs time, and a sender may send many tiny chunks. */
export const CHUNK_BYTES = 64;

/**
 * Reads a request's body of at most `limit` bytes. If the body is larger, it returns the first `keep` bytes and
 * `truncated` true, and discards up to `limit` more bytes, so that most senders finish sending and read the answer. The
 * rest stays unread, so the caller must close the connection of a truncated request.
 * @param limit bytes; a chunk counts for at least `CHUNK_BYTES`
 * @param about.keep how many bytes of a truncated body are returned
 * @param about.onBytes called with every chunk's bytes; an error that it throws stops the reading
 * @throws the stream's error, or an Error if the sender disconnected before the end
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
 * Collects chunks. Small chunks are copied into blocks of growing size: a list of one-byte chunks would take 200 MiB
 * for a body of 1 MiB. Large chunks are not copied: freeing the copies would pause all requests.
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
