import { JSON_TEXTS } from './json-texts.ts';
import {
  MARKER,
  NO_ENDPOINT,
  POISON,
  REFUSED,
  UNREADABLE,
  recorded,
  toPush,
  words,
  type Expected,
  type HostileInput,
} from './hostile-input.ts';

/** Bodies and paths that only the forward door knows. */
export function pushInputs(): HostileInput[] {
  return [...jsonTexts(), ...envelopes(), ...orderIds(), ...nesting(), ...paths()];
}

const push = (kind: string, name: string, body: string | Buffer, expected: Expected): HostileInput =>
  toPush(kind)(name, expected, { body });

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
    const name = JSON.stringify(text.toString('utf8'));
    const kind = 'the edges of JSON';
    return [push(kind, name, data, expected), push(kind, `${name}, wrapped`, wrapped(data), expected)];
  });
}

function envelopes(): HostileInput[] {
  const kind = 'envelopes';
  const known = 'h-words';
  const order = (value: unknown): string | undefined => (value === known ? known : undefined);
  const json = (value: unknown): string => JSON.stringify(value);
  const data = (data: string): string => json({ message: { data } });
  const base64 = Buffer.from(json({ orderId: 'h-base64' })).toString('base64');
  const url = Buffer.from('{"orderId":"h-url-\u00ff\u00fe"}').toString('base64url');
  const messages = Array.from({ length: 5_000 }, (_, at) => ({ attributes: { orderId: `x-${at}` } }));
  const attributes = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`a${at}`, MARKER]));
  const misplaced = { order: { orderId: 'x', Id: 'x', _id: 'x' }, ID: 'x', OrderId: 'x', order_id: 'x' };
  const texts: [name: string, body: string, order?: string | undefined][] = [
    ...[null, 7, '', known, [MARKER], {}].flatMap((value): [string, string, (string | undefined)?][] => [
      [`the body ${json(value)}`, json(value)],
      [`message: ${json(value)}`, json({ message: value, subscription: MARKER })],
      [`data: ${json(value)}`, json({ message: { data: value, messageId: '1' } })],
      [`attributes: ${json(value)}`, json({ message: { attributes: value, messageId: '1' } })],
      [`attributes.orderId: ${json(value)}`, json({ message: { attributes: { orderId: value } } }), order(value)],
      [`in data: ${json(value)}`, wrapped(json(value))],
    ]),
    ['data with a NUL behind', wrapped('{"orderId":"x"}\0')],
    ['data in UTF-16', wrapped(Buffer.from('{"orderId":"x"}', 'utf16le'))],
    ['data in base64url', data(url), 'h-url-\u00ff\u00fe'],
    ['data without padding', data(base64.replace(/=+$/, '')), 'h-base64'],
    ['data with line ends', json({ message: { data: base64.replaceAll(/(.{4})/g, '$1\r\n'), n: 1 } }), 'h-base64'],
    ['thousands of messages', json({ messages })],
    ['thousands of attributes', wrapped(undefined, { attributes })],
    ['ids in the wrong place', wrapped(json(misplaced))],
    ['ids of the prototype', '{"__proto__":{"orderId":"x","id":"x","order":{"id":"x"}}}'],
    [
      'attributes of the prototype',
      '{"message":{"__proto__":{"attributes":{"orderId":"x"}},"attributes":{"__proto__":{"orderId":"x"}}}}',
    ],
    ['names that repeat: the last one counts', '{"orderId":"x","orderId":"h-repeated"}', 'h-repeated'],
    ['names that repeat: the last one is none', '{"orderId":"x","orderId":7}'],
    ['a message id of 10 kB', wrapped('{"orderId":"h-message-id"}', { messageId: 'x'.repeat(10_000) }), 'h-message-id'],
    ['a message id with a NUL', wrapped('', { messageId: '1\0\ud800' })],
  ];
  const unwrapped = (name: string, expected: Expected, ids: string[], messageId = 9, body = MARKER): HostileInput => {
    const lines = ['Authorization: Bearer <pushToken>', ...ids, `x-goog-pubsub-message-id: ${messageId}`];
    return toPush(kind)(`unwrapped, ${name}`, expected, { body, lines });
  };
  return [
    ...texts.map(([name, body, order]) => push(kind, name, body, recorded(order))),
    unwrapped('with orderId: h-header', recorded('h-header'), ['orderId: h-header'], 0),
    unwrapped('with ORDERID: h-header-2', recorded('h-header-2'), ['ORDERID: h-header-2'], 1),
    unwrapped('two ids in headers', recorded('h-a, h-b'), ['orderId: h-a', 'orderId: h-b']),
    unwrapped('an id of 10 kB in a header', POISON, [`orderId: ${'x'.repeat(10_000)}`], 9, ''),
  ];
}

function orderIds(): HostileInput[] {
  const kind = 'order ids';
  const bad = [
    ...words(String.raw`-1 1e999 9007199254740993 "" true [] ["x"] {} {"id":"x"} "a\u0000b" "\udc00\ud800"`),
    ...[256, 1_000_000].flatMap((length) => ['x', '🍕'].map((letter) => `"${letter.repeat(length)}"`)),
  ];
  const texts = ['__proto__', ' ', '\u202e', '\ufeff', "'; DROP TABLE placements; --", 'null'];
  const good = [...texts, 'y'.repeat(255), '漢'.repeat(255), 'a\u0301', '\u{10ffff}'].map((text, at) =>
    text.length < 200 ? `h-id-${at}-${text}` : text,
  );
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
  const shapes = [
    ['lists', '[', ']', ''],
    ['objects', '{"order":', '}', '1'],
    ['messages', '{"message":', '}', '1'],
  ] as const;
  return [100, 100_000].flatMap((depth) =>
    shapes.flatMap(([name, open, close, core]) => {
      const whole = open.repeat(depth) + core + close.repeat(depth);
      const order = `h-deep-${name}-${depth}`;
      const at = (how: string, body: string, expected = POISON): HostileInput =>
        push('deep nesting', `${depth} ${name}${how}`, body, expected);
      return [
        at('', whole),
        at(' in data', wrapped(whole)),
        at(' that are not closed', open.repeat(depth)),
        at(' beside an id', `{"orderId":"${order}","x":${whole}}`, recorded(order)),
        at(' as an id', `{"orderId":${whole}}`),
      ];
    }),
  );
}

function paths(): HostileInput[] {
  const at = (expected?: Expected) => (path: string) => {
    const order = `h-path-${path.replaceAll(/\W/g, '_')}`.slice(0, 255);
    return toPush('paths')(path, expected ?? recorded(order), { path, body: `{"orderId":"${order}"}` });
  };
  const right = words(`/pubsub/push? /pubsub/push?%zz /pubsub/push#x /pubsub/%70ush http://evil.example/pubsub/push
    /pubsub/push?${'x'.repeat(8_000)} /pubsub/push?__proto__[a]=b`);
  const beside = '/pubsub/push/ //pubsub/push /pubsub/push%00 /PUBSUB/PUSH /pubsub/../pubsub/push /pubsub%2fpush';
  return [
    ...right.map(at()),
    ...words(beside).map(at(NO_ENDPOINT)),
    ...['/pubsub/push%zz', '/pubsub/push%', '/pubsub/%c3', '/%ff'].map(at(REFUSED)),
    ...['pubsub/push', '/pubsub/push x', '/pubsub/push\0', '\\pubsub\\push'].map(at(UNREADABLE)),
    at(REFUSED)(`/pubsub/push?${'x'.repeat(20_000)}`),
  ];
}
