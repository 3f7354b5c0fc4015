import { usualLines, type Door } from './endpoint.ts';
import { chunked, toSocket, toWebhook, type Expected, type HostileInput } from './hostile-input.ts';

/** Heads, and how they say where the body ends. */
export function headInputs(door: Door): HostileInput[] {
  return [...framing(door), ...heads(door)];
}

function framing({ to, good, junk, interrupted, uninvited }: Door): HostileInput[] {
  const kind = 'lengths and chunks that contradict';
  const unreadable: Expected = { status: 500 };
  const abc = (name: string, lines: string[], expected: Expected, wire = 'abc'): HostileInput =>
    to(
      kind,
      name,
      { body: 'abc', lines: [...usualLines(to), ...lines], length: null, wire: Buffer.from(wire) },
      { expected },
    );
  const inChunks = '3\r\nabc\r\n0\r\n\r\n';
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
  const right = good('framed').body;
  return [
    ...wires.map(([wire, expected]) =>
      to(
        kind,
        JSON.stringify(wire.slice(0, 40)),
        { body: 'abc', length: 'chunked', wire: Buffer.from(wire) },
        { expected },
      ),
    ),
    // The token is judged by Postgres, so what comes in the same packet is read first; at the other door either may be.
    ...(to === toWebhook ? wires : [])
      .filter(([, expected], nth) => expected === interrupted && nth % 3 === 0)
      .map(([wire]) =>
        to(
          kind,
          `${JSON.stringify(wire.slice(0, 40))} of somebody unknown`,
          { ...uninvited, length: 'chunked', wire: Buffer.from(wire) },
          { expected: interrupted },
        ),
      ),
    ...[1, 64].map((step) => {
      const { body, expected } = good(`in-chunks-${step}`);
      const pieces = Array.from({ length: Math.ceil(body.length / step) }, (_, at) =>
        Buffer.from(body.slice(at * step, (at + 1) * step)),
      );
      return to(kind, `chunks of ${step}`, { body, length: 'chunked', wire: chunked(pieces) }, { expected });
    }),
    ...[
      ['Content-Length: 3', 'Content-Length: 4'],
      ['Content-Length: -3'],
      ['Content-Length: 99999999999999999999999'],
      ['Content-Length : 3'],
      ['Content-Length: 3', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: identity', 'Content-Length: 3'],
    ].map((lines) => abc(lines.join(' and '), lines, unreadable)),
    // Those that say chunked before something else are refused with the head; the others when there is no end to find.
    ...['gzip', 'xchunked', 'identity'].map((coding) =>
      abc(`Transfer-Encoding: ${coding}`, [`Transfer-Encoding: ${coding}`], interrupted, inChunks),
    ),
    ...['chunked, gzip', 'chunked, chunked'].map((coding) =>
      abc(`Transfer-Encoding: ${coding}`, [`Transfer-Encoding: ${coding}`], unreadable, inChunks),
    ),
    ...['CHUNKED', 'gzip, chunked'].map((coding) =>
      abc(`Transfer-Encoding: ${coding}`, [`Transfer-Encoding: ${coding}`], junk('abc'), inChunks),
    ),
    abc('Transfer-Encoding : chunked', ['Transfer-Encoding : chunked'], unreadable, inChunks),
    to(
      kind,
      'a line end behind the body',
      { body: right, wire: Buffer.from(`${right}\r\n`) },
      { expected: good('framed').expected },
    ),
  ];
}

function heads({ to, good, uninvited }: Door): HostileInput[] {
  const kind = 'heads';
  const unreadable: Expected = { status: 500 };
  const withLine = (name: string, line: string, expected?: Expected): HostileInput => {
    const { body, expected: right } = good(`head-${name.replaceAll(/[^\w-]/g, '_')}`);
    const lines = [...usualLines(to), Buffer.from(line, 'latin1')];
    return to(kind, name, { body, lines }, { expected: expected ?? right });
  };
  const { body: right } = good('as-it-should-be');
  return [
    ...['X: a\0b', 'X: a\nb', 'no colon', 'a : b', 'X: a\r\n folded'].map((line) =>
      withLine(`unreadable: ${JSON.stringify(line)}`, line, unreadable),
    ),
    ...[
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
      Array.from({ length: 900 }, (_, at) => `a${at}: b`).join('\r\n'),
    ].map((line, at) => withLine(`${at} ${line.slice(0, 30)}`, line)),
    ...[
      `X: ${'x'.repeat(20_000)}`,
      `${'x'.repeat(20_000)}: x`,
      Array.from({ length: 5_000 }, (_, at) => `a${at}: b`).join('\r\n'),
    ].map((line, at) => withLine(`too long: ${at}`, line, { status: 401 })),
    ...['HTTP/3.0', 'http/1.1', ''].map((version) =>
      to(kind, `the version "${version}"`, { body: right, version }, { expected: unreadable }),
    ),
    ...['HTTP/1.0', 'HTTP/2.0'].map((version) => {
      const { body, expected } = good(`version-${version.replaceAll(/\W/g, '_')}`);
      return to(kind, `the version "${version}"`, { body, version }, { expected });
    }),
    ...['post', 'P OST', '\0POST'].map((method) =>
      to(kind, `the method "${method}"`, { body: right, method }, { expected: unreadable }),
    ),
    ...['GET', 'PUT', 'OPTIONS', 'TRACE'].map((method) =>
      to(kind, `the method ${method}, which no door has`, { body: right, method }, { expected: { status: 404 } }),
    ),
    to(kind, 'no head to speak of', { ...uninvited, lines: [], body: right }, { expected: { status: 401 } }),
    ...(to === toWebhook ? noHttp() : []),
  ];
}

function noHttp(): HostileInput[] {
  const words = [
    // TLS.
    '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '{"eventType":"ping"}',
    'POST  HTTP/1.1\r\n\r\n',
    'POST / HTTP/1.1\nHost: x\n\n',
  ];
  return words.map((word, at) =>
    toSocket('no HTTP', `${at} ${JSON.stringify(word.slice(0, 20))}`, Buffer.from(word, 'latin1'), {
      expected: { status: 500 },
    }),
  );
}
