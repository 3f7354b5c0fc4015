/** The module for a member's page, against a server that plays the protocol. Its clock is moved by hand. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { follow, type Options } from '../../packages/follow/follow.js';
import { serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { until } from '../../world/processes/until.ts';

const FOLDER = fileURLToPath(new URL('../../packages/follow/', import.meta.url));

type Play = (response: ServerResponse) => void;
type Asked = { url: string | undefined; token: string | undefined; behind: string | undefined; at: number };

let server: HttpServer;
let plays: Play[];
let asked: Asked[];
let told: unknown[];
/** Requests: those that are not over, and of them those without an answer yet. */
const requests = { open: 0, unanswered: 0 };
/** Bytes of streams that have reached the page. */
let heard = 0;
let stop: (() => void) | undefined;
const page = new EventTarget();

beforeAll(async () => {
  server = await serveHttp((request, response) => {
    const { authorization, 'last-event-id': behind } = request.headers;
    asked.push({ url: request.url, token: authorization, behind: behind as string | undefined, at: Date.now() });
    requests.open += 1;
    response.once('close', () => (requests.open -= 1));
    (plays.length > 1 ? plays.shift() : plays[0])?.(response);
  });
});
afterAll(() => server.stop());

beforeEach(() => {
  [plays, asked, told] = [[], [], []];
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  vi.spyOn(Math, 'random').mockReturnValue(1);
  vi.spyOn(console, 'error').mockReturnValue();
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', async (...about: Parameters<typeof fetch>) => {
    requests.unanswered += 1;
    const answer = await fetch(...about).finally(() => (requests.unanswered -= 1));
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        heard += chunk.length;
        controller.enqueue(chunk);
      },
    });
    return answer.body === null ? answer : new Response(answer.body.pipeThrough(counting), answer);
  });
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
});
afterEach(async () => {
  stop?.();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  await until(() => requests.open === 0);
});

/** Follows an order whose connections go like this, one after the other; the last one goes on. */
function begin(connections: Play[], options: Partial<Options> = {}): void {
  plays = connections;
  stop = follow({
    url: `${server.url}/follow`,
    token: () => 'one',
    onUpdate: ({ sequence, memberState }, kind) => told.push([kind, sequence, memberState]),
    onState: (state) => told.push(state),
    ...options,
  });
}

/** Sends bytes on a stream, and waits until they are there. */
async function send(response: ServerResponse | undefined, bytes: string | Buffer): Promise<void> {
  const before = heard;
  response?.write(bytes);
  await until(() => heard >= before + bytes.length);
}

/** Waits a little for what is answered at each moment. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    await vi.advanceTimersByTimeAsync(250);
    for (let turns = 0; requests.unanswered > 0 && turns < 5; turns += 1) await sleep(1);
  }
  await sleep(10);
}
const untilAsked = (times: number): Promise<unknown> => until(() => asked.length >= times);
const untilTold = (times: number): Promise<unknown> => until(() => told.length >= times);

const event = (name: string, sequence: number, memberState = 'preparing'): string =>
  `id: ${sequence}\nevent: ${name}\ndata: ${JSON.stringify({ sequence, memberState })}\n\n`;
const snapshot = (sequence: number): string => event('snapshot', sequence);
const message = (sequence: number): string => event('orderStatusChanged', sequence);
const END = 'event: end\ndata: {"sequence":6}\n\n';
const EXPIRED = 'event: expired\ndata: {}\n\n';

const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
const saying =
  (...texts: string[]): Play =>
  (response) =>
    stream(response).write(texts.join(''));
const closing =
  (...texts: string[]): Play =>
  (response) =>
    stream(response).end(texts.join(''));
const refusing =
  (status: number, headers: Record<string, string> = {}): Play =>
  (response) =>
    response.writeHead(status, headers).end('{"error":"no"}');
const cutting: Play = (response) => response.destroy();

describe('the updates that the page gets', () => {
  const story = [
    '\uFEFFretry: 1000\n\n',
    ': a comment with event: end\n\n',
    'id: 1\nevent: snapshot\ndata: {"sequence":1,\ndata:"memberState":"placed"}\n\n',
    'event: gossip\ndata: not even JSON\n\ndata: nor this\n\nevent: end of nothing\n\n',
    'id:2\nevent:orderStatusChanged\ndata:{"sequence":2,"memberState":"käse 🧀 \u2028"}\n\n',
    'id\nwhatever\nevent: orderStatusChanged\ndata: {"sequence":3,"memberState":"picked_up"}\n\n',
    END,
  ].join('');

  it.each(['\n', '\r\n', '\r'])(
    'are the same for lines that end in %j, wherever the stream is cut into pieces',
    async (eol) => {
      const bytes = Buffer.from(story.replaceAll('\n', eol));
      const inPieces = (...pieces: Uint8Array[]): Response =>
        new Response(ReadableStream.from(pieces), { headers: { 'content-type': 'text/event-stream' } });
      const byBytes = [...bytes].map((byte) => Uint8Array.of(byte));
      const inTwo = [...bytes.keys()].map((at) => [bytes.subarray(0, at), bytes.subarray(at)]);
      for (const pieces of [byBytes, ...inTwo]) {
        told = [];
        vi.stubGlobal('fetch', async () => inPieces(...pieces));
        // A lone CR is taken for a line's end by what follows it.
        begin([], { onState: (state) => state === 'ended' && told.push(state) });
        for (let turns = 0; turns < 2_000 && told.length < 3; turns += 1) await Promise.resolve();
        await new Promise(setImmediate);
        stop?.();
        expect(told.filter((each) => each !== 'ended')).toEqual([
          ['snapshot', 1, 'placed'],
          ['message', 2, 'käse 🧀 \u2028'],
          ['message', 3, 'picked_up'],
        ]);
        if (eol !== '\r') expect(told.at(-1)).toBe('ended');
      }
    },
  );

  it('continue after the last complete update, wherever the connection is cut', async () => {
    const text = Buffer.from(event('orderStatusChanged', 2, 'käse'));
    const cuts = ['id: 2', 'event: order', 'k\xc3', '"}', '"}\n'].map(
      (until) => text.indexOf(Buffer.from(until, 'latin1')) + until.length,
    );
    for (const at of cuts) {
      [asked, told] = [[], []];
      let response: ServerResponse | undefined;
      begin([
        (each) => (response = stream(each)).write(`retry: 100\n\n${snapshot(1)}`),
        saying(text.toString(), message(3)),
      ]);
      await untilTold(2);
      await send(response, text.subarray(0, at));
      response?.destroy();
      await pass(500);
      await untilTold(4);
      stop?.();
      expect(told, `${at}`).toEqual([
        'connected',
        ['snapshot', 1, 'preparing'],
        ['message', 2, 'käse'],
        ['message', 3, 'preparing'],
      ]);
      expect(asked.map(({ behind }) => behind)).toEqual([undefined, '1']);
    }
  });

  it('come once for each sequence number, without older snapshots', async () => {
    begin([saying(snapshot(0), message(1), message(1), snapshot(1), snapshot(4), message(3), message(5), snapshot(5))]);
    await untilTold(5);
    await pass(250);
    expect(told).toEqual([
      'connected',
      ['snapshot', 0, 'preparing'],
      ['message', 1, 'preparing'],
      ['snapshot', 4, 'preparing'],
      ['message', 5, 'preparing'],
    ]);
  });

  it('continue after a callback that throws or rejects, which is reported on the console', async () => {
    const seen: number[] = [];
    begin([saying(snapshot(1), message(2), END)], {
      onUpdate({ sequence }) {
        seen.push(sequence);
        if (sequence === 1) throw new Error('broken page');
        return Promise.reject(new Error('broken later'));
      },
      onState(state) {
        told.push(state);
        throw new Error('broken light');
      },
    });
    await untilTold(2);
    expect(seen).toEqual([1, 2]);
    expect(told).toEqual(['connected', 'ended']);
    await until(() => vi.mocked(console.error).mock.calls.length === 4);
  });

  it('end when the page stops the stream, even if more updates have already arrived', async () => {
    begin([saying(snapshot(1), message(2), EXPIRED, END)], {
      onUpdate({ sequence }) {
        told.push(sequence);
        stop?.();
      },
    });
    await until(() => told.length === 2 && requests.open === 0);
    page.dispatchEvent(new Event('online'));
    await pass(60_000);
    expect(told).toEqual(['connected', 1]);
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['the event `end`', saying(snapshot(6), END, message(7))],
    ['an answer 204', refusing(204)],
  ])('stop after %s: the page gets `ended`, and sends no more requests', async (_, play) => {
    begin([play]);
    await until(() => told.at(-1) === 'ended' && requests.open === 0);
    page.dispatchEvent(new Event('online'));
    await pass(90_000);
    expect(told.filter((each) => Array.isArray(each) && each[1] === 7)).toEqual([]);
    expect(asked).toHaveLength(1);
  });
});

describe("the client's token", () => {
  it('is sent in a header, never in the URL, and kept after a cut', async () => {
    const token = vi.fn<() => string>(() => 'one');
    begin([closing(snapshot(1)), saying(message(2))], { token });
    await untilAsked(1);
    await pass(2_500);
    await untilTold(3);
    expect(asked.map(({ url, token }) => [url, token])).toEqual([
      ['/follow', 'Bearer one'],
      ['/follow', 'Bearer one'],
    ]);
    expect(token).toHaveBeenCalledOnce();
  });

  it('is replaced within a second when it expires, and no update is missing', async () => {
    const tokens = ['one', 'two'];
    begin([saying(snapshot(1), EXPIRED), saying(message(2))], { token: async () => String(tokens.shift()) });
    await untilAsked(1);
    await pass(1_000);
    await untilTold(3);
    expect(told).toEqual(['connected', ['snapshot', 1, 'preparing'], ['message', 2, 'preparing']]);
    expect(asked.map(({ token, behind }) => [token, behind])).toEqual([
      ['Bearer one', undefined],
      ['Bearer two', '1'],
    ]);
  });

  it('is replaced when it is refused, with growing pauses if all tokens are refused', async () => {
    let given = 0;
    begin([refusing(401)], { token: () => String((given += 1)) });
    await pass(600_000);
    expect(given).toBe(asked.length);
    expect(given).toBeGreaterThan(10);
    expect(given).toBeLessThan(17);
    expect(new Set(asked.map(({ token }) => token)).size).toBe(given);
    expect(told).toEqual(['late']);
  });

  it('is requested again after a pause if the platform gives no token', async () => {
    let given = 0;
    begin([saying(snapshot(1))], {
      token() {
        given += 1;
        if (given === 1) throw new Error('the platform is away');
        return given === 2 ? Promise.reject(new Error('still away')) : 'one';
      },
    });
    await pass(1_500);
    expect(given).toBe(1);
    await pass(1_000);
    expect(given).toBe(2);
    await pass(4_000);
    await untilTold(3);
    expect(told).toEqual(['late', 'connected', ['snapshot', 1, 'preparing']]);
  });
});

describe("the client's connection", () => {
  it('is opened again after the pause that the service asks for, and the page gets no message', async () => {
    begin([closing('retry: 3000\n\n', snapshot(1)), saying(message(2))]);
    await untilTold(2);
    await pass(2_750);
    expect(asked).toHaveLength(1);
    await pass(500);
    await untilTold(3);
    expect(told).toEqual(['connected', ['snapshot', 1, 'preparing'], ['message', 2, 'preparing']]);
  });

  it('that cannot be restored causes `late` after 5 s', async () => {
    begin([closing(snapshot(1)), cutting, cutting, cutting, closing(message(2)), saying(message(3))]);
    await untilTold(2);
    await pass(4_750);
    expect(told).toHaveLength(2);
    await pass(500);
    expect(told.at(-1)).toBe('late');
    await pass(30_000);
    await untilTold(6);
    const [before = 0, after = 0] = asked.slice(-2).map(({ at }) => at);
    expect(after - before).toBeLessThan(3_000);
  });

  it('that cannot be opened is tried after growing pauses of up to a minute, and the page gets `late` after 5 s', async () => {
    begin([cutting]);
    await pass(4_750);
    expect(told).toEqual([]);
    await pass(500);
    expect(told).toEqual(['late']);
    await pass(300_000);
    const pauses = asked.slice(1).map(({ at }, nth) => Math.round((at - Number(asked[nth]?.at)) / 1_000));
    expect(pauses.slice(0, 8)).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it.each(['online', 'visibilitychange'])('is tried at once when the page gets the event %s', async (name) => {
    begin([cutting]);
    await pass(40_000);
    plays = [saying(snapshot(1))];
    const before = asked.length;
    page.dispatchEvent(new Event(name));
    await pass(250);
    await untilTold(3);
    expect(asked).toHaveLength(before + 1);
    // And one that is there stays.
    page.dispatchEvent(new Event(name));
    await pass(5_000);
    expect(asked).toHaveLength(before + 1);
  });

  it('is replaced after 45 s of silence, and the page gets `late`; a heartbeat prevents both', async () => {
    let response: ServerResponse | undefined;
    begin([(each) => (response = stream(each)).write(snapshot(1)), saying(message(2))]);
    await untilTold(2);
    await pass(40_000);
    await send(response, ':\n\n');
    await pass(44_000);
    expect(told).toHaveLength(2);
    expect(asked).toHaveLength(1);
    await pass(3_500);
    await untilTold(5);
    expect(told.slice(2)).toEqual(['late', 'connected', ['message', 2, 'preparing']]);
    expect(asked).toHaveLength(2);
  });

  it('is replaced if the service does not answer within 45 s', async () => {
    begin([() => {}, saying(snapshot(1))]);
    await pass(44_000);
    expect(asked).toHaveLength(1);
    await pass(3_500);
    await untilTold(3);
    expect(told).toEqual(['late', 'connected', ['snapshot', 1, 'preparing']]);
  });

  it('that is refused with 503 is tried again after Retry-After', async () => {
    begin([refusing(503, { 'retry-after': '20' }), saying(snapshot(1))]);
    await pass(20_000);
    expect(asked).toHaveLength(1);
    await pass(10_500);
    await untilTold(3);
  });

  it('that is answered with HTML counts as failed', async () => {
    begin([(response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Log in</h1>')]);
    await pass(60_000);
    expect(told).toEqual(['late']);
    expect(asked.length).toBeLessThan(7);
  });
});

describe("the client's module", () => {
  it('is under 3,000 bytes without a build, and imports nothing', () => {
    const text = readFileSync(join(FOLDER, 'follow.js'));
    expect(text.length).toBeLessThan(3_000);
    expect(text.toString()).not.toMatch(/\bimport\b/);
  });

  it('has the types of its .d.ts file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'follow-types-'));
    try {
      // TypeScript does not read a module that has a .d.ts next to it.
      copyFileSync(join(FOLDER, 'follow.js'), join(folder, 'module.js'));
      copyFileSync(join(FOLDER, 'follow.d.ts'), join(folder, 'types.d.ts'));
      writeFileSync(
        join(folder, 'check.ts'),
        `import { follow } from './module.js';
         import type { follow as Said, Options } from './types.js';
         export const same: typeof Said = follow;
         type Takes = Parameters<typeof follow>[0];
         const all: Record<keyof Takes, true> = {} as Record<keyof Options, true>;
         const none: Record<keyof Options, true> = {} as Record<keyof Takes, true>;
         export { all, none };`,
      );
      const tsc = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));
      const options = '--noEmit --allowJs --strict --noImplicitAny false --target es2022 --lib es2022,dom';
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [tsc, ...options.split(' '), '--module', 'nodenext', 'check.ts'],
        { cwd: folder },
      ).catch((error: { stdout: string }) => error);
      expect(stdout).toBe('');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
