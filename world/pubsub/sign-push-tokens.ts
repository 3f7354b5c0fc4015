import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { sendJson, serveHttp } from '../network/serve-http.ts';

/** Claims of a push token. A claim given as `undefined` is left out. */
export type PushClaims = Record<string, unknown>;

export type PushTokens = {
  issuer: string;
  jwksUrl: string;
  /** Signs a token as Google would, with these claims in place of the usual ones. */
  sign(claims: PushClaims): Promise<string>;
  /** Like `sign` for one account and audience, but cached for a while, as Google does. */
  tokenFor(email: string, audience: string): Promise<string>;
  stop(): Promise<void>;
};

const LIFETIME_S = 3600;
const REUSED_FOR_MS = (LIFETIME_S / 2) * 1000;

/** Signs as accounts.google.com does, RS256 with a `kid`, and serves the public key over HTTP. */
export async function signPushTokens(issuer?: string): Promise<PushTokens> {
  const kid = 'stand-in';
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' }] };
  const server = await serveHttp((request, response) => {
    if (request.url === '/jwks') sendJson(response, 200, keys);
    else sendJson(response, 404, { error: 'only /jwks is here' });
  });
  const iss = issuer ?? 'https://accounts.google.com';
  const reusable = new Map<string, { token: Promise<string>; signedAt: number }>();

  function sign(claims: PushClaims): Promise<string> {
    const iat = Math.floor(Date.now() / 1000);
    const usual = { iss, sub: '110000000000000000000', email_verified: true, iat, exp: iat + LIFETIME_S };
    const payload = JSON.parse(JSON.stringify({ ...usual, ...claims })) as PushClaims;
    return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' }).sign(privateKey);
  }

  return {
    issuer: iss,
    jwksUrl: `${server.url}/jwks`,
    sign,
    tokenFor(email, audience) {
      const name = JSON.stringify([email, audience]);
      const known = reusable.get(name);
      if (known !== undefined && Date.now() - known.signedAt < REUSED_FOR_MS) return known.token;
      const token = sign({ email, aud: audience });
      reusable.set(name, { token, signedAt: Date.now() });
      return token;
    },
    stop: () => server.stop(),
  };
}
