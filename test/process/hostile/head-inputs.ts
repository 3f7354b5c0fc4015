import type { Door } from './endpoint.ts';
import {
  NO_ENDPOINT,
  REFUSED,
  UNREADABLE,
  chunked,
  toWebhook,
  type Expected,
  type HostileInput,
} from './hostile-input.ts';

/** Heads, and how they say where the body ends. */
export function headInputs(door: Door): HostileInput[] {
  return [...framing(door), ...heads(door)];
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
