import { brotliCompressSync, gzipSync } from 'node:zlib';
import { MIB, usualLines, type Door } from './endpoint.ts';
import {
  MARKER,
  chunked,
  toPush,
  toSocket,
  toWebhook,
  type Expected,
  type HostileInput,
  type Pace,
  type Request,
  type Say,
} from './hostile-input.ts';

/** Bodies by the way they come, whatever is in them. */
export function bodyInputs(door: Door): HostileInput[] {
  return [...sizes(door), ...breakingOff(door), ...compressed(door), ...endless(door), ...slow(door)];
}

function sizes({ to, good, junk, limit, oversized, uninvited }: Door): HostileInput[] {
  // Of a refused body the return door reads this much, so that its sender gets to the answer; the other door nothing.
  const discarded = to === toPush ? 16_384 : limit;
  const kind = 'bodies from 0 bytes to 20 MB';
  const small = [0, 1, 64, 1_000, 16_384, 65_535, 65_536, 65_537, 500_000];
  const around = [limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 1];
  return [...small, ...around, 20_000_000]
    .filter((size) => size <= 20_000_000)
    .flatMap((size) => {
      const over = size > limit;
      // More than we read of it: whether the answer is seen depends on who is faster.
      const orCut = size > 2 * limit;
      const text = `${MARKER} ${size} `.repeat(Math.ceil(size / 8) + 1).slice(0, size);
      const expected = over ? { ...oversized, ...(orCut && { orCut }) } : junk(text);
      const { body, expected: right } = good(`size-${size}`);
      const padded = body.padEnd(size, ' ');
      return [
        to(kind, `${size} bytes`, { body: text }, { expected }),
        to(kind, `${size} bytes in one chunk`, { body: text, length: 'chunked' }, { expected }),
        ...(padded.length === size
          ? [
              to(
                kind,
                `${size} bytes that are right at the start`,
                { body: padded },
                { expected: over ? expected : right },
              ),
            ]
          : []),
        to(
          kind,
          `${size} bytes of somebody unknown`,
          { ...uninvited, body: text },
          { expected: { status: 401, ...(size > discarded && { orCut: true }) } },
        ),
      ];
    });
}

function breakingOff({ to, good, interrupted }: Door): HostileInput[] {
  const kind = 'bodies and heads that break off';
  const { body } = good('broken-off');
  const inChunks = chunked([Buffer.from(body.slice(0, 9)), Buffer.from(body.slice(9))]);
  const path = to === toPush ? 'pubsub/push' : 'webhook/standard/club?token=x';
  const start = to === toPush ? 'POST /pu'.length : 1;
  const head = `POST /${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n`;
  return [
    ...[1, 1_000, 2 ** 31, 2 ** 53].flatMap((missing) => {
      const request = { body, length: body.length + missing };
      return [
        to(kind, `${missing} bytes missing, half closed`, request, {
          expected: interrupted,
          pace: { afterwards: 'half-close' },
        }),
        to(
          kind,
          `${missing} bytes missing, left`,
          { ...request, wire: Buffer.from(body.slice(1)) },
          { expected: { status: 'none' }, pace: { afterwards: 'leave' } },
        ),
      ];
    }),
    ...every(9, inChunks.length).map((at) =>
      to(
        kind,
        `${at} of the bytes in chunks`,
        { body, length: 'chunked', wire: inChunks.subarray(0, at) },
        { expected: interrupted, pace: { afterwards: 'half-close' } },
      ),
    ),
    ...every(9, head.length - start).map((at) =>
      toSocket(kind, `${start + at} bytes of the head`, head.slice(0, start + at), {
        expected: { status: 500 },
        pace: { afterwards: 'half-close' },
      }),
    ),
  ];
}

function every(step: number, length: number): number[] {
  return Array.from({ length: Math.ceil(length / step) }, (_, nth) => nth * step);
}

function compressed({ to, good, junk }: Door): HostileInput[] {
  const kind = 'compressed bodies, bombs among them';
  const zeros = Buffer.alloc(20_000_000);
  const json = Buffer.from(good('compressed').body);
  const coders: [string, (bytes: Buffer) => Buffer][] = [
    ['gzip', (bytes) => gzipSync(bytes, { level: 1 })],
    ['br', (bytes) => brotliCompressSync(bytes, { params: { 1: 1 } })],
  ];
  return [
    ...coders.flatMap(([name, pack]) => {
      const bodies: [string, Buffer][] = [
        ['20 MB of zeros', pack(zeros)],
        ['what would be right', pack(json)],
        ['half of it', pack(json).subarray(0, -8)],
        ['nothing', pack(Buffer.alloc(0))],
      ];
      return bodies.flatMap(([what, body]) => [
        to(
          kind,
          `${name}: ${what}`,
          { body, lines: [...usualLines(to), `Content-Encoding: ${name}`] },
          { expected: junk(body) },
        ),
        to(kind, `${name}, not said: ${what}`, { body }, { expected: junk(body) }),
        to(
          kind,
          `${name} in a chunk: ${what}`,
          { body, length: 'chunked', lines: [...usualLines(to), `Content-Encoding: ${name}`] },
          { expected: junk(body) },
        ),
      ]);
    }),
    ...['gzip', 'gzip, gzip', 'identity', '', '__proto__'].map((coding) => {
      const { body, expected } = good(`coding-${coding.replaceAll(/\W/g, '_')}`);
      return to(
        kind,
        `"${coding}" of what is not packed`,
        { body, lines: [...usualLines(to), `Content-Encoding: ${coding}`] },
        { expected },
      );
    }),
  ];
}

function endless({ to, limit, oversized, uninvited }: Door): HostileInput[] {
  const kind = 'bodies without end';
  const pieces: [string, Buffer][] = [
    ['64 KiB', Buffer.alloc(65_536, 'x')],
    ...(limit === MIB ? ([['4 bytes', Buffer.from('1234')]] as [string, Buffer][]) : []),
  ];
  return pieces.flatMap(([name, piece]) => {
    // Small ones are sent by the hundred, or the sender would be the slow one.
    const times = Math.max(1, Math.floor(65_536 / (piece.length + 8)));
    const many = Array.from({ length: times }, () => piece);
    const first = Buffer.from(`{"endless":"${name}${MARKER}`);
    const body = Buffer.concat([
      first,
      ...Array.from({ length: Math.ceil(65_536 / piece.length) }, () => piece),
    ]).toString('latin1');
    const pace: Pace = { flood: chunked(many, '') };
    const expected: Expected = { ...oversized, orCut: true };
    return [
      to(kind, `chunks of ${name}`, { body, length: 'chunked', wire: chunked([first], '') }, { expected, pace }),
      to(
        kind,
        `chunks of ${name}, of somebody unknown`,
        { ...uninvited, length: 'chunked', wire: chunked([first], '') },
        { expected: { status: 401, orCut: true }, pace },
      ),
      to(
        kind,
        `a length of 1 TB, ${name} at a time`,
        { body: `${body}!`, length: 1e12, wire: first },
        { expected, pace: { flood: Buffer.concat(many) } },
      ),
    ];
  });
}

/** The service cuts a request off after 15 s. */
function slow({ to, good, interrupted, uninvited }: Door): HostileInput[] {
  const kind = 'slow heads and bodies';
  const dribbled = [1, 16].map((bytes) => {
    const { body, expected } = good(`dribbled-${bytes}`);
    return to(
      kind,
      `${bytes} bytes at a time`,
      { body },
      { expected, pace: { dribble: { bytes, everyMs: bytes < 5 ? 1 : 10 } } },
    );
  });
  const { body } = good('stalled');
  const cut = (name: string, request: Request, expected: Expected, pace: Pace = {}): HostileInput =>
    to(kind, name, request, { expected, pace, slow: true });
  const noHead = (name: string, say: Say, pace: Pace = {}): HostileInput =>
    toSocket(kind, name, say, { expected: { status: 500 }, pace, slow: true });
  const second = { dribble: { bytes: 1, everyMs: 500 } };
  const path = to === toPush ? '/pubsub/push' : '/webhook/standard/club';
  return [
    ...dribbled,
    cut('a body that does not come', { body, length: body.length, wire: Buffer.alloc(0) }, interrupted),
    cut(
      'a chunk that does not come',
      { lines: [...usualLines(to), 'X: slow'], length: 'chunked', wire: Buffer.alloc(0) },
      interrupted,
    ),
    cut('a body, letter by letter', { body: 'x'.repeat(100) }, interrupted, {
      dribble: { bytes: 1, everyMs: 500, of: 'body' },
    }),
    cut('half a chunk', { length: 'chunked', wire: Buffer.from('5\r\nab') }, interrupted),
    cut(
      'trailers that do not end',
      { length: 'chunked', wire: chunked([Buffer.from(body)], '0\r\nX: y\r\n') },
      interrupted,
    ),
    noHead('a head without its end', `POST ${path} HTTP/1.1\r\nHost: slow\r\n`),
    noHead('half a word', path === '/pubsub/push' ? 'PU' : 'OPTI'),
    noHead('a head, letter by letter', `POST ${path} HTTP/1.1\r\nX: ${MARKER.repeat(20)}`, second),
    ...(to === toWebhook ? [noHead('silence', '')] : []),
    to(
      kind,
      'a body that does not come, of somebody unknown',
      { ...uninvited, body, wire: Buffer.alloc(0) },
      { expected: { status: 401 } },
    ),
  ];
}
