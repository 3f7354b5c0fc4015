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
  type PushTokenChanges,
} from './hostile-input.ts';

/** Bodies, paths and tokens that only the forward door knows. */
export function pushInputs(): HostileInput[] {
  const inPush = { door: 'h', junk: POISON };
  const bodies = [
    ...jsonTexts(toPush, inPush),
    ...jsonTexts(toPush, { ...inPush, wrap: wrapped }),
    ...envelopes(),
    ...orderIds(),
    ...nesting(),
  ];
  return [...bodies, ...paths(), ...claims(), ...forgeries(), ...mutilated(), ...authorizations()];
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

/**
 * @param to makes the inputs of a door @param door begins the ids of its orders
 * @param junk what a text without an order is answered @param wrap puts the text into what the door reads
 */
export function jsonTexts(
  to: typeof toPush,
  { door, junk, wrap }: { door: string; junk: Expected; wrap?: (text: string | Buffer) => string },
): HostileInput[] {
  return JSON_TEXTS.map(({ text, taken, whole }, at) => {
    const order = `${door}-json-${at}`;
    const before = Buffer.from(`{"orderId":"${order}","x":`);
    const data = whole ? text : Buffer.concat([before, Buffer.from(text), Buffer.from('}')]);
    const name = JSON.stringify(text.toString('utf8'));
    const expected = taken && !whole ? recorded(order) : junk;
    return wrap === undefined
      ? to('the edges of JSON')(name, expected, { body: data })
      : to('the edges of JSON')(`${name}, wrapped`, expected, { body: wrap(data) });
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
  const right =
    words(`/pubsub/push/ //pubsub/push /pubsub/push? /pubsub/push?%zz /pubsub/push#x /pubsub/%70ush http://evil.example/pubsub/push
    /pubsub/push?${'x'.repeat(8_000)} /pubsub/push?__proto__[a]=b`);
  const beside = '/pubsub/push/x //pubsub/pushes /pubsub/push%00 /PUBSUB/PUSH /pubsub/../pubsub/push /pubsub%2fpush';
  return [
    ...right.map(at()),
    ...words(beside).map(at(NO_ENDPOINT)),
    ...['/pubsub/push%zz', '/pubsub/push%', '/pubsub/%c3', '/%ff'].map(at(REFUSED)),
    ...['pubsub/push', '/pubsub/push x', '/pubsub/push\0', '\\pubsub\\push'].map(at(UNREADABLE)),
    at(REFUSED)(`/pubsub/push?${'x'.repeat(20_000)}`),
  ];
}

/** A push whose body is right, and whose token mostly is not; its name tells the orders of those apart that are accepted. */
function withToken(kind: string, name: string, about: PushTokenChanges, expected: 401 | 204): HostileInput {
  const order = `h-token-${kind}-${name.replaceAll(MARKER, 'm')}`.replaceAll(/[^\w-]/g, '_').slice(0, 250);
  return toPush(kind)(name, expected === 204 ? recorded(order) : REFUSED, {
    body: JSON.stringify({ orderId: order }),
    lines: ['Host: x', `Cookie: ${MARKER}`, ({ signPushToken }) => `Authorization: Bearer ${signPushToken(about)}`],
  });
}

/** What each claim may be is tried at the verifier itself: here stands what a claim is of another type. */
function claims(): HostileInput[] {
  const kind = 'OIDC tokens: claims';
  const many = { x: MARKER.repeat(700), __proto__: { admin: true } };
  const junk = [null, true, 0, '', MARKER, [MARKER], {}];
  const isRight = (claim: string, value: unknown): boolean =>
    (claim === 'email_verified' && value === true) || (claim === 'nbf' && value === 0);
  return [
    ...['iss', 'aud', 'email', 'email_verified', 'exp', 'nbf'].flatMap((claim) =>
      junk
        .filter((value) => !isRight(claim, value))
        .map((value) => withToken(kind, `${claim}: ${JSON.stringify(value)}`, { claims: { [claim]: value } }, 401)),
    ),
    withToken(kind, 'sub left out, which nobody asks for', { claims: { sub: undefined } }, 204),
    withToken(kind, 'right, with 4 kB of other claims', { claims: many }, 204),
  ];
}

function forgeries(): HostileInput[] {
  const at = (name: string, about: PushTokenChanges, expected: 401 | 204 = 401): HostileInput =>
    withToken('OIDC tokens: forgeries', name, about, expected);
  const [jku, x5u] = ['http://127.0.0.1:9/jwks', 'http://127.0.0.1:9/x5u'];
  const strangers = [{ jku }, { x5u }, { jwk: { kty: 'oct', k: 'AAAA' } }, { x5c: ['AAAA'] }, { jwk: MARKER }];
  return [
    ...['none', 'nOnE', ' none', ''].map((alg) =>
      at(`alg "${alg}", not signed`, { header: { alg }, signer: 'nobody' }),
    ),
    at('HS256 with the public key', { header: { alg: 'HS256' }, signer: 'public' }),
    at('HS256 with the public key, said to be RS256', { signer: 'public' }),
    ...['RS384', 'PS256', 'ES256', '__proto__'].map((alg) => at(`alg "${alg}" with our key`, { header: { alg } })),
    at('no alg', { header: { alg: undefined } }),
    at('our key under the kid of another of our keys', { header: { kid: 'stand-in' } }),
    at('our key without a kid, where there are two', { header: { kid: undefined } }),
    ...['', '__proto__', 'x'.repeat(5_000)].map((kid, nth) => at(`unknown kid ${nth}`, { header: { kid } })),
    ...strangers.map((header) =>
      at(`a stranger with ${Object.keys(header)[0]} ${JSON.stringify(header).length}`, { header, signer: 'anonymous' }),
    ),
    ...[[MARKER], ['exp'], [], ['toString'], 'b64', null].map((crit, nth) =>
      at(`crit ${nth}`, { header: { crit, [MARKER]: 1, exp: 1, toString: 1 } }),
    ),
    at('a payload that is not packed', { header: { crit: ['b64'], b64: false } }),
    at('right, whatever its typ and cty', { header: { typ: MARKER, cty: MARKER } }, 204),
  ];
}

function mutilated(): HostileInput[] {
  const at = (name: string, change: (token: string) => string): HostileInput =>
    toPush('OIDC tokens: mutilated')(name, REFUSED, {
      body: `{"orderId":"${name}"}`,
      lines: ['Host: x', ({ pushToken }) => `Authorization: Bearer ${change(pushToken)}`],
    });
  const part = (nth: number, change: (part: string) => string) => (token: string) =>
    token
      .split('.')
      .with(nth, change(token.split('.')[nth] ?? ''))
      .join('.');
  const flipped = (where: number) => (text: string) => {
    const index = Math.floor((text.length - 2) * where);
    return `${text.slice(0, index)}${text[index] === 'A' ? 'Q' : 'A'}${text.slice(index + 1)}`;
  };
  const changes: [string, (part: string) => string][] = [
    ['empty', () => ''],
    ['no base64', (text) => `!${text}`],
    ['not JSON', () => Buffer.from(MARKER).toString('base64url')],
    ['no UTF-8', () => Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')],
    ['deep', () => Buffer.from('['.repeat(3_000)).toString('base64url')],
  ];
  return [
    ...[0, 1, 2].flatMap((nth) => {
      const name = ['header', 'payload', 'signature'][nth] ?? '';
      return [
        ...changes.map(([what, change]) => at(`${name}: ${what}`, part(nth, change))),
        ...[0, 0.5, 1].map((where) => at(`${name}: another letter at ${where}`, part(nth, flipped(where)))),
      ];
    }),
    at('with an empty signature', (token) => token.slice(0, token.lastIndexOf('.') + 1)),
    at('with a part more', (token) => `${token}.AAAA`),
    at('dots alone', () => '..'),
    at('of 100 kB', () => 'x'.repeat(100_000)),
    at('with another behind it', (token) => `${token} ${token}`),
  ];
}

function authorizations(): HostileInput[] {
  const junk = ['', 'Bearer', `Basic ${MARKER}`, MARKER, 'Bearer ÿ', 'Bearer ..', '__proto__', 'Bearer\tx'];
  const right = 'Authorization: Bearer <pushToken>';
  const inputs: [name: string, ...lines: string[]][] = [
    ['none'],
    ...junk.map((word, nth): [string, string] => [`words ${nth}`, `Authorization: ${word}`]),
    ['without the scheme', 'Authorization: <pushToken>'],
    ['of another scheme', 'Authorization: Basic <pushToken>'],
    ['behind a tab', 'Authorization: Bearer\t<pushToken>'],
    ['under another name', `X-${right}`, `Proxy-${right}`],
    ['in a cookie', 'Cookie: authorization=Bearer%20<pushToken>'],
    ['of a webhook', 'Authorization: Bearer <token>'],
    ['twice, the first one wrong', 'Authorization: Bearer x', right],
    ['right, in small letters', 'authorization: bearer <pushToken>'],
    ['right, behind spaces', 'Authorization:   Bearer   <pushToken>  '],
    ['right, and a second that is passed over', right, 'Authorization: Bearer x'],
  ];
  return inputs.map(([name, ...lines]) => {
    const order = `h-authorization-${name.replaceAll(/\W/g, '_')}`;
    const expected = name.startsWith('right') ? recorded(order) : REFUSED;
    const request = { body: `{"orderId":"${order}"}`, lines: ['Host: x', ...lines] };
    return toPush('Authorization headers')(name, expected, request);
  });
}
