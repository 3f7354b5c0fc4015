import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';

/** Answers with JSON that never ends, compressed to a thousandth. Only a reader that stops reading gets to its end. */
export function sendEndless(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
  const blanks = Buffer.alloc(2 ** 20, ' ');
  const endless = Readable.from(
    (function* () {
      yield '{"data": ';
      for (;;) yield blanks;
    })(),
  );
  pipeline(endless, createGzip(), response, () => {});
}
