import {
  MARKER,
  UNMATCHED,
  statusText,
  toWebhook,
  type Expected,
  type HostileInput,
  type Say,
  type Target,
} from './hostile-input.ts';

/** Paths and tokens that open nothing at the return door; and a few that look as if they did not, and do. */
export function addressInputs(): HostileInput[] {
  return [...paths(), ...tokens()];
}

const REFUSED: Expected = { status: 401 };
const UNREADABLE: Expected = { status: 500 };

function paths(): HostileInput[] {
  const kind = 'paths';
  const at = (name: string, path: string, expected: Expected): HostileInput =>
    toWebhook(
      kind,
      name,
      { path: ({ token }) => Buffer.from(`${path}?token=${token}`, 'latin1'), body: statusText({}) },
      { expected },
    );
  const integrations = [
    'constructor',
    '__proto__',
    'square',
    'STANDARD',
    '%2e%2e',
    '..%2f..%2fetc',
    'standard%00',
    '%zz',
    '%c3',
    'x'.repeat(1e3),
  ];
  const locations = [
    'signed',
    'nowhere',
    'CLUB',
    'club%2f',
    'club%00',
    '%20club',
    '%zz',
    '%ed%a0%80',
    '__proto__',
    'x'.repeat(256),
    '%2f'.repeat(3e3),
    MARKER,
  ];
  const right = [
    '/webhook/standard/club',
    '/%77ebhook/standard/%63%6C%75%62',
    'http://evil.example/webhook/standard/club',
    ' /webhook/standard/club',
  ];
  const beneath = [
    '/webhook',
    '/webhook/standard/',
    '/webhook/standard/club/',
    '/webhook/standard/club/orders',
    '/webhook//standard/club',
    '/webhook/../webhook/standard/club',
    '/webhook/standard%2fclub',
    '/webhook/standard/club;x=y',
    `/webhook/${'a/'.repeat(4e3)}`,
  ];
  const beside = [
    '/',
    '//webhook/standard/club',
    '/WEBHOOK/standard/club',
    '/webhook%2fstandard/club',
    '/metrics',
    '/../../etc/passwd',
    '*',
    `/${'x'.repeat(1e4)}`,
  ];
  const unreadable = [
    'webhook/standard/club',
    '',
    '/webhook/standard/club x',
    '/webhook/standard/\0',
    '/webhook/standard/cl\xfcb',
  ];
  return [
    ...integrations.map((name) => at(`the integration ${name.slice(0, 40)}`, `/webhook/${name}/club`, REFUSED)),
    ...locations.map((name) => at(`the location ${name.slice(0, 40)}`, `/webhook/standard/${name}`, REFUSED)),
    ...beneath.map((path) => at(path.slice(0, 60), path, REFUSED)),
    ...right.map((path) => at(path, path, UNMATCHED)),
    ...beside.map((path) => at(path.slice(0, 60), path, { status: 404 })),
    ...unreadable.map((path) => at(JSON.stringify(path), path, UNREADABLE)),
  ];
}

function tokens(): HostileInput[] {
  const kind = 'tokens';
  const at = (
    name: string,
    query: (target: Target) => string,
    expected: Expected = REFUSED,
    lines: Say[] = [],
  ): HostileInput =>
    toWebhook(
      kind,
      name,
      {
        path: (target) => Buffer.from(`/webhook/standard/club${query(target)}`, 'latin1'),
        body: statusText({}),
        lines: ['Host: x', ...lines],
      },
      { expected },
    );
  const made = ['', '%zz', '%00', '__proto__', MARKER, 'x'.repeat(43), '%41'.repeat(4e3)];
  return [
    ...made.map((token) => at(`made up: ${token.slice(0, 40)}`, () => `?token=${token}`)),
    at('100 kB', () => `?token=${MARKER.repeat(16_000)}`),
    at('the right one and 100 kB more', ({ token }) => `?token=${token}&x=${'y'.repeat(100_000)}`),
    at(
      'another letter at 21',
      ({ token }) => `?token=${token.slice(0, 21)}${token[21] === 'A' ? 'B' : 'A'}${token.slice(22)}`,
    ),
    at('none', () => ''),
    at('padded', ({ token }) => `?token=${token}=`),
    at('with a NUL behind', ({ token }) => `?token=${token}%00`),
    at('with a space behind', ({ token }) => `?token=${token}%20`),
    at('twice', ({ token }) => `?token=${token}&token=${token}`),
    at('twice, the first wrong', ({ token }) => `?token=x&token=${token}`),
    at('as a list', ({ token }) => `?token[]=${token}`),
    at('under another name', ({ token }) => `?Token=${token}`),
    at('of a location with a signature', ({ signedToken }) => `?token=${signedToken}`),
    at('of another integration', ({ listToken }) => `?token=${listToken}`),
    at('of a push', ({ pushToken }) => `?token=${pushToken}`),
    at('in a header instead', () => '', REFUSED, [({ token }) => `Authorization: Bearer ${token}`]),
    at('in a header of its own instead', () => '?a', REFUSED, [
      ({ token }) => `Token: ${token}`,
      ({ token }) => `X-Token: ${token}`,
    ]),
    at('unreadable: a raw NUL', ({ token }) => `?token=${token}\0`, UNREADABLE),
    at('unreadable: a raw byte', ({ token }) => `?token=${token}\xff`, UNREADABLE),
    at('right, in a fragment, which no sender sends', ({ token }) => `#token=${token}`, UNMATCHED),
    at(
      'right, packed',
      ({ token }) => `?token=${token.replaceAll(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`,
      UNMATCHED,
    ),
    at('right, its name packed', ({ token }) => `?%74oken=${token}`, UNMATCHED),
    at('right, among others', ({ token }) => `?a=1&__proto__=2&token=${token}&b[]=3&%zz`, UNMATCHED),
    at('right, before a fragment', ({ token }) => `?token=${token}&x=1#y`, UNMATCHED),
    at('right, among a thousand others', ({ token }) => `?${'a=1&'.repeat(1_000)}token=${token}`, UNMATCHED),
    at('right, repeated by a proxy in headers', ({ token }) => `?token=${token}&proxy`, UNMATCHED, [
      ({ token }) => `X-Original-URI: /webhook/standard/club?token=${token}`,
      ({ token }) => `Referer: http://x/?token=${token}&a=${token}`,
    ]),
  ];
}
