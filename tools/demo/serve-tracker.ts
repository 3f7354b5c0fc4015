import { readFile } from 'node:fs/promises';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { serveHttp, sendJson, type HttpServer } from '../../world/network/serve-http.ts';

export type Tracker = HttpServer & {
  /** Environment variables that make the service accept this platform's follow tokens, and calls from its page. */
  env: Record<'FOLLOW_TOKEN_KEYS' | 'FOLLOW_TOKEN_AUDIENCE' | 'MEMBER_ORIGINS', string>;
  /** The lifetime of new tokens. May be changed at any time. */
  lifetimeS: number;
  /** The page that follows an order, with a token for it in the fragment. */
  urlOf(serviceOrderId: string): Promise<string>;
  /** `/guest` leads to the page of this order. An order is over after a minute, so a link to one would soon be of no use. */
  newest: (() => string) | undefined;
  /** The name of an order's restaurant, which only the platform knows. */
  restaurantOf: ((serviceOrderId: string) => string | undefined) | undefined;
};

const AUDIENCE = 'expediter-demo';
/** Short, so that the page has to renew its token. */
const LIFETIME_S = 600;
/** A token can be exchanged for a new one for this time after it expired. */
const RENEWABLE_S = 86_400;

const FILES = new Map(
  Object.entries({
    '/track': { file: 'tracker/index.html', type: 'text/html' },
    '/tracker/tracker.css': { file: 'tracker/tracker.css', type: 'text/css' },
    '/tracker/tracker.js': { file: 'tracker/tracker.js', type: 'text/javascript' },
    '/tracker/icon.svg': { file: 'tracker/icon.svg', type: 'image/svg+xml' },
    '/tracker/follow.js': { file: '../../packages/follow/follow.js', type: 'text/javascript' },
  }),
);

/**
 * Serves the order tracker, as the sample platform: the page, the public key of its follow tokens, and new tokens in
 * exchange for old ones. A real platform would instead check in its session whose order it is.
 * @param serviceUrl the address of the service, whose `/follow` the page calls
 */
export async function serveTracker(serviceUrl: string, port = 0): Promise<Tracker> {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'demo', alg: 'ES256', use: 'sig' }] };
  const tokenFor = (serviceOrderId: string): Promise<string> =>
    new SignJWT()
      .setProtectedHeader({ alg: 'ES256', kid: 'demo' })
      .setSubject(serviceOrderId)
      .setAudience(AUDIENCE)
      .setExpirationTime(Math.floor(Date.now() / 1000) + tracker.lifetimeS)
      .sign(privateKey);
  const renew = async (token: string): Promise<{ token: string; restaurant: string | undefined }> => {
    const own = { algorithms: ['ES256'], audience: AUDIENCE, clockTolerance: RENEWABLE_S };
    const { payload } = await jwtVerify(token, publicKey, own);
    const { sub = '' } = payload;
    return { token: await tokenFor(sub), restaurant: tracker.restaurantOf?.(sub) };
  };

  const headers = {
    'content-security-policy': [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      `connect-src 'self' ${serviceUrl}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  };
  const server = await serveHttp(async (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    const { method, url = '' } = request;
    const found = FILES.get(url);
    const newest = url === '/guest' ? tracker.newest?.() : undefined;
    if (method === 'GET' && newest !== undefined) {
      response.writeHead(302, { location: await tracker.urlOf(newest) }).end();
    } else if (method === 'GET' && found !== undefined) {
      const text = await readFile(new URL(found.file, import.meta.url), 'utf8');
      response.setHeader('content-type', `${found.type}; charset=utf-8`);
      response.end(text.replace('{{follow-url}}', `${serviceUrl}/follow`));
    } else if (method === 'GET' && url === '/.well-known/jwks.json') {
      sendJson(response, 200, jwks);
    } else if (method === 'POST' && url === '/follow-token') {
      const renewed = await renew(request.headers.authorization?.replace(/^Bearer /, '') ?? '').catch(() => undefined);
      if (renewed !== undefined) sendJson(response, 200, renewed);
      else sendJson(response, 401, { error: 'the token is not from this platform, or is too old' });
    } else sendJson(response, 404, { error: 'not found' });
  }, port);
  const tracker: Tracker = {
    ...server,
    env: {
      FOLLOW_TOKEN_KEYS: `${server.url}/.well-known/jwks.json`,
      FOLLOW_TOKEN_AUDIENCE: AUDIENCE,
      MEMBER_ORIGINS: server.url,
    },
    lifetimeS: LIFETIME_S,
    newest: undefined,
    restaurantOf: undefined,
    urlOf: async (serviceOrderId) => `${server.url}/track#${await tokenFor(serviceOrderId)}`,
  };
  return tracker;
}
