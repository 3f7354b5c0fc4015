import { JSON_TEXTS } from './json-texts.ts';
import { MARKER, POISON, recorded, toPush, type Expected, type HostileInput, type Say } from './hostile-input.ts';

/** Bodies and paths that only the forward door knows. */
export function pushInputs(): HostileInput[] {
  return [...jsonTexts(), ...envelopes(), ...orderIds(), ...nesting(), ...paths()];
}

const push = (kind: string, name: string, body: string | Buffer, expected: Expected): HostileInput =>
  toPush(kind, name, { body }, { expected });

/** As Pub/Sub wraps a message. */
function wrapped(data: string | Buffer | undefined, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    message: {
      ...(data !== undefined && { data: Buffer.from(data).toString('base64') }),
      messageId: '1',
      publishTime: '2026-01-31T18:30:00Z',
      ...more,
    },
    subscription: 'projects/p/subscriptions/s',
  });
}

function jsonTexts(): HostileInput[] {
  return JSON_TEXTS.flatMap(({ text, taken, whole }, at) => {
    const order = `h-json-${at}`;
    const data = whole
      ? text
      : Buffer.concat([Buffer.from(`{"orderId":"${order}","x":`), Buffer.from(text), Buffer.from('}')]);
    const expected = taken && !whole ? recorded(order) : POISON;
    return [data, wrapped(data)].map((body, nth) =>
      push(
        'the edges of JSON',
        `${JSON.stringify(text.toString('utf8'))}${nth === 0 ? '' : ', wrapped'}`,
        body,
        expected,
      ),
    );
  });
}

function envelopes(): HostileInput[] {
  const kind = 'envelopes';
  const words = 'h-words';
  const junk = [null, 7, '', words, [MARKER], {}];
  const right = Buffer.from(JSON.stringify({ orderId: 'h-base64' }));
  const base64 = right.toString('base64');
  const texts: [string, string | Buffer, Expected][] = [
    ...junk.flatMap((value): [string, string, Expected][] => {
      const name = JSON.stringify(value);
      return [
        [`the body ${name}`, name, POISON],
        [`message: ${name}`, JSON.stringify({ message: value, subscription: MARKER }), POISON],
        [`data: ${name}`, JSON.stringify({ message: { data: value, messageId: '1' } }), POISON],
        [`attributes: ${name}`, JSON.stringify({ message: { attributes: value, messageId: '1' } }), POISON],
        [
          `attributes.orderId: ${name}`,
          JSON.stringify({ message: { attributes: { orderId: value } } }),
          value === words ? recorded(words) : POISON,
        ],
        [`in data: ${name}`, wrapped(name), POISON],
      ];
    }),
    ['data with a NUL behind', wrapped('{"orderId":"x"}\0'), POISON],
    ['data in UTF-16', wrapped(Buffer.from('{"orderId":"x"}', 'utf16le')), POISON],
    [
      'data in base64url',
      JSON.stringify({ message: { data: Buffer.from('{"orderId":"h-url-\u00ff\u00fe"}').toString('base64url') } }),
      recorded('h-url-\u00ff\u00fe'),
    ],
    ['data without padding', JSON.stringify({ message: { data: base64.replace(/=+$/, '') } }), recorded('h-base64')],
    [
      'data with line ends',
      JSON.stringify({ message: { data: base64.replaceAll(/(.{4})/g, '$1\r\n'), n: 1 } }),
      recorded('h-base64'),
    ],
    [
      'thousands of messages',
      JSON.stringify({ messages: Array.from({ length: 5_000 }, (_, at) => ({ attributes: { orderId: `x-${at}` } })) }),
      POISON,
    ],
    [
      'thousands of attributes',
      wrapped(undefined, {
        attributes: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`a${at}`, MARKER])),
      }),
      POISON,
    ],
    [
      'ids in the wrong place',
      wrapped(JSON.stringify({ order: { orderId: 'x', Id: 'x', _id: 'x' }, ID: 'x', OrderId: 'x', order_id: 'x' })),
      POISON,
    ],
    ['ids of the prototype', '{"__proto__":{"orderId":"x","id":"x","order":{"id":"x"}}}', POISON],
    [
      'attributes of the prototype',
      '{"message":{"__proto__":{"attributes":{"orderId":"x"}},"attributes":{"__proto__":{"orderId":"x"}}}}',
      POISON,
    ],
    ['names that repeat: the last one counts', '{"orderId":"x","orderId":"h-repeated"}', recorded('h-repeated')],
    ['names that repeat: the last one is none', '{"orderId":"x","orderId":7}', POISON],
    [
      'a message id of 10 kB',
      wrapped('{"orderId":"h-message-id"}', { messageId: 'x'.repeat(10_000) }),
      recorded('h-message-id'),
    ],
    ['a message id with a NUL', wrapped('', { messageId: '1\0\ud800' }), POISON],
  ];
  return [
    ...texts.map(([name, body, expected]) => push(kind, name, body, expected)),
    ...[`orderId: h-header`, 'ORDERID: h-header-2'].map((line, at) =>
      toPush(
        kind,
        `unwrapped, with ${line}`,
        { body: MARKER, lines: [...bearer, line, `x-goog-pubsub-message-id: ${at}`] },
        { expected: recorded(line.slice(9)) },
      ),
    ),
    toPush(
      kind,
      'unwrapped, two ids in headers',
      { body: MARKER, lines: [...bearer, 'orderId: h-a', 'orderId: h-b', 'x-goog-pubsub-message-id: 9'] },
      { expected: recorded('h-a, h-b') },
    ),
    toPush(
      kind,
      'unwrapped, an id of 10 kB in a header',
      { body: '', lines: [...bearer, `orderId: ${'x'.repeat(10_000)}`, 'x-goog-pubsub-message-id: 9'] },
      { expected: POISON },
    ),
  ];
}

const bearer: Say[] = [({ pushToken }) => `Authorization: Bearer ${pushToken}`];

function orderIds(): HostileInput[] {
  const kind = 'order ids';
  const numbers = ['-1', '1e999', '9007199254740993'];
  const bad = [
    ...numbers,
    '""',
    'true',
    '[]',
    '["x"]',
    '{}',
    '{"id":"x"}',
    '"a\\u0000b"',
    '"\\udc00\\ud800"',
    ...[256, 1_000_000].flatMap((length) => ['x', '🍕'].map((letter) => `"${letter.repeat(length)}"`)),
  ];
  const good = [
    '__proto__',
    ' ',
    '\u202e',
    '\ufeff',
    "'; DROP TABLE placements; --",
    'null',
    'y'.repeat(255),
    '漢'.repeat(255),
    'a\u0301',
    '\u{10ffff}',
  ].map((text, at) => `${text.length < 200 ? `h-id-${at}-` : ''}${text}`);
  const places: [string, (value: string) => string][] = [
    ['attributes.orderId', (value) => `{"message":{"attributes":{"orderId":${value}},"messageId":"1"}}`],
    ['data.orderId', (value) => wrapped(`{"orderId":${value}}`)],
    ['data.order.id', (value) => `{"order":{"id":${value}}}`],
    ['data.id', (value) => wrapped(`{"id":${value}}`)],
  ];
  return places.flatMap(([place, put], at) => [
    ...bad.map((value, nth) => push(kind, `${place}: bad ${nth} ${value.slice(0, 20)}`, put(value), POISON)),
    ...good
      .filter((_, nth) => nth % places.length === at)
      .map((id) => push(kind, `${place}: ${JSON.stringify(id.slice(0, 30))}`, put(JSON.stringify(id)), recorded(id))),
  ]);
}

function nesting(): HostileInput[] {
  const kind = 'deep nesting';
  return [100, 100_000].flatMap((depth) =>
    (
      [
        ['lists', '[', ']', ''],
        ['objects', '{"order":', '}', '1'],
        ['messages', '{"message":', '}', '1'],
      ] as const
    ).flatMap(([name, open, close, core]) => {
      const whole = open.repeat(depth) + core + close.repeat(depth);
      const order = `h-deep-${name}-${depth}`;
      return [
        push(kind, `${depth} ${name}`, whole, POISON),
        push(kind, `${depth} ${name} in data`, wrapped(whole), POISON),
        push(kind, `${depth} ${name} that are not closed`, open.repeat(depth), POISON),
        push(kind, `${depth} ${name} beside an id`, `{"orderId":"${order}","x":${whole}}`, recorded(order)),
        push(kind, `${depth} ${name} as an id`, `{"orderId":${whole}}`, POISON),
      ];
    }),
  );
}

function paths(): HostileInput[] {
  const kind = 'paths';
  const at = (path: string, expected?: Expected): HostileInput => {
    const order = `h-path-${path.replaceAll(/\W/g, '_')}`.slice(0, 255);
    return toPush(kind, path, { path, body: `{"orderId":"${order}"}` }, { expected: expected ?? recorded(order) });
  };
  return [
    ...[
      '/pubsub/push?',
      '/pubsub/push?%zz',
      '/pubsub/push#x',
      '/pubsub/%70ush',
      'http://evil.example/pubsub/push',
      `/pubsub/push?${'x'.repeat(8_000)}`,
      '/pubsub/push?__proto__[a]=b',
    ].map((path) => at(path)),
    ...[
      '/pubsub/push/',
      '//pubsub/push',
      '/pubsub/push%00',
      '/PUBSUB/PUSH',
      '/pubsub/../pubsub/push',
      '/pubsub%2fpush',
    ].map((path) => at(path, { status: 404 })),
    ...['/pubsub/push%zz', '/pubsub/push%', '/pubsub/%c3', '/%ff'].map((path) => at(path, { status: 401 })),
    ...['pubsub/push', '/pubsub/push x', '/pubsub/push\0', '\\pubsub\\push'].map((path) => at(path, { status: 500 })),
    at(`/pubsub/push?${'x'.repeat(20_000)}`, { status: 401 }),
  ];
}
