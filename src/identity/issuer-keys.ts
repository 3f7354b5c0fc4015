import {
  createLocalJWKSet,
  createRemoteJWKSet,
  type CryptoKey,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTPayload,
  jwtVerify,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
} from 'jose';
import { boundedFetch } from '../core/egress/bounded-fetch.ts';

/** The accepted algorithms of each kind of key. */
const ALGORITHMS = new Map<string, readonly string[]>([
  ['EC P-256', ['ES256']],
  // RFC 8037 and RFC 9864 name the same algorithm differently.
  ['OKP Ed25519', ['EdDSA', 'Ed25519']],
  ['RSA', ['RS256']],
  ['oct', ['HS256']],
]);
export const KEY_KINDS: readonly string[] = [...ALGORITHMS.keys()];

/** @returns the algorithms for a JWK's kind; undefined for a kind that we do not accept */
export function algorithmsOf({ kty, crv }: Record<string, unknown>): readonly string[] | undefined {
  return ALGORITHMS.get(typeof crv === 'string' ? `${String(kty)} ${crv}` : String(kty));
}

/** The issuer's keys cannot be fetched, so a token can be neither accepted nor rejected. The sender should retry. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}

/** Limit for fetching the keys. Pub/Sub waits at least 10 s for an acknowledgement. */
const TIMEOUT_MS = 3_000;
/** Minimum pause between two fetches, so that tokens with invented key ids cause no load on the issuer. */
const REST_MS = 30_000;
/** The pause while no keys are known. It is shorter, because no token can be accepted without keys. */
const REST_WITHOUT_MS = 1_000;

/**
 * Finds the issuer's key for a token. Keys are fetched again when they are ten minutes old or a `kid` is unknown. If
 * this fails, the known keys stay valid. The returned function throws CannotVerify, or jose's errors about the token.
 * @param send by default for hosts that the environment names
 */
export function issuerKeys(jwksUrl: string, send: typeof fetch = boundedFetch()): JWTVerifyGetKey {
  let askedAt = -Infinity;
  const fetchRarely: FetchImplementation = async (...request) => {
    const rest = keys.jwks() === undefined ? REST_WITHOUT_MS : REST_MS;
    if (performance.now() - askedAt < rest) throw new Error('the last request for them was too recent');
    askedAt = performance.now();
    return await send(...request);
  };
  const keys = createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: TIMEOUT_MS, [customFetch]: fetchRarely });

  return async (...token): Promise<CryptoKey> => {
    try {
      return await keys(...token);
    } catch (error) {
      if (isAboutToken(error)) throw error;
      const known = keys.jwks();
      const key = known && (await createLocalJWKSet(known)(...token).catch(() => undefined));
      if (key !== undefined) return key;
      throw new CannotVerify(`the issuer's keys cannot be fetched: ${describe(error)}`);
    }
  };
}

/** Whether jose reports a fault of the token. All its other errors here concern fetching or parsing the keys. */
function isAboutToken(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
}

function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: unknown } };
  return [message, typeof cause?.code === 'string' ? `(${cause.code})` : undefined].join(' ').trimEnd();
}

/**
 * Verifies a token and returns its claims.
 * @param refuse makes the error if the token is refused, from a reason that does not quote the token
 * @throws also CannotVerify
 */
export async function verifyClaims(
  token: string,
  keys: JWTVerifyGetKey,
  options: JWTVerifyOptions,
  refuse: (why: string) => Error,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    throw error instanceof CannotVerify ? error : refuse(whyRefused(error));
  }
}

/**
 * Says why jose refuses a token. jose's messages contain only names of claims and headers, except the message about
 * `crit`, which quotes the token and is therefore replaced.
 */
function whyRefused(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.startsWith('Extension Header Parameter')) return 'crit names an unsupported header';
  return error.message;
}
