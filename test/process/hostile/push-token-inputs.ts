import {
  MARKER,
  recorded,
  toPush,
  type Expected,
  type HostileInput,
  type PushTokenChanges,
  type Say,
} from './hostile-input.ts';

/** Pushes that would be right, but for the token they carry. */
export function pushTokenInputs(): HostileInput[] {
  return [...claims(), ...forgeries(), ...mutilated(), ...authorizations()];
}

/** A push whose body is right, and whose token is not; `n` tells the bodies of those apart that are accepted. */
function withToken(
  kind: string,
  name: string,
  about: PushTokenChanges | (() => PushTokenChanges),
  expected: 401 | 204,
): HostileInput {
  const order = `h-token-${kind}-${name.replaceAll(MARKER, 'm')}`.replaceAll(/[^\w-]/g, '_').slice(0, 250);
  return toPush(
    kind,
    name,
    {
      body: JSON.stringify({ orderId: order }),
      lines: [
        'Host: x',
        `Cookie: ${MARKER}`,
        ({ signPushToken }) => `Authorization: Bearer ${signPushToken(typeof about === 'function' ? about() : about)}`,
      ],
    },
    { expected: expected === 204 ? recorded(order) : { status: 401 } },
  );
}

function claims(): HostileInput[] {
  const kind = 'OIDC tokens: claims';
  const audience = 'https://expediter.test/pubsub/push';
  const account = 'push@test-project.iam.gserviceaccount.com';
  const junk = [undefined, null, true, 0, '', MARKER, [MARKER], {}, '__proto__', '\0'];
  const wrong: Record<string, unknown[]> = {
    iss: [
      ...junk,
      'https://accounts.google.com',
      'accounts.google.com',
      'http://127.0.0.1',
      ['https://accounts.google.com'],
    ],
    aud: [
      ...junk,
      `${audience}/`,
      audience.toUpperCase(),
      audience.slice(0, -1),
      ` ${audience}`,
      `${audience}\0`,
      [audience],
      [audience, MARKER],
      `${audience}?`,
      audience.replace('https', 'http'),
      { 0: audience, length: 1 },
    ],
    email: [
      ...junk,
      account.toUpperCase(),
      ` ${account}`,
      `${account} `,
      `${account}.evil.example`,
      `x${account}`,
      [account],
      account.replace('@', '%40'),
      `${account}\0`,
      'push@other.iam.gserviceaccount.com',
      'аccount@x',
    ],
    email_verified: [...junk.filter((value) => value !== true), 'true', 'yes', '1', [true], { valueOf: true }],
    exp: [...junk.filter((value) => value !== undefined), 'tomorrow', '9999999999', -1, 1e-9, -1e308],
    nbf: ['', ' ', MARKER, '0', [], {}, true, false, null, 9_999_999_999, 1e308],
  };
  const seconds = (from: number): number => Math.floor(Date.now() / 1000) + from;
  return [
    ...Object.entries(wrong).flatMap(([claim, values]) =>
      values.map((value, at) =>
        withToken(kind, `${claim} ${at}: ${JSON.stringify(value) ?? 'left out'}`, { claims: { [claim]: value } }, 401),
      ),
    ),
    withToken(kind, 'no end', { claims: { exp: undefined } }, 401),
    ...[-1, -60, -3_600, -86_400, -1e9].map((from) =>
      withToken(kind, `expired ${-from} s ago`, () => ({ claims: { exp: seconds(from) } }), 401),
    ),
    ...[5, 60, 3_600, 1e9].map((from) =>
      withToken(kind, `to come in ${from} s`, () => ({ claims: { nbf: seconds(from) } }), 401),
    ),
    withToken(
      kind,
      'everything wrong',
      { claims: { iss: MARKER, aud: MARKER, email: MARKER, email_verified: MARKER, exp: 1 } },
      401,
    ),
    ...[undefined, '', MARKER, 7, {}].map((sub) =>
      withToken(kind, `sub ${JSON.stringify(sub) ?? 'left out'}, which nobody asks for`, { claims: { sub } }, 204),
    ),
    withToken(
      kind,
      'right, with 4 kB of other claims',
      { claims: { x: MARKER.repeat(700), __proto__: { admin: true } } },
      204,
    ),
    withToken(kind, 'right, to end in a century', () => ({ claims: { exp: seconds(3e9) } }), 204),
  ];
}

function forgeries(): HostileInput[] {
  const kind = 'OIDC tokens: forgeries';
  const at = (name: string, about: PushTokenChanges, expected: 401 | 204 = 401): HostileInput =>
    withToken(kind, name, about, expected);
  return [
    ...['none', 'None', 'NONE', 'nOnE', ' none', 'none ', '', 'null'].flatMap((alg) => [
      at(`alg "${alg}", not signed`, { header: { alg }, signer: 'nobody' }),
      at(`alg "${alg}", signed all the same`, { header: { alg } }),
    ]),
    ...['HS256', 'HS384', 'HS512'].map((alg) =>
      at(`${alg} with the public key`, { header: { alg }, signer: 'public' }),
    ),
    at('HS256 with the public key, said to be RS256', { signer: 'public' }),
    ...['RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => at(`${alg} with our key`, { header: { alg } })),
    ...['ES256', 'EdDSA', 'RS1', 'rs256', 'RS256 ', 'RSA-OAEP', 'A256GCM', 'dir', '__proto__', 'constructor'].map(
      (alg) => at(`alg "${alg}"`, { header: { alg } }),
    ),
    at('no alg', { header: { alg: undefined } }),
    at('a stranger who takes our kid', { signer: 'stranger' }),
    at('a stranger with a kid of his own', { header: { kid: MARKER }, signer: 'stranger' }),
    at('our key under the kid of another of our keys', { header: { kid: 'stand-in' } }),
    at('our key without a kid, where there are two', { header: { kid: undefined } }),
    ...[
      MARKER,
      '',
      ' hostile',
      'HOSTILE',
      'hostile\0',
      '../../dev/null',
      "' UNION SELECT 'x",
      '__proto__',
      'constructor',
      'x'.repeat(5_000),
      '🍕',
    ].map((kid, nth) => at(`unknown kid ${nth}`, { header: { kid } })),
    ...[
      { jku: 'http://127.0.0.1:9/jwks' },
      { x5u: 'http://127.0.0.1:9/x5u' },
      { jwk: { kty: 'oct', k: 'AAAA' } },
      { x5c: ['AAAA'] },
      { jwk: MARKER },
    ].map((header) =>
      at(`a stranger with ${Object.keys(header)[0]} ${JSON.stringify(header).length}`, { header, signer: 'stranger' }),
    ),
    ...[[MARKER], ['b64'], ['exp'], [''], [], [7], ['toString'], ['__proto__'], 'b64', null, {}, [MARKER, MARKER]].map(
      (crit, nth) => at(`crit ${nth}`, { header: { crit, [MARKER]: 1, exp: 1, toString: 1 } }),
    ),
    at('a payload that is not packed', { header: { crit: ['b64'], b64: false } }),
    at('right, whatever its typ and cty', { header: { typ: MARKER, cty: MARKER } }, 204),
  ];
}

function mutilated(): HostileInput[] {
  const kind = 'OIDC tokens: mutilated';
  const at = (name: string, change: (token: string) => string): HostileInput =>
    toPush(
      kind,
      name,
      {
        body: `{"orderId":"${name}"}`,
        lines: ['Host: x', ({ pushToken }) => `Authorization: Bearer ${change(pushToken)}`],
      },
      { expected: { status: 401 } },
    );
  const part = (nth: number, change: (part: string) => string) => (token: string) =>
    token
      .split('.')
      .map((each, i) => (i === nth ? change(each) : each))
      .join('.');
  const flipped = (where: number) => (text: string) => {
    const index = Math.floor((text.length - 2) * where);
    return `${text.slice(0, index)}${text[index] === 'A' ? 'Q' : 'A'}${text.slice(index + 1)}`;
  };
  const changes: [string, (part: string) => string][] = [
    ['empty', () => ''],
    ['cut short', (text) => text.slice(0, -4)],
    ['longer', (text) => `${text}AAAA`],
    ['no base64', (text) => `!${text}`],
    ['not JSON', () => Buffer.from(MARKER).toString('base64url')],
    ['null', () => Buffer.from('null').toString('base64url')],
    ['a list', () => Buffer.from('[]').toString('base64url')],
    ['no UTF-8', () => Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')],
    ['deep', () => Buffer.from('['.repeat(3_000)).toString('base64url')],
    ['a NUL', () => 'AA'],
    ['twice', (text) => text + text],
    ['backwards', (text) => text.split('').toReversed().join('')],
  ];
  return [
    ...[0, 1, 2].flatMap((nth) => {
      const name = ['header', 'payload', 'signature'][nth] ?? '';
      return [
        ...changes.map(([what, change]) => at(`${name}: ${what}`, part(nth, change))),
        ...[0, 0.5, 1].map((where) => at(`${name}: another letter at ${where}`, part(nth, flipped(where)))),
      ];
    }),
    at('without its signature', (token) => token.slice(0, token.lastIndexOf('.'))),
    at('with an empty signature', (token) => token.slice(0, token.lastIndexOf('.') + 1)),
    at('with a part more', (token) => `${token}.AAAA`),
    at('with five parts', (token) => `${token}.AAAA.AAAA`),
    at('with a dot before', (token) => `.${token}`),
    at('with a dot behind', (token) => `${token}.`),
    at('its parts in another order', (token) => token.split('.').toReversed().join('.')),
    at('commas for dots', (token) => token.replaceAll('.', ',')),
    at('dots alone', () => '..'),
    at('a thousand dots', () => '.'.repeat(1_000)),
    at('of 12 kB', () => MARKER.repeat(2_000)),
    at('of 100 kB', () => 'x'.repeat(100_000)),
    at('in quotes', (token) => `"${token}"`),
    at('with another behind it', (token) => `${token} ${token}`),
    at('with another behind a comma', (token) => `${token},${token}`),
    at('as JSON', (token) =>
      JSON.stringify({ protected: token.split('.')[0], payload: token.split('.')[1], signature: token.split('.')[2] }),
    ),
  ];
}

function authorizations(): HostileInput[] {
  const kind = 'Authorization headers';
  const at = (name: string, lines: Say[], expected?: Expected): HostileInput =>
    toPush(
      kind,
      name,
      { body: `{"orderId":"h-authorization-${name.replaceAll(/\W/g, '_')}"}`, lines: ['Host: x', ...lines] },
      { expected: expected ?? { status: 401 } },
    );
  const right = (name: string, lines: Say[]): HostileInput =>
    at(name, lines, recorded(`h-authorization-${name.replaceAll(/\W/g, '_')}`));
  const words = [
    '',
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Bearer null',
    'Bearer undefined',
    'Bearer {}',
    `Basic ${MARKER}`,
    `Digest ${MARKER}`,
    'Negotiate',
    MARKER,
    'Bearer: x',
    'bearer',
    'BearerBearer x',
    `Bearer ${MARKER}`,
    'Bearer ÿ',
    'Bearer %00',
    'Bearer a.b.c',
    'Bearer ..',
    'Token x',
    'OAuth x',
    '=',
    ',',
    'Bearer x, Bearer y',
    'null',
    `Bearer ${'='.repeat(100)}`,
    '__proto__',
    'Bearer\tx',
  ];
  return [
    at('none', []),
    ...words.map((word, nth) => at(`words ${nth}`, [Buffer.from(`Authorization: ${word}`, 'latin1')])),
    at('without the scheme', [({ pushToken }) => `Authorization: ${pushToken}`]),
    at('of another scheme', [({ pushToken }) => `Authorization: Basic ${pushToken}`]),
    at('behind a tab', [({ pushToken }) => `Authorization: Bearer\t${pushToken}`]),
    at('under another name', [
      ({ pushToken }) => `X-Authorization: Bearer ${pushToken}`,
      ({ pushToken }) => `Proxy-Authorization: Bearer ${pushToken}`,
    ]),
    at('in a cookie', [({ pushToken }) => `Cookie: authorization=Bearer%20${pushToken}`]),
    at('of a webhook', [({ token }) => `Authorization: Bearer ${token}`]),
    at('twice, the first one wrong', [
      'Authorization: Bearer x',
      ({ pushToken }) => `Authorization: Bearer ${pushToken}`,
    ]),
    right('right, in small letters', [({ pushToken }) => `authorization: bearer ${pushToken}`]),
    right('right, behind spaces', [({ pushToken }) => `Authorization:   Bearer   ${pushToken}  `]),
    right('right, and a second that is passed over', [
      ({ pushToken }) => `Authorization: Bearer ${pushToken}`,
      'Authorization: Bearer x',
    ]),
  ];
}
