import { createHmac, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** What a platform signs follow tokens with, and the key of a JWK Set that verifies them. */
export type FollowSigner = { alg: string; kid: string; jwk: Record<string, unknown>; sign(text: string): Buffer };

/** Makes a signer by hand, which signs what no library would. */
export function followSigner(alg: 'ES256' | 'EdDSA' | 'Ed25519' | 'RS256' | 'HS256', kid: string): FollowSigner {
  if (alg === 'HS256') {
    const secret = randomBytes(32);
    const jwk = { kty: 'oct', k: secret.toString('base64url'), kid };
    return { alg, kid, jwk, sign: (text) => createHmac('sha256', secret).update(text).digest() };
  }
  const { publicKey, privateKey } = keyPair(alg);
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid };
  const [hash, key] = [alg.startsWith('Ed') ? null : 'sha256', { key: privateKey, dsaEncoding: 'ieee-p1363' as const }];
  return { alg, kid, jwk, sign: (text) => sign(hash, Buffer.from(text), key) };
}

function keyPair(alg: string): { publicKey: KeyObject; privateKey: KeyObject } {
  if (alg === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 });
  return alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
}

/** A token of these claims, or of this JSON. A claim or header given as `undefined` is left out. */
export function signFollowToken(
  { alg, kid, sign }: Pick<FollowSigner, 'alg' | 'kid' | 'sign'>,
  claims: object | string,
  header: object | string = {},
): string {
  const json = (about: object | string): string => (typeof about === 'string' ? about : JSON.stringify(about));
  const signed = [typeof header === 'string' ? header : { alg, kid, ...header }, claims]
    .map((part) => Buffer.from(json(part)).toString('base64url'))
    .join('.');
  return `${signed}.${sign(signed).toString('base64url')}`;
}
