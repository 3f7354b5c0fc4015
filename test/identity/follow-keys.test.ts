import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseFollowKeys } from '../../src/identity/follow-keys.ts';

type Jwk = Record<string, unknown>;
const both = (pair: { publicKey: { export(o: object): unknown }; privateKey: { export(o: object): unknown } }) => ({
  open: pair.publicKey.export({ format: 'jwk' }) as Jwk,
  secret: pair.privateKey.export({ format: 'jwk' }) as Jwk,
});
const ec = both(generateKeyPairSync('ec', { namedCurve: 'P-256' }));
const ed = both(generateKeyPairSync('ed25519'));
const rsa = both(generateKeyPairSync('rsa', { modulusLength: 2048 }));
const oct = (bytes: number): Jwk => ({ kty: 'oct', k: randomBytes(bytes).toString('base64url') });
const parse = (...keys: unknown[]): ReturnType<typeof parseFollowKeys> => parseFollowKeys(JSON.stringify({ keys }));

describe('keys of follow tokens', () => {
  it('have four kinds, each for one algorithm', () => {
    const keys = parse(...[ec.open, ed.open, rsa.open, oct(32)].map((key, nth) => ({ ...key, kid: `k-${nth}` })));
    expect(keys.map(({ algorithms }) => algorithms)).toEqual([['ES256'], ['EdDSA', 'Ed25519'], ['RS256'], ['HS256']]);
    expect(keys.map(({ kid, key }) => [kid, key.type])).toEqual([
      ['k-0', 'public'],
      ['k-1', 'public'],
      ['k-2', 'public'],
      ['k-3', 'secret'],
    ]);
  });

  it('are accepted with their use, alg and key_ops', () => {
    expect(parse({ ...ec.open, use: 'sig', alg: 'ES256', key_ops: ['verify'] })).toHaveLength(1);
    expect(parse({ ...oct(64), use: 'sig', alg: 'HS256', key_ops: ['sign', 'verify'] })).toHaveLength(1);
    expect(parse({ ...ed.open, alg: 'EdDSA' })[0]?.algorithms).toEqual(['EdDSA']);
  });

  it.each<[string, Jwk, string]>([
    ['is a private RSA key', rsa.secret, 'is a private key'],
    ['is a private EC key', ec.secret, 'is a private key'],
    ['is a private Ed25519 key', ed.secret, 'is a private key'],
    ['is a secret under 32 bytes', oct(31), 'is 31 bytes, not 32 or more'],
    ['is a secret that is not base64url', { kty: 'oct', k: '!' }, 'has no "k" in base64url'],
    ['is a secret without a value', { kty: 'oct' }, 'has no "k" in base64url'],
    [
      'is an RSA key under 2048 bits',
      both(generateKeyPairSync('rsa', { modulusLength: 1024 })).open,
      'has 1024 bits, not 2048 or more',
    ],
    ['is of another curve', both(generateKeyPairSync('ec', { namedCurve: 'P-384' })).open, 'is not of a supported'],
    ['is for key agreement', both(generateKeyPairSync('x25519')).open, 'is not of a supported'],
    ['is of an unknown kind', { kty: 'constructor' }, 'is not of a supported kind: EC P-256, OKP Ed25519, RSA, oct'],
    ['is a point off its curve', { ...ec.open, y: ec.open['x'] }, 'is not a public key'],
    ['lacks its modulus', { kty: 'RSA', e: 'AQAB' }, 'is not a public key'],
    ['has a use other than signatures', { ...rsa.open, use: 'tls' }, 'is not for signatures'],
    ['has only the key_ops sign', { ...oct(32), key_ops: ['sign'] }, 'is not for signatures'],
    ['has another alg of RSA', { ...rsa.open, alg: 'PS256' }, 'has an "alg" that is not RS256'],
    ['has the alg of another kind', { ...rsa.open, alg: 'HS256' }, 'has an "alg" that is not RS256'],
    ['has a kid that is not a text', { ...rsa.open, kid: 7 }, 'has a "kid" that is not a string'],
  ])('are refused, without showing the key, if one of them %s', (_what, wrong, message) => {
    const whole = (): unknown => parse({ ...ec.open, kid: 'k-1' }, { kid: 'k-2', ...wrong });
    expect(whole).toThrow(`key 2 ${message}`);
    const said = String(attempt(whole));
    for (const value of Object.values(wrong)) {
      if (typeof value === 'string' && value.length > 20) expect(said).not.toContain(value);
    }
  });

  it('are read without the keys for encryption', () => {
    expect(parse({ ...ec.open, kid: 'k-1' }, { ...rsa.open, use: 'enc' }).map(({ kid }) => kid)).toEqual(['k-1']);
    expect(() => parse({ ...rsa.open, use: 'enc' })).toThrow('is not a JWK Set with keys');
    // The number is the place in the set.
    expect(() => parse({ ...rsa.open, use: 'enc' }, ec.secret)).toThrow('key 2 is a private key');
    expect(() => parse({ ...rsa.open, use: 'enc' }, { ...ec.open, kid: 'a' }, oct(32))).toThrow('key 3 needs a "kid"');
  });

  it('are refused unless each key has a kid of its own', () => {
    const [one, other] = [oct(32), oct(32)];
    expect(parse(one)).toHaveLength(1);
    expect(() => parse({ ...one, kid: 'a' }, other)).toThrow('key 2 needs a "kid" that no other');
    expect(() => parse({ ...one, kid: 'a' }, { ...other, kid: 'a' })).toThrow('key 2 needs a "kid" that no other');
  });

  it.each(['', 'secret', '[]', 'null', '7', '{"keys":{}}', '{"keys":[]}', '{"kty":"oct","k":"secret"}'])(
    'are refused if they are not a JWK Set: %s',
    (text) => {
      expect(() => parseFollowKeys(text)).toThrow(/^is not a JWK Set with keys: write \{"keys":\[…\]\}$/);
    },
  );

  it.each(['7', 'null', '[]', '"secret"'])('are refused if one key is not an object: %s', (text) => {
    expect(() => parseFollowKeys(`{"keys":[${text}]}`)).toThrow(/^key 1 is not of a supported kind/);
  });
});

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
