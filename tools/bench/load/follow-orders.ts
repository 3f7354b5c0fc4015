/**
 * Follows orders from its own process, as members' phones do, with one connection for each order. A message says how
 * many streams to hold and how many live messages to wait for. The answer counts the live messages since the last
 * answer. The process ends when its parent disconnects.
 */
import { sign } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { orderId } from './seed-orders.ts';
import { percentile } from '../measure/summarize.ts';

export type Following = {
  port: number;
  /** The private key, as PEM, that signs the follow tokens with ES256. */
  key: string;
  audience: string;
  /** The number of streams to hold, each of a different order. Open streams beyond this number are cut. */
  streams: number;
  /** The first of these orders; 0 by default. */
  from?: number;
  /** Live messages to wait for; 0 by default. */
  messages?: number;
  /** The longest wait for the messages, in seconds. */
  withinS?: number;
};

export type Heard = {
  /** Streams that are open. */
  open: number;
  messages: number;
  /** Messages that came twice or out of order. */
  wrong: number;
  /** From the start of the transaction that moved an order to the receipt of its message. */
  p50Ms: number;
  p99Ms: number;
  worstMs: number;
  /** The delay of this process's own event loop, 99th percentile. */
  lateMs: number;
};

type Stream = { socket: Socket; sequence: number; rest: string };

/** The number of connections that are opened at the same time. */
const OPENING = 50;
const TOKEN_S = 3_600;
const RESOLUTION_MS = 5;
const LOOK_EVERY_MS = 10;
const EVENT = /^id: (\d+)\nevent: (snapshot|orderStatusChanged)\ndata: .*?"appliedAt":"([^"]+)"/gm;

const streams = new Map<number, Stream>();
/** One buffer for all streams is enough, because its contents are copied at once. */
const buffer = Buffer.alloc(65_536);
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
let lags: number[] = [];
let wrong = 0;

/** Opens a stream. Resolves when the first snapshot has arrived. */
function open(nth: number, { port, key, audience, from = 0 }: Following): Promise<void> {
  return new Promise((opened, failed) => {
    const socket = connect({
      host: '127.0.0.1',
      port,
      onread: {
        buffer,
        callback(length) {
          stream.rest += buffer.toString('latin1', 0, length);
          if (stream.sequence === 0 && !stream.rest.startsWith('HTTP/1.1 200 ')) {
            failed(new Error(`a stream was refused: ${stream.rest.split('\r\n', 1)[0]}`));
          }
          read(stream);
          if (stream.sequence > 0) opened();
          return true;
        },
      },
    });
    const stream = { socket, sequence: 0, rest: '' };
    streams.set(nth, stream);
    socket.on('error', failed);
    socket.on('close', () => {
      if (streams.get(nth) === stream) streams.delete(nth);
    });
    socket.write(
      `GET /follow?token=${tokenOf(orderId(from + nth), key, audience)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
    );
  });
}

/** Reads the complete events of a stream, as cheaply as possible: one process plays ten thousand phones. */
function read(stream: Stream): void {
  const end = stream.rest.lastIndexOf('\n\n');
  if (end === -1) return;
  const whole = stream.rest.slice(0, end);
  stream.rest = stream.rest.slice(end + 2);
  for (const [, id, event, appliedAt = ''] of whole.matchAll(EVENT)) {
    const sequence = Number(id);
    if (event === 'orderStatusChanged') {
      lags.push(Date.now() - Date.parse(appliedAt));
      if (sequence !== stream.sequence + 1) wrong += 1;
    }
    stream.sequence = sequence;
  }
}

function tokenOf(sub: string, key: string, aud: string): string {
  const exp = Math.floor(Date.now() / 1_000) + TOKEN_S;
  const signed = [{ alg: 'ES256' }, { sub, aud, exp }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

async function follow(about: Following): Promise<Heard> {
  for (const [nth, { socket }] of streams) {
    if (nth < about.streams) continue;
    streams.delete(nth);
    // A reset leaves no TIME_WAIT state, so the port can be used again at once.
    socket.resetAndDestroy();
  }
  let next = streams.size;
  const openSome = async (): Promise<void> => {
    while (next < about.streams) {
      next += 1;
      await open(next - 1, about);
    }
  };
  await Promise.all(Array.from({ length: OPENING }, openSome));

  const { messages = 0, withinS = 0 } = about;
  for (const late = performance.now() + withinS * 1_000; lags.length < messages && performance.now() < late;) {
    await sleep(LOOK_EVERY_MS);
  }
  const heard = {
    open: streams.size,
    messages: lags.length,
    wrong,
    p50Ms: percentile(lags, 0.5),
    p99Ms: percentile(lags, 0.99),
    worstMs: percentile(lags, 1),
    lateMs: delay.percentile(99) / 1e6 - RESOLUTION_MS,
  };
  lags = [];
  wrong = 0;
  delay.reset();
  return heard;
}

process.on('message', (about: Following) => {
  void follow(about).then((heard) => process.send?.(heard));
});
