/** A request to a process whose answer goes on, such as the stream of a member's phone. */
import type { Server } from 'node:http';
import { duplexPair } from 'node:stream';
import type { Answer, AnswerStream, Request } from './network.ts';

/** Connects to the server of a process without a port. Must be called in its party. */
export function openStream(server: Server, { method, url, headers }: Request): Promise<Answer | 'cut'> {
  const [near, far] = duplexPair();
  // What the service uses of a socket, and a stream lacks.
  Object.assign(far, { remoteAddress: '127.0.0.1', destroySoon: () => far.end() });
  server.emit('connection', far);
  const fields = Object.entries({ ...headers, host: url.host, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  near.write([`${method} ${url.pathname}${url.search} HTTP/1.1`, ...fields, '', ''].join('\r\n'));

  return new Promise((resolve) => {
    let head: Omit<Answer, 'body'> | undefined;
    let received: Buffer[] = [];
    let isEnded = false;
    let onPart = (part: Buffer): void => void received.push(part);
    let onEnd = (): void => {};
    const stream: AnswerStream = {
      listen(tellPart, tellEnd) {
        [onPart, onEnd] = [tellPart, tellEnd];
        for (const part of received) onPart(part);
        if (isEnded) onEnd();
      },
      close: () => void far.destroy(),
    };
    near.on('data', (part: Buffer) => {
      onPart(part);
      if (head !== undefined) return;
      const all = Buffer.concat(received);
      const end = all.indexOf('\r\n\r\n');
      if (end < 0) return;
      head = readHead(all.subarray(0, end).toString());
      received = [all.subarray(end + 4)];
      if (head.headers['content-type']?.includes('event-stream')) resolve({ ...head, body: Buffer.alloc(0), stream });
    });
    const finish = (): void => {
      if (isEnded) return;
      isEnded = true;
      near.end();
      onEnd();
      // Without effect for a stream, which was resolved by its head.
      resolve(head === undefined ? 'cut' : { ...head, body: Buffer.concat(received) });
    };
    near.once('end', finish);
    far.once('close', finish);
  });
}

function readHead(text: string): Omit<Answer, 'body'> {
  const [first = '', ...lines] = text.split('\r\n');
  const headers = lines.map((line) => /^([^:]+): *(.*)$/.exec(line)?.slice(1) as [string, string]);
  return {
    status: Number(first.split(' ')[1]),
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
  };
}
