import { errors, flattenedVerify, type FlattenedVerifyGetKey } from 'jose';
import { LRUCache } from 'lru-cache';
import { atMost } from '../core/domain/at-most.ts';
import { NotAuthentic } from '../core/domain/errors.ts';
import { verify as verifyStandard } from '../core/domain/standard-webhooks.ts';
import { verifyHmac } from '../core/domain/verify-hmac.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { SignalToken } from '../core/signals/signal-tokens.ts';
import { issuerKeys } from '../identity/issuer-keys.ts';

/** https://shopify.dev/docs/apps/build/webhooks/verify-deliveries */
const SHOPIFY = 'x-shopify-hmac-sha256';
/** A JWS with a detached payload: https://docs.saleor.io/developer/extending/webhooks/payload-signature */
const SALEOR = 'saleor-signature';
const MOST_KEY_SETS = 100;

type Signed = { headers: Record<string, string>; body: Buffer };

/** Verifies the signature of a signal over its raw bytes. @throws NotAuthentic, or CannotVerify if it is not known */
export type VerifySignal = (token: SignalToken, signed: Signed) => Promise<void>;

/**
 * Makes the verifier of signals, for each kind of token.
 * @param send a guarded fetch, because operators name the URL of the keys
 */
export function signalVerifier(now: Now, send: typeof fetch): VerifySignal {
  const keySets = new LRUCache<string, FlattenedVerifyGetKey>(atMost(MOST_KEY_SETS));
  const keysAt = (url: string): FlattenedVerifyGetKey => {
    const keys = keySets.get(url) ?? (issuerKeys(url, send) as FlattenedVerifyGetKey);
    keySets.set(url, keys);
    return keys;
  };

  return async ({ kind, secrets }, { headers, body }) => {
    if (kind === 'plain') return;
    // A row that was edited by hand may have no secrets. Then nothing is right.
    const [url] = secrets;
    if (url === undefined) throw new NotAuthentic('the token has no secret');
    if (kind === 'standard-webhooks') verifyStandard(secrets, { headers, body, receivedAt: now() });
    else if (kind === 'shopify')
      verifyHmac({ headers }, { header: SHOPIFY, secret: secrets, signed: [body], encoding: 'base64' });
    else await verifyDetached(headers[SALEOR] ?? '', body, keysAt(url));
  };
}

/** https://www.rfc-editor.org/rfc/rfc7515#appendix-F, and RFC 7797: the payload is signed without base64url. */
async function verifyDetached(jws: string, payload: Buffer, keys: FlattenedVerifyGetKey): Promise<void> {
  const [header = '', between, signature = '', ...more] = jws.split('.');
  if (between !== '' || more.length > 0) throw wrong('is not a JWS with a detached payload');
  try {
    await flattenedVerify({ protected: header, payload, signature }, keys, { algorithms: ['RS256'] });
  } catch (error) {
    throw error instanceof errors.JOSEError ? wrong('is not right') : error;
  }
}

function wrong(how: string): NotAuthentic {
  return new NotAuthentic(`the header ${SALEOR} ${how}`);
}
