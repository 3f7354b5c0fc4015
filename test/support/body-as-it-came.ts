import { zstdDecompressSync } from 'node:zlib';

/** The body of a webhook's row. */
export function bodyAsItCame(row: Record<string, unknown>): Buffer {
  const { body, zstd_of: length } = row as { body: Buffer; zstd_of: number | null };
  if (length === null) return body;
  const came = zstdDecompressSync(body);
  if (came.length !== length) throw new Error(`the body was ${came.length} bytes, and zstd_of says ${length}`);
  return came;
}
