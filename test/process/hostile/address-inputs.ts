import {
  MARKER,
  NO_ENDPOINT,
  REFUSED,
  UNMATCHED,
  UNREADABLE,
  statusText,
  toWebhook,
  words,
  type Expected,
  type HostileInput,
  type Say,
} from './hostile-input.ts';

/** Paths and tokens that open nothing at the return door; and a few that look as if they did not, and do. */
export function addressInputs(): HostileInput[] {
  return [...paths(), ...tokens()];
}

function paths(): HostileInput[] {
  const at = (name: string, path: string, expected: Expected): HostileInput =>
    toWebhook('paths')(name, expected, { path: `${path}?token=<token>`, body: statusText({}) });
  const integrations = words('constructor __proto__ square STANDARD %2e%2e ..%2f..%2fetc standard%00 %zz %c3');
  const locations = words('signed nowhere CLUB club%2f club%00 %20club %zz %ed%a0%80 __proto__');
  const beneath = words(`/webhook /webhook/standard/ /webhook/standard/club/ /webhook/standard/club/orders
    /webhook//standard/club /webhook/../webhook/standard/club /webhook/standard%2fclub /webhook/standard/club;x=y
    /webhook/${'a/'.repeat(4e3)}`);
  const right = words(`/webhook/standard/club /%77ebhook/standard/%63%6C%75%62
    http://evil.example/webhook/standard/club`);
  const beside = words(`/ //webhook/standard/club /WEBHOOK/standard/club /webhook%2fstandard/club /metrics
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
