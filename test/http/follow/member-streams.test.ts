import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Observed } from '../../../src/core/domain/observed.ts';
import { memberStreams, type MemberStream, type MemberStreams } from '../../../src/http/follow/member-streams.ts';
import { serveHttp } from '../../../world/network/serve-http.ts';
import { until } from '../../../world/processes/until.ts';

type Reader = { socket: Socket; text: string; isClosed: boolean };

let streams: MemberStreams;
let server: Awaited<ReturnType<typeof serveHttp>>;
let admitted: (MemberStream | string)[] = [];
let observed: string[] = [];
let answers: ServerResponse[] = [];
const readers: Reader[] = [];
const MOST = 24;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  [admitted, answers, observed] = [[], [], []];
  const observe = (each: Observed): void => {
    if (each.what === 'follow') observed.push(each.action === 'close' ? each.reason : each.action);
  };
  streams = memberStreams({ most: MOST, observe });
  server = await serveHttp((request, response) => {
    const { lives, order = `order-${admitted.length}` } = request.headers;
    const about = { serviceOrderId: String(order), headers: {}, livesMs: Number(lives), onClose: () => {} };
    answers.push(response);
    admitted.push(streams.admit(response, about));
  });
});
afterEach(async () => {
  vi.useRealTimers();
  for (const { socket } of readers.splice(0)) socket.destroy();
  await server.stop();
  await until(() => streams.followed().size === 0);
});

/** Asks for a stream. */
function ask(livesMs: number, order?: string): Reader {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  const reader: Reader = { socket, text: '', isClosed: false };
  readers.push(reader);
  socket.on('data', (bytes) => void (reader.text += bytes.toString()));
  socket.on('error', () => {});
  socket.once('end', () => void (reader.isClosed = true));
  socket.write(
    `GET / HTTP/1.1\r\nHost: x\r\nLives: ${livesMs}\r\n${order === undefined ? '' : `Order: ${order}\r\n`}\r\n`,
  );
  return reader;
}

/** Has it opened. */
async function read(livesMs = 3_600_000, order?: string): Promise<{ reader: Reader; stream: MemberStream }> {
  const nth = admitted.length;
  const reader = ask(livesMs, order);
  await until(() => admitted.length > nth);
  const stream = admitted[nth];
  if (stream === undefined || typeof stream === 'string') throw new Error(stream);
  stream.write('data: first\n\n');
  await until(() => reader.text.includes('first'));
  return { reader, stream };
}

const beatsOf = ({ text }: Reader): number => text.split('\n').filter((line) => line === ':').length;
const isClosed = (reader: Reader): boolean => reader.isClosed;

it('streams that opened together send their heartbeats every twenty seconds at different times', async () => {
  const all: Reader[] = [];
  for (let i = 0; i < 20; i++) all.push((await read()).reader);
  const total = (): number => all.map(beatsOf).reduce((a, b) => a + b);
  await vi.advanceTimersByTimeAsync(10_000);
  await turn();
  await until(() => total() > 0);
  expect(total(), 'half of them').toBeLessThan(20);
  await vi.advanceTimersByTimeAsync(51_000);
  await until(() => all.every((reader) => beatsOf(reader) >= 2));
  expect(Math.max(...all.map(beatsOf))).toBeLessThanOrEqual(4);
  // A blank line after it would be an event without data to some clients.
  for (const { text } of all) for (const event of text.split('\n\n').slice(0, -1)) expect(event).toMatch(/^data: ./m);
});

it('a stream without a message is answered 200 after two seconds', async () => {
  const reader = ask(60_000);
  await until(() => admitted.length === 1);
  await vi.advanceTimersByTimeAsync(1_000);
  await turn();
  expect(reader.text).toBe('');
  await vi.advanceTimersByTimeAsync(2_000);
  await until(() => /^HTTP\/1.1 200 .*\r\n\r\nretry: \d{4}\n/s.test(reader.text));
});

it('a reader that takes no data is dropped when more data waits for it than one order can cause', async () => {
  const { reader, stream } = await read();
  reader.socket.pause();
  // The machine between them holds some megabytes first.
  for (let i = 0; i < 400 && !observed.includes('slow'); i++) {
    stream.write(`data: ${'x'.repeat(50_000)}\n\n`);
    await turn();
  }
  expect(observed).toEqual(['open', 'slow']);
  await until(() => streams.followed().size === 0);
});

it('a reader that has not taken its last message by the next heartbeat is dropped', async () => {
  const { reader, stream } = await read();
  reader.socket.pause();
  while (answers[0]?.req.socket.writableLength === 0) {
    stream.write(`data: ${'x'.repeat(30_000)}\n\n`);
    await turn();
  }
  expect(observed).toEqual(['open']);
  await vi.advanceTimersByTimeAsync(21_000);
  await until(() => observed.includes('slow'));
});

it('a stream ends when its token expires, or after about half an hour', async () => {
  const [short, long] = [await read(5_000), await read(24 * 3_600_000)];
  await vi.advanceTimersByTimeAsync(6_000);
  await until(() => isClosed(short.reader));
  expect(short.reader.text).toContain('event: expired\ndata: {}\n\n');
  await vi.advanceTimersByTimeAsync(26 * 60_000);
  expect(isClosed(long.reader)).toBe(false);
  await vi.advanceTimersByTimeAsync(8 * 60_000);
  await until(() => isClosed(long.reader));
  expect(long.reader.text).not.toContain('event:');
  await until(() => observed.length === 4);
  expect(observed).toEqual(['open', 'open', 'expired', 'aged']);
});

it('a drain ends streams one after another, with different retry times', async () => {
  const all: Reader[] = [];
  for (let i = 0; i < MOST; i++) all.push((await read()).reader);
  const draining = streams.drain(400);
  await until(() => all.some(isClosed));
  expect(all.filter(isClosed).length, 'at first').toBeLessThan(MOST / 2);
  await draining;
  await until(() => all.every(isClosed));
  const retries = all.map(({ text }) => [...text.matchAll(/retry: (\d+)\n/g)].map((found) => Number(found[1])));
  expect(retries.every((each) => each.length === 2 && each.every((ms) => ms >= 1_000 && ms <= 4_000))).toBe(true);
  expect(new Set(retries.map((each) => each[1])).size).toBeGreaterThan(MOST / 2);
  const { reader } = await read();
  await until(() => isClosed(reader));
});

it('a stream beyond the limit is refused until another reader leaves', async () => {
  const leaving = await read();
  for (let i = 1; i < MOST; i++) await read();
  await expect(read()).rejects.toThrow('too_many');
  leaving.reader.socket.destroy();
  await until(() => streams.followed().size === MOST - 1);
  await read();
  expect(streams.followed().size).toBe(MOST);
});

it('one order has at most twenty streams, and another order can still open a stream', async () => {
  const all: Awaited<ReturnType<typeof read>>[] = [];
  for (let i = 0; i < 20; i++) all.push(await read(60_000, 'shared'));
  await expect(read(60_000, 'shared')).rejects.toThrow('too_many_of_order');
  await read(60_000, 'another');
  all[0]?.reader.socket.destroy();
  await until(() => observed.includes('left'));
  await read(60_000, 'shared');
});
