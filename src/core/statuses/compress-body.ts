import { constants, zstdCompressSync } from 'node:zlib';
import type { TranslatedWebhook } from '../domain/webhook.ts';

/** Bytes from which it pays. What is smaller, Postgres compresses as quickly where its row would be long. */
const WORTH = 4_096;

/**
 * Compresses the body of a webhook as it will be stored, if that makes it smaller. At once: it takes half as long as to
 * read the JSON in it, and Node's threads take longer, from the same processors.
 */
export function compressBody<Kept extends TranslatedWebhook>(webhook: Kept): Kept {
  const { body } = webhook;
  if (body.length < WORTH) return webhook;
  const zstd = zstdCompressSync(body, {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
    pledgedSrcSize: body.length,
    // A text is less than half as long then, and mostly in one piece.
    chunkSize: body.length >> 1,
  });
  return zstd.length < body.length ? { ...webhook, body: zstd, zstdOf: body.length } : webhook;
}
