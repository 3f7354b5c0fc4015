import { createPublicKey, createSecretKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto';
import { base64url } from 'jose';
import { KEY_KINDS, algorithmsOf } from './issuer-keys.ts';

export type FollowKey = { kid: string | undefined; algorithms: readonly string[]; key: KeyObject };
/** The platform's keys, or the URL from which they are fetched. */
export type KeySource = { jwksUrl: string } | { keys: readonly FollowKey[] };

/** Minimum for HS256, because a shorter secret can be found by trying all values on one token. */
const SECRET_BYTES = 32;
/** The shortest key that jose accepts for RS256. */
const RSA_BITS = 2048;

/** Reads the URL of a JWK Set, or the JWK Set itself. @throws Error that quotes no key */
export function parseKeySource(text: string): KeySource {
  if (!/^https?:/i.test(text)) return { keys: parseFollowKeys(text) };
  if (!URL.canParse(text)) throw new Error('is not a URL');
  return { jwksUrl: text };
}

/**
 * Reads a JWK Set, `{"keys":[…]}`, of public keys and of secrets for HS256. A key's algorithms follow from its kind,
 * never from a token, so that no public key is used as a secret.
 * @throws Error that says which key is wrong, without quoting it
 */
export function parseFollowKeys(text: string): readonly FollowKey[] {
  const set = attempt(() => (JSON.parse(text) as { keys?: unknown }).keys);
  // A set may also have the platform's keys for encryption.
  const signing = Array.isArray(set)
    ? set.flatMap((jwk: { use?: unknown } | null, nth) =>
        jwk?.use === 'enc' ? [] : [{ jwk: { ...jwk }, number: nth + 1 }],
      )
    : [];
  if (signing.length === 0) throw new Error('is not a JWK Set with keys: write {"keys":[…]}');
  const keys = signing.map(({ jwk, number }) => {
    try {
      return readKey(jwk);
    } catch (error) {
      throw new Error(`key ${number} ${(error as Error).message}`, { cause: error });
    }
  });
  const kids = keys.map(({ kid }) => kid);
  const unnamed = kids.findIndex((kid, index) => kids.length > 1 && (kid === undefined || kids.indexOf(kid) < index));
  if (unnamed >= 0) throw new Error(`key ${signing[unnamed]?.number} needs a "kid" that no other key has`);
  return keys;
}

function readKey(jwk: Record<string, unknown>): FollowKey {
  const { kty, use, alg, kid, k, key_ops: operations } = jwk;
  const ofKind = algorithmsOf(jwk);
  if (ofKind === undefined) throw new Error(`is not of a supported kind: ${KEY_KINDS.join(', ')}`);
  if ('d' in jwk) throw new Error('is a private key, which only the platform may have: use its public key');
  const algorithms = ofKind.filter((algorithm) => alg === undefined || alg === algorithm);
  if (algorithms.length === 0) throw new Error(`has an "alg" that is not ${ofKind.join(' or ')}`);
  const verifies = operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
  if (!verifies || (use !== undefined && use !== 'sig')) {
    throw new Error('is not for signatures: "use" must be "sig", and "key_ops" must contain "verify"');
  }
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) throw new Error('has a "kid" that is not a string');
  return { kid, algorithms, key: kty === 'oct' ? secret(k) : publicKey(jwk) };
}

function secret(k: unknown): KeyObject {
  const bytes = typeof k === 'string' ? attempt(() => base64url.decode(k)) : undefined;
  if (bytes === undefined) throw new Error('has no "k" in base64url');
  if (bytes.length < SECRET_BYTES) throw new Error(`is ${bytes.length} bytes, not ${SECRET_BYTES} or more`);
  return createSecretKey(bytes);
}

function publicKey(jwk: JsonWebKeyInput['key']): KeyObject {
  const key = attempt(() => createPublicKey({ key: jwk, format: 'jwk' }));
  if (key === undefined) throw new Error('is not a public key: a part of it is missing or wrong');
  const { modulusLength = RSA_BITS } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < RSA_BITS) throw new Error(`has ${modulusLength} bits, not ${RSA_BITS} or more`);
  return key;
}

/** Returns undefined instead of throwing, because errors about JSON and keys quote their input. */
function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
