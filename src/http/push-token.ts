import { type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose';
import type { Now } from '../core/postgres/database-clock.ts';
import { issuerKeys } from './issuer-keys.ts';
import { whyRefused } from './refuse.ts';

/** The token is missing, forged, expired or for another audience. */
export class BadPushToken extends Error {
  override readonly name = 'BadPushToken';
}

export type PushTokenSettings = {
  jwksUrl: string;
  issuer: string;
  /** The audience in the subscription's push configuration, exactly. */
  audience: string;
  /** The e-mail address of the subscription's service account. */
  serviceAccount: string;
};

/** Verifies a request's `Authorization`. Resolves if the push is Google's for us, throws otherwise. */
export type VerifyPushToken = (authorization: string | undefined) => Promise<void>;

const GOOGLE = 'https://accounts.google.com';

/**
 * Makes a verifier of a push's OIDC token (https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions): RS256
 * with the issuer's keys, issuer, audience, service account, verified e-mail, expiry. The verifier throws BadPushToken or
 * CannotVerify, neither with any part of the token.
 */
export function createPushTokenVerifier(settings: PushTokenSettings, now: Now): VerifyPushToken {
  const keys = issuerKeys(settings.jwksUrl);
  // Google has issued tokens under both names: https://developers.google.com/identity/openid-connect/openid-connect#an-id-tokens-payload
  const issuer = settings.issuer === GOOGLE ? [GOOGLE, 'accounts.google.com'] : settings.issuer;

  return async (authorization) => {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) throw new BadPushToken('no bearer token');
    const claims = await verify(token, keys, issuer, now());
    // jose accepts a list of audiences that includes ours. A token for several is not for us alone.
    if (claims.aud !== settings.audience) throw new BadPushToken('aud is not this endpoint');
    if (claims['email'] !== settings.serviceAccount) throw new BadPushToken('email is not the service account');
    if (claims['email_verified'] !== true) throw new BadPushToken('email_verified is not true');
  };
}

async function verify(
  token: string,
  keys: JWTVerifyGetKey,
  issuer: string | string[],
  currentDate: Date,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ['RS256'],
      issuer,
      requiredClaims: ['exp'],
      currentDate,
    });
    return payload;
  } catch (error) {
    throw new BadPushToken(whyRefused(error));
  }
}
