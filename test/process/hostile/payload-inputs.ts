import { JSON_TEXTS } from './json-texts.ts';
import {
  IGNORED,
  MARKER,
  NOT_JSON,
  TOO_DEEP,
  NOT_UTF8,
  UNMATCHED,
  dropped,
  isUtf8,
  statusText,
  toWebhook,
  words,
  type Expected,
  type HostileInput,
} from './hostile-input.ts';

/** Well delivered bodies for the return door that are anything but well meant. Fields of wrong types: see the translators. */
export function payloadInputs(): HostileInput[] {
  return [
    ...jsonTexts(),
    ...cutShort(),
    ...unstorable(),
    ...invalidUtf8(),
    ...nesting(),
    ...repeatedNames(),
    ...namesOfTheLanguage(),
    ...manyEvents(),
    ...times(),
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
  const at = (expected: Expected) => (time: string) =>
    webhook('times', time, statusText({ occurredAt: time }), expected);
  return [...good.map(at(UNMATCHED)), ...[...bad, ...spaced].map(at(dropped('unreadable: ')))];
}
