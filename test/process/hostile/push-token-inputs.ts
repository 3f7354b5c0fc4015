import { MARKER, REFUSED, recorded, toPush, type HostileInput, type PushTokenChanges } from './hostile-input.ts';

/** Pushes that would be right, but for the token they carry. */
export function pushTokenInputs(): HostileInput[] {
  return [...claims(), ...forgeries(), ...mutilated(), ...authorizations()];
}

/** A push whose body is right, and whose token is not; `n` tells the bodies of those apart that are accepted. */
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
      .map((each, i) => (i === nth ? change(each) : each))
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
  const words = ['', 'Bearer', `Basic ${MARKER}`, MARKER, 'Bearer ÿ', 'Bearer ..', '__proto__', 'Bearer\tx'];
  const right = 'Authorization: Bearer <pushToken>';
  const inputs: [name: string, ...lines: string[]][] = [
    ['none'],
    ...words.map((word, nth): [string, string] => [`words ${nth}`, `Authorization: ${word}`]),
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
    return toPush('Authorization headers')(name, expected, {
      body: `{"orderId":"${order}"}`,
      lines: ['Host: x', ...lines],
    });
  });
}
