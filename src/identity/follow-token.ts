import { errors, type JWTVerifyGetKey } from 'jose';
import { Id } from '../core/domain/order.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import { issuerKeys, verifyClaims } from './issuer-keys.ts';
import type { FollowKey, KeySource } from './follow-keys.ts';

/** The token is missing, forged, expired or for another audience. */
export class BadFollowToken extends Error {
  override readonly name = 'BadFollowToken';
}

export type FollowTokenSettings = { audience: string } & KeySource;

/** The permission that a token gives: to follow this order until `expiresAt`. */
export type Follow = { serviceOrderId: string; expiresAt: Date };
export type VerifyFollowToken = (token: string | undefined) => Promise<Follow>;

export const NO_TOKEN = 'no token';
/** Allowed difference between the platform's clock and ours. */
const TOLERANCE_S = 30;
const LIFETIME_S = 24 * 3600;
/** Longer tokens are not parsed. A real token is many times shorter. */
const TOKEN_MAX = 4096;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** The algorithms for keys that are fetched from the issuer. HS256 is excluded, because these keys are public. */
export const PUBLIC_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'RS256'];

/**
 * Makes a verifier of follow tokens. A platform gives such a token to a member. The verifier checks its signature,
 * audience, order id and expiry. It throws BadFollowToken or CannotVerify. Neither error contains a part of the token.
 */
export function createFollowTokenVerifier(settings: FollowTokenSettings, now: Now): VerifyFollowToken {
  const [keys, algorithms] =
    'keys' in settings
      ? [keysAtHand(settings.keys), settings.keys.flatMap((key) => key.algorithms)]
      : [issuerKeys(settings.jwksUrl), PUBLIC_ALGORITHMS];

  return async (token) => {
    if (token === undefined) throw new BadFollowToken(NO_TOKEN);
    if (token.length > TOKEN_MAX || !JWT.test(token)) throw new BadFollowToken('no JWT');
    const currentDate = now();
    const options = { algorithms, clockTolerance: TOLERANCE_S, currentDate };
    const claims = await verifyClaims(token, keys, options, (why) => new BadFollowToken(why));
    const { aud, sub, exp = Infinity } = claims;
    // A token with several audiences is refused, because others accept it too.
    // guard: follow-audience
    if (aud !== settings.audience) throw new BadFollowToken('aud is not FOLLOW_TOKEN_AUDIENCE');
    if (exp > currentDate.getTime() / 1000 + LIFETIME_S + TOLERANCE_S) {
      throw new BadFollowToken('exp is missing, or more than a day away');
    }
    const id = Id.safeParse(sub);
    if (!id.success) throw new BadFollowToken('sub is not an order id');
    return { serviceOrderId: id.data, expiresAt: new Date((exp + TOLERANCE_S) * 1000) };
  };
}

/** Selects the only key that fits a token's algorithm and, if the token has one, its `kid`. */
function keysAtHand(keys: readonly FollowKey[]): JWTVerifyGetKey {
  return ({ alg, kid }) => {
    const [key, another] = keys.filter(
      (each) => each.algorithms.includes(alg) && (kid === undefined || kid === each.kid),
    );
    if (key === undefined) throw new errors.JWKSNoMatchingKey();
    if (another !== undefined) throw new errors.JWKSMultipleMatchingKeys();
    return key.key;
  };
}
