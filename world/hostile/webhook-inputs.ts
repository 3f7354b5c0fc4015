import { sign } from '../../src/core/domain/standard-webhooks.ts';
import { JSON_TEXTS } from './json-texts.ts';
import {
  IGNORED,
  MARKER,
  NOT_JSON,
  NOT_UTF8,
  NO_ENDPOINT,
  REFUSED,
  SECRET,
  TOO_DEEP,
  UNMATCHED,
  UNREADABLE,
  dropped,
  isUtf8,
  statusText,
  toWebhook,
  words,
  type Expected,
  type HostileInput,
  type Say,
} from './hostile-input.ts';

/**
 * Paths, tokens and signatures that open nothing at the return door, and a few that look as if they did not, and do; and
 * well delivered bodies that are anything but well meant. Fields of wrong types: see the translators.
 */
export function returnInputs(): HostileInput[] {
  const addresses = [...paths(), ...tokens(), ...signatures()];
  const texts = [...jsonTexts(), ...cutShort(), ...unstorable(), ...invalidUtf8(), ...nesting()];
  return [...addresses, ...texts, ...repeatedNames(), ...namesOfTheLanguage(), ...manyEvents(), ...times()];
}

function paths(): HostileInput[] {
  const at = (name: string, path: string, expected: Expected): HostileInput =>
    toWebhook('paths')(name, expected, { path: `${path}?token=<token>`, body: statusText({}) });
  const integrations = words('constructor __proto__ square STANDARD %2e%2e ..%2f..%2fetc standard%00 %zz %c3');
  const locations = words('signed nowhere CLUB club%2f club%00 %20club %zz %ed%a0%80 __proto__');
  const beneath = words(`/webhook /webhook/standard/ /webhook/standard//club/orders /webhook/standard/club/orders
    /webhook/../webhook/standard/club /webhook/standard%2fclub /webhook/standard/club;x=y
    /webhook/${'a/'.repeat(4e3)}`);
  const right =
    words(`/webhook/standard/club /webhook/standard/club/ /webhook//standard/club //webhook/standard/club /%77ebhook/standard/%63%6C%75%62
    http://evil.example/webhook/standard/club`);
  const beside = words(`/ //webhooks/standard/club /WEBHOOK/standard/club /webhook%2fstandard/club /metrics
    /../../etc/passwd * /${'x'.repeat(1e4)}`);
  const unreadable = ['', '/webhook/standard/club x', '/webhook/standard/\0', '/webhook/standard/cl\xfcb'];
  return [
    ...[...integrations, 'x'.repeat(1e3)].map((name) =>
      at(`the integration ${name.slice(0, 40)}`, `/webhook/${name}/club`, REFUSED),
    ),
    ...[...locations, 'x'.repeat(256), '%2f'.repeat(3e3), MARKER].map((name) =>
      at(`the location ${name.slice(0, 40)}`, `/webhook/standard/${name}`, REFUSED),
    ),
    ...beneath.map((path) => at(path.slice(0, 60), path, REFUSED)),
    ...[...right, ' /webhook/standard/club'].map((path) => at(path, path, UNMATCHED)),
    ...beside.map((path) => at(path.slice(0, 60), path, NO_ENDPOINT)),
    ...['webhook/standard/club', ...unreadable].map((path) => at(JSON.stringify(path), path, UNREADABLE)),
  ];
}

function tokens(): HostileInput[] {
  const made = ['', '%zz', '%00', '__proto__', MARKER, 'x'.repeat(43), '%41'.repeat(4e3)];
  const other = ({ token }: { token: string }): string =>
    `?token=${token.slice(0, 21)}${token[21] === 'A' ? 'B' : 'A'}${token.slice(22)}`;
  const packed = ({ token }: { token: string }): string =>
    `?token=${token.replaceAll(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`;
  const inputs: [name: string, query: Say, expected?: Expected, lines?: string[]][] = [
    ...made.map((token): [string, string] => [`made up: ${token.slice(0, 40)}`, `?token=${token}`]),
    ['100 kB', `?token=${MARKER.repeat(16_000)}`],
    ['the right one and 100 kB more', `?token=<token>&x=${'y'.repeat(100_000)}`],
    ['another letter at 21', other],
    ['none', ''],
    ['padded', '?token=<token>='],
    ['with a NUL behind', '?token=<token>%00'],
    ['with a space behind', '?token=<token>%20'],
    ['twice', '?token=<token>&token=<token>'],
    ['twice, the first wrong', '?token=x&token=<token>'],
    ['as a list', '?token[]=<token>'],
    ['under another name', '?Token=<token>'],
    ['of a location with a signature', '?token=<signedToken>'],
    ['of another integration', '?token=<listToken>'],
    ['of a push', '?token=<pushToken>'],
    ['in a header instead', '', REFUSED, ['Authorization: Bearer <token>']],
    ['in a header of its own instead', '?a', REFUSED, ['Token: <token>', 'X-Token: <token>']],
    ['unreadable: a raw NUL', '?token=<token>\0', UNREADABLE],
    ['unreadable: a raw byte', '?token=<token>\xff', UNREADABLE],
    ['right, in a fragment, which no sender sends', '#token=<token>', UNMATCHED],
    ['right, packed', packed, UNMATCHED],
    ['right, its name packed', '?%74oken=<token>', UNMATCHED],
    ['right, among others', '?a=1&__proto__=2&token=<token>&b[]=3&%zz', UNMATCHED],
    ['right, before a fragment', '?token=<token>&x=1#y', UNMATCHED],
    ['right, among a thousand others', `?${'a=1&'.repeat(1_000)}token=<token>`, UNMATCHED],
    [
      'right, repeated by a proxy in headers',
      '?token=<token>&proxy',
      UNMATCHED,
      ['X-Original-URI: /webhook/standard/club?token=<token>', 'Referer: http://x/?token=<token>&a=<token>'],
    ],
  ];
  const address = '/webhook/standard/club';
  return inputs.map(([name, query, expected = REFUSED, lines = []]) =>
    toWebhook('tokens')(name, expected, {
      path: typeof query === 'string' ? address + query : (target) => address + query(target),
      body: statusText({}),
      lines: ['Host: x', ...lines],
    }),
  );
}

const STRANGER = `whsec_${Buffer.alloc(24, 'anonymous').toString('base64')}`;

type Signed = { id: string; timestamp: string; signature: string };

/**
 * Webhooks of a location that signs, wrong as only the wire can make them, and one of each other kind: the translator's
 * own tests have the rest.
 */
function signatures(): HostileInput[] {
  const body = statusText({});
  const at = (
    name: string,
    expected: Expected,
    wrong: (right: Signed) => Partial<Signed> | string[],
    sent = body,
  ): HostileInput => {
    const lines = (): string => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const right = { id: 'm-1', timestamp, signature: sign([SECRET], 'm-1', timestamp, body) };
      const given = wrong(right);
      const signed = Array.isArray(given)
        ? given
        : Object.entries({ ...right, ...given }).map(([part, value]) => `webhook-${part}: ${value}`);
      return ['Host: x', `Cookie: ${MARKER}`, ...signed].join('\r\n');
    };
    const path = '/webhook/standard/signed?token=<signedToken>';
    return toWebhook('signatures')(name, expected, { path, lines: [lines], body: sent });
  };
  const forged = dropped('not authentic: no signature in webhook-signature is right');
  const missing = (header: string): Expected => dropped(`not authentic: the header ${header} is missing`);

  return [
    at('right', UNMATCHED, () => ({})),
    at('right, among a hundred others', UNMATCHED, (right) => ({
      signature: `${'v1,AAAA '.repeat(100)}${right.signature}`,
    })),
    at(
      'right, of a body that is no JSON',
      dropped(NOT_JSON),
      ({ timestamp }) => ({ signature: sign([SECRET], 'm-1', timestamp, MARKER) }),
      MARKER,
    ),
    at('none at all', missing('webhook-id'), () => []),
    at('an empty id', missing('webhook-id'), () => ({ id: '' })),
    at('an empty signature', missing('webhook-signature'), () => ({ signature: '' })),
    at('of a stranger', forged, ({ timestamp }) => ({ signature: sign([STRANGER], 'm-1', timestamp, body) })),
    at('of no body', forged, () => ({}), ''),
    at('where id and timestamp share a dot', forged, ({ timestamp }) => ({ id: `m-1.${timestamp}` })),
    ...['v0', '', ' v1', 'v1,v1'].map((version) =>
      at(`of the version "${version}"`, version === ' v1' ? UNMATCHED : forged, ({ signature }) => ({
        signature: `${version},${signature.slice('v1,'.length)}`,
      })),
    ),
    at('cut in half', forged, ({ signature }) => ({ signature: signature.slice(0, 24) })),
    at('commas', forged, () => ({ signature: ',,,,' })),
    at('thousands', forged, () => ({ signature: 'v1,AAAA '.repeat(1_500) })),
    at('one of 12 kB', forged, () => ({ signature: `v1,${'A'.repeat(12_000)}` })),
    at('bytes that are no ASCII', forged, () => ({ signature: `v1,${'\xe9'.repeat(44)}` })),
    at('bytes of the right length when told as UTF-8', forged, () => ({ signature: `v1,${'\xe9'.repeat(22)}` })),
    at('a secret instead', forged, () => ({ signature: `v1,${MARKER}` })),
    at('an id of 12 kB', forged, () => ({ id: MARKER.repeat(2_000) })),
    at('two signatures in two headers, the right one first', UNMATCHED, ({ id, timestamp, signature }) => [
      `webhook-id: ${id}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-signature: ${signature}`,
      'webhook-signature: v1,AAAA',
    ]),
  ];
}

const webhook = (kind: string, name: string, body: string | Buffer, expected: Expected): HostileInput =>
  toWebhook(kind)(name, expected, { body });

/** The order's text with `"slot"` replaced, so that the text need not be one that JSON.stringify would write. */
function around(text: string | Buffer, order: Record<string, unknown> = {}): Buffer {
  const [before = '', after = ''] = statusText({ ...order, x: 'slot' }).split('"slot"');
  return Buffer.concat([Buffer.from(before), Buffer.from(text), Buffer.from(after)]);
}

function jsonTexts(): HostileInput[] {
  return JSON_TEXTS.map(({ text, taken, whole }) => {
    const put = (body: string | Buffer, expected: Expected): HostileInput =>
      webhook('the edges of JSON', JSON.stringify(text.toString('utf8')), body, expected);
    if (whole !== true) return put(around(text), taken ? UNMATCHED : dropped(NOT_JSON));
    if (!taken) return put(text, dropped(isUtf8(Buffer.from(text)) ? NOT_JSON : NOT_UTF8));
    return put(text, dropped(String(text).includes('{') ? 'unreadable: eventType: ' : 'unreadable: value: '));
  });
}

function cutShort(): HostileInput[] {
  const whole = Buffer.from(statusText({ thirdPartyReference: `${MARKER}-ü-🍕`, occurredAt: '2026-01-31T18:30:00Z' }));
  return Array.from({ length: whole.length - 1 }, (_, at) => whole.subarray(0, at + 1))
    .filter((part) => part.length % 25 === 0 || !isUtf8(part))
    .map((part) =>
      webhook('a payload cut short', `${part.length} bytes`, part, dropped(isUtf8(part) ? NOT_JSON : NOT_UTF8)),
    );
}

/** Where such a character may stand, and what comes of it there. */
const PLACES: readonly [string, (text: string) => string, Expected][] = (
  [
    ['id', `"id":"${MARKER}#","status":"READY"`, dropped('unreadable: order.id: contains a NUL or a lone surrogate')],
    [
      'thirdPartyReference',
      `"thirdPartyReference":"#${MARKER}","status":"READY"`,
      dropped('unreadable: order.thirdPartyReference: contains a NUL or a lone surrogate'),
    ],
    ['reason', `"id":"1","status":"READY","reason":"${MARKER}#"`, UNMATCHED],
    ['status', '"id":"1","status":"READY#"', IGNORED],
    ['a value nobody reads', '"id":"1","status":"READY","x":"#"', UNMATCHED],
  ] as const
).map(([place, order, expected]) => [
  place,
  (text) => `{"eventType":"order.status","order":{${order.replace('#', () => text)}}}`,
  expected,
]);

function unstorable(): HostileInput[] {
  const at = (name: string, body: string, expected = dropped(NOT_JSON)): HostileInput =>
    webhook('NUL and lone surrogates', name, body, expected);
  const escapes = words('\\u0000 a\\u0000b \\ud800 \\udc00\\ud800 x\\udfffy');
  return [
    ...PLACES.flatMap(([place, put, expected]) =>
      escapes.map((escape) => at(`${escape} in ${place}`, put(escape), expected)),
    ),
    ...PLACES.map(([place, put]) => at(`a raw NUL in ${place}`, put('\0'))),
    ...[1, 4_096].map((length) => at(`${length} NULs in a row`, `{"x":1}${'\0'.repeat(length)}`)),
  ];
}

function invalidUtf8(): HostileInput[] {
  // A byte out of place, too long a form, half a surrogate, beyond the last, cut short, Latin-1, and what is only ISO-2022.
  const sequences = ['80', 'c080', 'eda080', 'f4908080', 'f09f8d', 'ff', 'e4f6fc', '1b2442'];
  const places = PLACES.filter(([place]) => ['id', 'status', 'a value nobody reads'].includes(place));
  return sequences.flatMap((hex) =>
    places.map(([place, put]) => {
      const [before = '', after = ''] = put('slot').split('slot');
      const body = Buffer.concat([Buffer.from(before), Buffer.from(hex, 'hex'), Buffer.from(after)]);
      const expected = hex === '1b2442' ? NOT_JSON : NOT_UTF8;
      return webhook('invalid UTF-8', `${hex} in ${place}`, body, dropped(expected));
    }),
  );
}

function nesting(): HostileInput[] {
  const shapes = [
    ['lists', '[', '', ']', 'value'],
    ['objects', '{"a":', '1', '}', 'eventType'],
  ] as const;
  return [10, 1_000, 100_000].flatMap((depth) =>
    shapes.flatMap(([name, open, core, close, field]) => {
      const opened = open.repeat(depth);
      const whole = opened + core + close.repeat(depth);
      const asId = around('1', { id: 'slot-id' }).toString().replace('"slot-id"', whole);
      const at = (how: string, body: string | Buffer, shallow: Expected): HostileInput =>
        webhook('deep nesting', `${depth} ${name}${how}`, body, depth > 100 ? dropped(TOO_DEEP) : shallow);
      return [
        at('', whole, dropped(`unreadable: ${field}: `)),
        at(' that are not closed', opened, dropped(NOT_JSON)),
        at(' closed once too often', whole + close, dropped(NOT_JSON)),
        at(' beside the order', around(whole), UNMATCHED),
        at(' as an id', asId, dropped('unreadable: order.id: ')),
      ];
    }),
  );
}

function repeatedNames(): HostileInput[] {
  const order = '{"id":"1","status":"READY"}';
  // The last one counts, as for every JavaScript reader.
  const texts: [string, Expected][] = [
    [`{"eventType":"x","eventType":"order.status","order":${order}}`, UNMATCHED],
    [`{"eventType":"order.status","\\u0065ventType":"x","order":${order}}`, IGNORED],
    [`{"eventType":"order.status","order":${order},"order":null}`, dropped('unreadable: order: ')],
    ['{"eventType":"order.status","order":{"id":2,"id":"1","status":"READY"}}', UNMATCHED],
    [`{"eventType":"order.status","order":{${'"id":"1",'.repeat(20_000)}"status":"READY"}}`, UNMATCHED],
  ];
  return texts.map(([text, expected], at) => webhook('names that repeat', String(at), text, expected));
}

function namesOfTheLanguage(): HostileInput[] {
  const names = ['__proto__', 'constructor', 'toJSON', "'; DROP TABLE orders; --", '\ufeff', 'a\r\nSet-Cookie: b'];
  return names.flatMap((name) => {
    const key = JSON.stringify(name);
    const as = (what: string, body: string | Buffer, expected: Expected): HostileInput =>
      webhook('names of the language', `${name} ${what}`, body, expected);
    return [
      as('as id', statusText({ id: name }), UNMATCHED),
      as('as thirdPartyReference', statusText({ id: undefined, thirdPartyReference: name }), UNMATCHED),
      as('as status', statusText({ status: name }), IGNORED),
      as('as a name', around(`{${key}:{${key}:{"status":"CANCELLED"}}}`), UNMATCHED),
      as('around it all', `{${key}:${statusText({})}}`, dropped('unreadable: eventType: ')),
    ];
  });
}

function manyEvents(): HostileInput[] {
  const event = (at: number): object => ({ serviceOrderId: `${MARKER}-${at}`, status: 'ready', nativeStatus: MARKER });
  const list = (length: number, item: (at: number) => unknown = event): string =>
    JSON.stringify(Array.from({ length }, (_, at) => item(at)));
  const at = (name: string, body: string, expected: Expected): HostileInput =>
    toWebhook('thousands of events')(name, expected, { path: '/webhook/list/list?token=<listToken>', body });
  const tooMany = (length: number): Expected =>
    dropped(`unreadable: value: holds ${length} events, at most 50 are allowed`);
  const oneIsNone = list(50, (nth) => (nth === 25 ? null : event(nth)));
  const nothings = (length: number): string => list(length, () => 0);
  return [
    at('none', '[]', IGNORED),
    at('fifty', list(50), UNMATCHED),
    ...[51, 8_000].map((length) => at(`${length}`, list(length), tooMany(length))),
    ...[51, 500_000].map((length) => at(`${length} that are none`, nothings(length), tooMany(length))),
    at('fifty, one of which is none', oneIsNone, dropped('unreadable: 25: Invalid input')),
    at('no list', '{"length":1e9}', dropped('unreadable: value: Invalid input')),
    at('no JSON', MARKER, dropped('the translator failed: SyntaxError')),
  ];
}

function times(): HostileInput[] {
  const good = words(`2026-01-31T18:30:00Z 2026-01-31T18:30:00.123456789Z 2024-02-29T00:00:00Z 0002-01-01T00:00:00Z
    9998-12-31T23:59:59Z 2026-01-31T18:30:00+14:00 2026-01-31T18:30:00+15:59 1969-12-31T23:59:59Z`);
  const bad = words(`2026-01-31T18:30:00 2026-02-30T18:30:00Z 2026-13-01T00:00:00Z 2026-01-31T24:00:00Z
    2026-01-31T23:59:61Z 0000-01-01T00:00:00Z 0001-01-01T00:00:00Z 9999-12-31T23:59:59Z +275760-09-13T00:00:00Z
    10000-01-01T00:00:00Z 2026-01-31T18:30:00+16:00 2026-01-31T18:30:00+0100 now infinity 1767225600
    2026-01-31T18:30:00.${'1'.repeat(60)}Z ２０２６-01-31T18:30:00Z 2026-01-31T18:30:00\0Z ${MARKER}`);
  const spaced = ['2026-01-31 18:30:00Z', '2026-01-31T18:30:00Z ', '4714-11-24 BC', '2026-01-31T18:30:00Z\n'];
  // A time that cannot be read is left out, and the rest counts.
  const at = (time: string) => webhook('times', time, statusText({ occurredAt: time }), UNMATCHED);
  return [...good, ...bad, ...spaced].map(at);
}
