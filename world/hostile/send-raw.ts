import { connect } from 'node:net';
import type { Pace } from './hostile-input.ts';

/** `cut` when the connection ended without a whole answer, `hang` when nothing came in time. */
export type RawAnswer = { status: number | 'cut' | 'hang'; headers: Record<string, string>; body: string };

const FLOOD_MAX = 64 * 2 ** 20;

/** Writes bytes to a socket of 127.0.0.1 and reads one answer, which may come before all is written. */
export function sendRaw(port: number, bytes: Buffer, pace: Pace, withinMs: number): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    let heard: Buffer = Buffer.alloc(0);
    const over = new AbortController();
    const end = (answer: RawAnswer): void => {
      if (over.signal.aborted) return;
      over.abort();
      clearTimeout(late);
      socket.destroy();
      resolve(answer);
    };
    const endWith = (status: 'cut' | 'hang') => () => end({ status, headers: {}, body: heard.toString('latin1') });
    const late = setTimeout(endWith('hang'), withinMs);
    socket.on('data', (chunk: Buffer) => {
      heard = Buffer.concat([heard, chunk]);
      const answer = readAnswer(heard);
      if (answer !== undefined) end(answer);
    });
    socket.on('error', () => {});
    socket.on('end', endWith('cut'));
    socket.on('close', endWith('cut'));
    socket.on('connect', () => void write());

    async function write(): Promise<void> {
      if (pace.dribble === undefined) {
        socket.write(bytes);
      } else {
        const { bytes: step, everyMs, of } = pace.dribble;
        const from = of === 'body' ? bytes.indexOf('\r\n\r\n') + 4 : 0;
        socket.write(bytes.subarray(0, from));
        for (let at = from; at < bytes.length && !over.signal.aborted; at += step) {
          socket.write(bytes.subarray(at, at + step));
          await new Promise((next) => setTimeout(next, everyMs));
        }
      }
      if (pace.afterwards === 'half-close') socket.end();
      // Left once the kernel has taken it all, and the service has had time to begin.
      if (pace.afterwards === 'leave') setTimeout(endWith('cut'), 50);
      const { flood } = pace;
      if (flood === undefined) return;
      for (let sent = 0; sent < FLOOD_MAX && !over.signal.aborted; sent += flood.length) {
        await new Promise<unknown>((next) => socket.write(flood, next));
      }
    }
  });
}

/** The answer as soon as it is whole; one that only says to go on is passed over. */
function readAnswer(heard: Buffer): RawAnswer | undefined {
  const text = heard.toString('latin1');
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
  const after = headEnd + 4;
  if (status < 200) return readAnswer(heard.subarray(after));
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  // It has no end.
  if (headers['content-type']?.startsWith('text/event-stream')) return { status, headers, body: '' };
  const length = status === 204 ? 0 : Number(headers['content-length'] ?? Number.NaN);
  if (heard.length < after + length) return undefined;
  return { status, headers, body: heard.subarray(after).toString() };
}
