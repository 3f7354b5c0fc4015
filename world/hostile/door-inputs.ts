import { brotliCompressSync, gzipSync } from 'node:zlib';
import {
  MARKER,
  NO_ENDPOINT,
  REFUSED,
  UNREADABLE,
  chunked,
  toPush,
  toWebhook,
  type Door,
  type Expected,
  type HostileInput,
} from './hostile-input.ts';

/** Bodies by the way they come, whatever is in them; heads, and how they say where the body ends. */
export function doorInputs(door: Door): HostileInput[] {
  const inputs = [sizes, breakingOff, compressed, endless, slow, framing, heads];
  return inputs.flatMap((make) => make(door));
}

function sizes({ to, good, junk, limit, oversized, uninvited }: Door): HostileInput[] {
  // Of a refused body the return door reads this much, so that its sender gets to the answer; the other door nothing.
  const discarded = to === toPush ? 16_384 : limit;
  const at = to('bodies from 0 bytes to 20 MB');
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
      const right = good(`size-${size}`);
      const padded = right.body.padEnd(size, ' ');
      const atStart = at(`${size} bytes that are right at the start`, over ? expected : right.expected, {
        body: padded,
      });
      const refused: Expected = { status: 401, ...(size > discarded && { orCut: true }) };
      return [
        at(`${size} bytes`, expected, { body: text }),
        at(`${size} bytes in one chunk`, expected, { body: text, length: 'chunked' }),
        ...(padded.length === size ? [atStart] : []),
        at(`${size} bytes of somebody unknown`, refused, { ...uninvited, body: text }),
      ];
    });
}

function breakingOff({ to, path, good, interrupted }: Door): HostileInput[] {
  const at = to('bodies and heads that break off');
  const { body } = good('broken-off');
  const inChunks = chunked([Buffer.from(body.slice(0, 9)), Buffer.from(body.slice(9))]);
  const start = to === toPush ? 'POST /pu'.length : 1;
  const head = `POST ${path}${to === toPush ? '' : '?token=x'} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n`;
  const pace = { afterwards: 'half-close' } as const;
  return [
    ...[1, 1_000, 2 ** 31, 2 ** 53].flatMap((missing) => {
      const request = { body, length: body.length + missing };
      const left = { ...request, wire: body.slice(1), pace: { afterwards: 'leave' } } as const;
      return [
        at(`${missing} bytes missing, half closed`, interrupted, { ...request, pace }),
        at(`${missing} bytes missing, left`, { status: 'none' }, left),
      ];
    }),
    ...every(9, inChunks.length).map((end) => {
      const wire = inChunks.subarray(0, end);
      return at(`${end} of the bytes in chunks`, interrupted, { body, length: 'chunked', wire, pace });
    }),
    ...every(9, head.length - start).map((end) =>
      at(`${start + end} bytes of the head`, UNREADABLE, { raw: head.slice(0, start + end), pace }),
    ),
  ];
}

function every(step: number, length: number): number[] {
  return Array.from({ length: Math.ceil(length / step) }, (_, nth) => nth * step);
}

function compressed({ to, usual, good, junk }: Door): HostileInput[] {
  const at = to('compressed bodies, bombs among them');
  const coded = (coding: string): string[] => [...usual, `Content-Encoding: ${coding}`];
  const json = Buffer.from(good('compressed').body);
  const coders: [string, (bytes: Buffer) => Buffer][] = [
    ['gzip', (bytes) => gzipSync(bytes, { level: 1 })],
    ['br', (bytes) => brotliCompressSync(bytes, { params: { 1: 1 } })],
  ];
  return [
    ...coders.flatMap(([name, pack]) => {
      const bodies: [string, Buffer][] = [
        ['20 MB of zeros', pack(Buffer.alloc(20_000_000))],
        ['what would be right', pack(json)],
        ['half of it', pack(json).subarray(0, -8)],
        ['nothing', pack(Buffer.alloc(0))],
      ];
      const lines = coded(name);
      return bodies.flatMap(([what, body]) => [
        at(`${name}: ${what}`, junk(body), { body, lines }),
        at(`${name}, not said: ${what}`, junk(body), { body }),
        at(`${name} in a chunk: ${what}`, junk(body), { body, length: 'chunked', lines }),
      ]);
    }),
    ...['gzip', 'gzip, gzip', 'identity', '', '__proto__'].map((coding) => {
      const { body, expected } = good(`coding-${coding.replaceAll(/\W/g, '_')}`);
      return at(`"${coding}" of what is not packed`, expected, { body, lines: coded(coding) });
    }),
  ];
}

function endless({ to, oversized, uninvited }: Door): HostileInput[] {
  const at = to('bodies without end');
  return (to === toPush ? ['64 KiB'] : ['64 KiB', '4 bytes']).flatMap((name) => {
    const piece = name === '64 KiB' ? Buffer.alloc(65_536, 'x') : Buffer.from('1234');
    // Small ones are sent by the hundred, or the sender would be the slow one.
    const many = Array.from({ length: Math.max(1, Math.floor(65_536 / (piece.length + 8))) }, () => piece);
    const first = `{"endless":"${name}${MARKER}`;
    const body = first + piece.toString().repeat(Math.ceil(65_536 / piece.length));
    const inChunks = {
      length: 'chunked',
      wire: chunked([Buffer.from(first)], ''),
      pace: { flood: chunked(many, '') },
    } as const;
    const long = { body: `${body}!`, length: 1e12, wire: first, pace: { flood: Buffer.concat(many) } };
    return [
      at(`chunks of ${name}`, { ...oversized, orCut: true }, { ...inChunks, body }),
      at(`chunks of ${name}, of somebody unknown`, { status: 401, orCut: true }, { ...uninvited, ...inChunks }),
      at(`a length of 1 TB, ${name} at a time`, { ...oversized, orCut: true }, long),
    ];
  });
}

/** The service cuts a request off after 15 s. */
function slow({ to, path, usual, good, interrupted, uninvited }: Door): HostileInput[] {
  const at = to('slow heads and bodies');
  const { body } = good('stalled');
  const second = { bytes: 1, everyMs: 500 };
  const length = 'chunked';
  const cut: [string, Parameters<typeof at>[2]][] = [
    ['a body that does not come', { body, wire: '' }],
    ['a chunk that does not come', { lines: [...usual, 'X: slow'], length, wire: '' }],
    ['a body, letter by letter', { body: 'x'.repeat(100), pace: { dribble: { ...second, of: 'body' } } }],
    ['half a chunk', { length, wire: '5\r\nab' }],
    ['trailers that do not end', { length, wire: chunked([Buffer.from(body)], '0\r\nX: y\r\n') }],
  ];
  const noHead: [string, string][] = [
    ['a head without its end', `POST ${path} HTTP/1.1\r\nHost: slow\r\n`],
    ['half a word', to === toPush ? 'PU' : 'OPTI'],
    ['a head, letter by letter', `POST ${path} HTTP/1.1\r\nX: ${MARKER.repeat(20)}`],
    ...(to === toPush ? [] : [['silence', ''] as [string, string]]),
  ];
  return [
    ...[1, 16].map((bytes) => {
      const { body, expected } = good(`dribbled-${bytes}`);
      const pace = { dribble: { bytes, everyMs: bytes < 5 ? 1 : 10 } };
      return at(`${bytes} bytes at a time`, expected, { body, pace });
    }),
    ...cut.map(([name, request]) => at(name, interrupted, { ...request, slow: true })),
    ...noHead.map(([name, raw]) =>
      at(name, UNREADABLE, { raw, slow: true, pace: name.endsWith('letter') ? { dribble: second } : {} }),
    ),
    at('a body that does not come, of somebody unknown', REFUSED, { ...uninvited, body, wire: '' }),
  ];
}

function framing({ to, usual, good, junk, interrupted, uninvited }: Door): HostileInput[] {
  const at = to('lengths and chunks that contradict');
  const abc = (lines: string[], expected: Expected, wire = 'abc'): HostileInput =>
    at(lines.join(' and '), expected, { body: 'abc', lines: [...usual, ...lines], length: null, wire });
  const codings: [string, Expected][] = [
    // Those that say chunked before something else are refused with the head; the others when there is no end to find.
    ...['gzip', 'xchunked', 'identity'].map((coding): [string, Expected] => [`: ${coding}`, interrupted]),
    ...['chunked, gzip', 'chunked, chunked'].map((coding): [string, Expected] => [`: ${coding}`, UNREADABLE]),
    ...['CHUNKED', 'gzip, chunked'].map((coding): [string, Expected] => [`: ${coding}`, junk('abc')]),
    [' : chunked', UNREADABLE],
  ];
  const wires: [string, Expected][] = [
    ['3;a=b\r\nabc\r\n0\r\n\r\n', junk('abc')],
    ['1\r\na\r\n2\r\nbc\r\n000\r\n\r\n', junk('abc')],
    ['3\r\nabc\r\n0\r\nAuthorization: x\r\nContent-Type: y\r\n\r\n', junk('abc')],
    ['3\r\nabc\r\n0\r\nContent-Length: 7\r\n\r\n', interrupted],
    [`3\r\nabc\r\n0\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`, interrupted],
    ['zz\r\n', interrupted],
    ['fffffffffffffffff\r\nabc\r\n0\r\n\r\n', interrupted],
    [`3;a=${'x'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n`, interrupted],
    ['3\r\nabc0\r\n\r\n', interrupted],
  ];
  const { body: right, expected: taken } = good('framed');
  return [
    ...wires.map(([wire, expected]) =>
      at(JSON.stringify(wire.slice(0, 40)), expected, { body: 'abc', length: 'chunked', wire }),
    ),
    // The token is judged by Postgres, so what comes in the same packet is read first; at the other door either may be.
    ...(to === toWebhook ? wires : [])
      .filter(([, expected], nth) => expected === interrupted && nth % 3 === 0)
      .map(([wire]) => {
        const name = `${JSON.stringify(wire.slice(0, 40))} of somebody unknown`;
        return at(name, interrupted, { ...uninvited, length: 'chunked', wire });
      }),
    ...[1, 64].map((step) => {
      const { body, expected } = good(`in-chunks-${step}`);
      const pieces = body.match(new RegExp(`.{1,${step}}`, 'g')) ?? [];
      const wire = chunked(pieces.map((piece) => Buffer.from(piece)));
      return at(`chunks of ${step}`, expected, { body, length: 'chunked', wire });
    }),
    ...[
      ['Content-Length: 3', 'Content-Length: 4'],
      ['Content-Length: -3'],
      ['Content-Length: 99999999999999999999999'],
      ['Content-Length : 3'],
      ['Content-Length: 3', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: identity', 'Content-Length: 3'],
    ].map((lines) => abc(lines, UNREADABLE)),
    ...codings.map(([coding, expected]) => abc([`Transfer-Encoding${coding}`], expected, '3\r\nabc\r\n0\r\n\r\n')),
    at('a line end behind the body', taken, { body: right, wire: `${right}\r\n` }),
  ];
}

function heads({ to, usual, good, uninvited }: Door): HostileInput[] {
  const at = to('heads');
  const withLine = (name: string, line: string, expected?: Expected): HostileInput => {
    const { body, expected: right } = good(`head-${name.replaceAll(/[^\w-]/g, '_')}`);
    return at(name, expected ?? right, { body, lines: [...usual, line] });
  };
  const many = (length: number): string => Array.from({ length }, (_, nth) => `a${nth}: b`).join('\r\n');
  const taken = [
    '__proto__: x',
    'X:',
    'X: ÿþ\x80',
    'Connection: Upgrade\r\nUpgrade: websocket',
    'Expect: 100-continue',
    'Expect: a-miracle',
    'Host: evil',
    'Host: a\r\nHost: b',
    'Keep-Alive: timeout=999999',
    'X-Forwarded-For: 127.0.0.1',
    'X-Original-URL: /healthz',
    `X: ${'x'.repeat(8_000)}`,
    many(900),
  ];
  const { body } = good('as-it-should-be');
  const noHttp = [
    // TLS.
    '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '{"eventType":"ping"}',
    'POST  HTTP/1.1\r\n\r\n',
    'POST / HTTP/1.1\nHost: x\n\n',
  ];
  return [
    ...['X: a\0b', 'X: a\nb', 'no colon', 'a : b', 'X: a\r\n folded'].map((line) =>
      withLine(`unreadable: ${JSON.stringify(line)}`, line, UNREADABLE),
    ),
    ...taken.map((line, nth) => withLine(`${nth} ${line.slice(0, 30)}`, line)),
    ...[`X: ${'x'.repeat(20_000)}`, `${'x'.repeat(20_000)}: x`, many(5_000)].map((line, nth) =>
      withLine(`too long: ${nth}`, line, REFUSED),
    ),
    ...['HTTP/3.0', 'http/1.1', ''].map((version) => at(`the version "${version}"`, UNREADABLE, { body, version })),
    ...['HTTP/1.0', 'HTTP/2.0'].map((version) => {
      const { body, expected } = good(`version-${version.replaceAll(/\W/g, '_')}`);
      return at(`the version "${version}"`, expected, { body, version });
    }),
    ...['post', 'P OST', '\0POST'].map((method) => at(`the method "${method}"`, UNREADABLE, { body, method })),
    ...['GET', 'PUT', 'OPTIONS', 'TRACE'].map((method) =>
      at(`the method ${method}, which no door has`, NO_ENDPOINT, { body, method }),
    ),
    at('no head to speak of', REFUSED, { ...uninvited, lines: [], body }),
    ...(to === toWebhook ? noHttp : []).map((raw, nth) =>
      to('no HTTP')(`${nth} ${JSON.stringify(raw.slice(0, 20))}`, UNREADABLE, { raw }),
    ),
  ];
}
