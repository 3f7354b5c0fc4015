import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const AUDIENCE = 'https://expediter.test/follow';
const { publicKey, privateKey } = await generateKeyPair('ES256');

/** What lets members follow orders by the tokens of `memberToken`. */
export const FOLLOW_ENV = {
  FOLLOW_TOKEN_KEYS: JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'platform' }] }),
  FOLLOW_TOKEN_AUDIENCE: AUDIENCE,
};

/** Signs a token as a platform would. @param seconds for which it is valid */
export async function memberToken(serviceOrderId: string, seconds = 600): Promise<string> {
  return new SignJWT({ sub: serviceOrderId, aud: AUDIENCE, exp: Math.floor(Date.now() / 1000) + seconds })
    .setProtectedHeader({ alg: 'ES256', kid: 'platform' })
    .sign(privateKey);
}
