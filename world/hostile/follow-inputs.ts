import { followSigner, signFollowToken, type FollowSigner } from '../members/sign-follow-token.ts';
import {
  MARKER,
  NO_ENDPOINT,
  REFUSED as UNAUTHORIZED,
  UNREADABLE,
  toFollow,
  words,
  type Expected,
  type HostileInput,
  type Request,
} from './hostile-input.ts';

const AUDIENCE = 'https://expediter.test/follow';
const ours = followSigner('ES256', 'ours');
const anonymous = followSigner('ES256', 'ours');
const secret = followSigner('HS256', 'secret');
const inAnHour = Math.floor(Date.now() / 1000) + 3600;
const right = { sub: 'h-follow', aud: AUDIENCE, exp: inAnHour };

/** What lets `FOLLOW_TOKEN` in. */
export const FOLLOW_ENV = {
  FOLLOW_TOKEN_KEYS: JSON.stringify({ keys: [ours.jwk, secret.jwk] }),
  FOLLOW_TOKEN_AUDIENCE: AUDIENCE,
  MEMBER_ORIGINS: 'https://order.expediter.test',
};
/** It is right in everything, for an order that nobody has. */
export const FOLLOW_TOKEN = signFollowToken(ours, right);
const QUERY = `?token=${FOLLOW_TOKEN}&member=${MARKER}`;
const HEAD = ['Host: x', `Cookie: ${MARKER}`];

/** The whole answer but for its date: whatever is wrong, nothing of it differs. */
const REFUSED: Expected = {
  status: 401,
  exactly: {
    vary: 'origin',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'www-authenticate': 'Bearer realm="expediter"',
    'content-type': 'application/json; charset=utf-8',
    'content-length': '24',
    connection: 'close',
    body: '{"error":"unauthorized"}',
  },
};
const FOLLOWED: Expected = { status: 200, outcome: 'followed' };

/** Requests to follow an order with what opens nothing; and a few that look as if they did not, and do. */
export function followInputs(): HostileInput[] {
  return [...tokens(), ...ways(), ...addresses(), ...heads()];
}

/** Of what is wrong in a token itself one of each: the tests of its verifier have them all. */
function tokens(): HostileInput[] {
  const at = (name: string, token: string, expected = REFUSED): HostileInput =>
    toFollow('follow tokens')(name, expected, { path: `/follow?token=${token}&member=${MARKER}` });
  const signed = (name: string, claims: object, header: object = {}, by: FollowSigner = ours): HostileInput =>
    at(name, signFollowToken(by, { ...right, ...claims, member: MARKER }, header));
  return [
    at('right', FOLLOW_TOKEN, FOLLOWED),
    at('right, with a secret', signFollowToken(secret, right), FOLLOWED),
    at('of a strange order', signFollowToken(ours, { ...right, sub: `${MARKER}/../\n🍕` }), FOLLOWED),
    signed('of a stranger who brings his key', {}, { jku: `http://127.0.0.1:9/${MARKER}`, kid: MARKER }, anonymous),
    ...[{ aud: MARKER }, { exp: 1 }, { sub: `${MARKER}\0` }].map((claims) => signed(JSON.stringify(claims), claims)),
    signed('alg none', {}, { alg: 'none' }),
    signed('of 10 kB', { more: MARKER.repeat(1_000) }),
    at('cut short', FOLLOW_TOKEN.slice(0, -4)),
    at('with a space before', `%20${FOLLOW_TOKEN}`),
    ...['=', '%00', FOLLOW_TOKEN].map((more, nth) => at(`longer: ${nth}`, `${FOLLOW_TOKEN}${more}`)),
    at('escaped twice', FOLLOW_TOKEN.replaceAll('.', '%252e')),
  ];
}

/** How a token is brought. */
function ways(): HostileInput[] {
  const at = (name: string, query: string, lines: string[] = [], expected = REFUSED): HostileInput =>
    toFollow('ways to bring a follow token')(name, expected, { path: `/follow?${query}`, lines: [...HEAD, ...lines] });
  const t = FOLLOW_TOKEN;
  const escaped = Array.from(t, (letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  return [
    at('none', ''),
    at('in the header', '', [`Authorization: Bearer ${t}`], FOLLOWED),
    at('in the query, each letter escaped', `token=${escaped}`, [], FOLLOWED),
    at('in the header, the query being wrong', `token=${MARKER}`, [`Authorization: Bearer ${t}`], FOLLOWED),
    at('in the query, beside another scheme', `token=${t}`, [`Authorization: Basic ${MARKER}`], FOLLOWED),
    at('in the query, the header being wrong', `token=${t}`, [`Authorization: Bearer ${MARKER}`]),
    at('twice in the query', `token=${t}&token=${t}`),
    at('a second one that is wrong', `token=${t}&token=${MARKER}`),
    at('as a list', `token[]=${t}&token[0]=${t}`),
    at('under another name', `Token=${t}&access_token=${t}&token%00=${t}`),
    at('of a prototype', `__proto__[token]=${t}&constructor.token=${t}`),
    at('in a cookie', '', [`Cookie: token=${t}`]),
    at('in a header of its own', '', [`Token: ${t}`]),
    ...words(`% %zz %ff %00 & == ? ; %c0%ae .. ${MARKER} %E0%A4%A +`).map((word) =>
      at(`the word ${word}`, `token=${word}`),
    ),
    at('the word é', 'token=é', [], UNREADABLE),
    at('a thousand parameters', `${MARKER}=x&`.repeat(1_000)),
  ];
}

function addresses(): HostileInput[] {
  const at = (path: string, expected: Expected, method = 'GET'): HostileInput =>
    toFollow('addresses beside /follow')(`${method} ${path}`, expected, { method, path: path + QUERY });
  const beside = ['follow/', '/follow', 'Follow', 'follow/h-follow', `follow/${MARKER}`, 'follow%2f', 'x/../follow'];
  return [
    ...beside.map((path) => at(`/${path}`, NO_ENDPOINT)),
    at('/%66ollow', FOLLOWED),
    // What cannot be decoded is refused as a webhook's path is.
    ...['/follow%', '/follow%zz', '/follow/%c3'].map((path) => at(path, UNAUTHORIZED)),
    ...['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND'].map((method) => at('/follow', NO_ENDPOINT, method)),
    ...['get', 'GETT', '\0GET'].map((method) => at('/follow', UNREADABLE, method)),
  ];
}

function heads(): HostileInput[] {
  const at = (name: string, line: string, expected: Expected, request: Request = {}): HostileInput =>
    toFollow('heads of who follows')(name, expected, { path: `/follow${QUERY}`, lines: [...HEAD, line], ...request });
  return [
    ...['-1', '1e3', '9'.repeat(400), MARKER, '1, 2', 'ÿ', '0x10', ' '].map((last) =>
      at(`Last-Event-ID ${last.slice(0, 20)}`, `Last-Event-ID: ${last}`, FOLLOWED),
    ),
    ...['Last-Event-ID: \x01', 'X: a\0b', 'no colon', 'X: a\r\n folded'].map((line) =>
      at(`unreadable ${JSON.stringify(line)}`, line, UNREADABLE),
    ),
    at('too long', `X: ${'x'.repeat(20_000)}`, UNAUTHORIZED),
    at('a URL that is too long', 'X: y', UNAUTHORIZED, { path: `/follow?token=${MARKER.repeat(5_000)}` }),
    at('upgrade', 'Connection: Upgrade\r\nUpgrade: websocket', FOLLOWED),
    at('expects', 'Expect: a-miracle', FOLLOWED),
    at('a body', 'X: y', FOLLOWED, { body: MARKER, length: MARKER.length }),
  ];
}
