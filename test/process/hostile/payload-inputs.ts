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
  toWebhook(kind, name, { body }, { expected });

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
const PLACES: readonly [string, (text: string) => string, Expected][] = [
  [
    'id',
    (text) => `{"eventType":"order.status","order":{"id":"${MARKER}${text}","status":"READY"}}`,
    dropped('unreadable: order.id: contains a NUL or a lone surrogate'),
  ],
  [
    'thirdPartyReference',
    (text) => `{"eventType":"order.status","order":{"thirdPartyReference":"${text}${MARKER}","status":"READY"}}`,
    dropped('unreadable: order.thirdPartyReference: contains a NUL or a lone surrogate'),
  ],
  [
    'reason',
    (text) => `{"eventType":"order.status","order":{"id":"1","status":"READY","reason":"${MARKER}${text}"}}`,
    UNMATCHED,
  ],
  ['status', (text) => `{"eventType":"order.status","order":{"id":"1","status":"READY${text}"}}`, IGNORED],
  [
    'a value nobody reads',
    (text) => `{"eventType":"order.status","order":{"id":"1","status":"READY","x":"${text}"}}`,
    UNMATCHED,
  ],
];

function unstorable(): HostileInput[] {
  const escapes = ['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00\\ud800', 'x\\udfffy'];
  return [
    ...PLACES.flatMap(([place, put, expected]) =>
      escapes.map((escape) => webhook('NUL and lone surrogates', `${escape} in ${place}`, put(escape), expected)),
    ),
    ...PLACES.map(([place, put]) =>
      webhook('NUL and lone surrogates', `a raw NUL in ${place}`, put('\0'), dropped(NOT_JSON)),
    ),
    ...[1, 4_096].map((length) =>
      webhook(
        'NUL and lone surrogates',
        `${length} NULs in a row`,
        Buffer.concat([Buffer.from('{"x":1}'), Buffer.alloc(length)]),
        dropped(NOT_JSON),
      ),
    ),
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
  const kind = 'deep nesting';
  const shapes: [string, string, string][] = [
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
  ];
  return [10, 1_000, 100_000].flatMap((depth) =>
    shapes.flatMap(([name, open, close]) => {
      const whole = open.repeat(depth) + (open.endsWith(':') ? '1' : '') + close.repeat(depth);
      const unless = (shallow: Expected): Expected => (depth > 100 ? dropped(TOO_DEEP) : shallow);
      return [
        webhook(
          kind,
          `${depth} ${name}`,
          whole,
          unless(dropped(open === '{"a":' ? 'unreadable: eventType: ' : 'unreadable: value: ')),
        ),
        webhook(kind, `${depth} ${name} that are not closed`, open.repeat(depth), unless(dropped(NOT_JSON))),
        webhook(kind, `${depth} ${name} closed once too often`, whole + close, unless(dropped(NOT_JSON))),
        webhook(kind, `${depth} ${name} beside the order`, around(whole), unless(UNMATCHED)),
        webhook(
          kind,
          `${depth} ${name} as an id`,
          around('1', { id: 'slot-id' }).toString().replace('"slot-id"', whole),
          unless(dropped('unreadable: order.id: ')),
        ),
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
  const kind = 'names of the language';
  const names = ['__proto__', 'constructor', 'toJSON', "'; DROP TABLE orders; --", '\ufeff', 'a\r\nSet-Cookie: b'];
  return names.flatMap((name) => {
    const key = JSON.stringify(name);
    return [
      webhook(kind, `${name} as id`, statusText({ id: name }), UNMATCHED),
      webhook(
        kind,
        `${name} as thirdPartyReference`,
        statusText({ id: undefined, thirdPartyReference: name }),
        UNMATCHED,
      ),
      webhook(kind, `${name} as status`, statusText({ status: name }), IGNORED),
      webhook(kind, `${name} as a name`, around(`{${key}:{${key}:{"status":"CANCELLED"}}}`), UNMATCHED),
      webhook(kind, `${name} around it all`, `{${key}:${statusText({})}}`, dropped('unreadable: eventType: ')),
    ];
  });
}

function manyEvents(): HostileInput[] {
  const kind = 'thousands of events';
  const event = (at: number): object => ({ serviceOrderId: `${MARKER}-${at}`, status: 'ready', nativeStatus: MARKER });
  const list = (length: number, item: (at: number) => unknown = event): string =>
    JSON.stringify(Array.from({ length }, (_, at) => item(at)));
  const toList = (name: string, body: string, expected: Expected): HostileInput =>
    toWebhook(kind, name, { path: ({ listToken }) => `/webhook/list/list?token=${listToken}`, body }, { expected });
  const tooMany = (length: number): Expected =>
    dropped(`unreadable: value: holds ${length} events, at most 50 are allowed`);
  return [
    toList('none', '[]', IGNORED),
    toList('fifty', list(50), UNMATCHED),
    ...[51, 8_000].map((length) => toList(`${length}`, list(length), tooMany(length))),
    ...[51, 500_000].map((length) =>
      toList(
        `${length} that are none`,
        list(length, () => 0),
        tooMany(length),
      ),
    ),
    toList(
      'fifty, one of which is none',
      list(50, (at) => (at === 25 ? null : event(at))),
      dropped('unreadable: 25: Invalid input'),
    ),
    toList('no list', '{"length":1e9}', dropped('unreadable: value: Invalid input')),
    toList('no JSON', MARKER, dropped('the translator failed: SyntaxError')),
  ];
}

function times(): HostileInput[] {
  const kind = 'times';
  const good = [
    '2026-01-31T18:30:00Z',
    '2026-01-31T18:30:00.123456789Z',
    '2024-02-29T00:00:00Z',
    '0002-01-01T00:00:00Z',
    '9998-12-31T23:59:59Z',
    '2026-01-31T18:30:00+14:00',
    '2026-01-31T18:30:00+15:59',
    '1969-12-31T23:59:59Z',
  ];
  const bad = [
    '2026-01-31T18:30:00',
    '2026-01-31 18:30:00Z',
    '2026-02-30T18:30:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T23:59:61Z',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
    '+275760-09-13T00:00:00Z',
    '10000-01-01T00:00:00Z',
    '2026-01-31T18:30:00+16:00',
    '2026-01-31T18:30:00+0100',
    '2026-01-31T18:30:00Z ',
    'now',
    'infinity',
    '1767225600',
    '4714-11-24 BC',
    `2026-01-31T18:30:00.${'1'.repeat(60)}Z`,
    '２０２６-01-31T18:30:00Z',
    '2026-01-31T18:30:00\0Z',
    '2026-01-31T18:30:00Z\n',
    MARKER,
  ];
  return [
    ...good.map((time) => webhook(kind, time, statusText({ occurredAt: time }), UNMATCHED)),
    ...bad.map((time) => webhook(kind, time, statusText({ occurredAt: time }), dropped('unreadable: '))),
  ];
}
