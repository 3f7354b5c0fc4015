import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth-grant.ts';
import { TokenGranted, TokenRefused } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** Seconds that a refresh token lives without use. */
const REFRESH_S = 14 * 86_400;

const RECONNECT = 'reconnect needed: have the restaurant authorise the API client again, and put the new refreshToken';

/**
 * The settings that an access token depends on. A new authorisation, with its new refresh token, starts afresh. A new
 * secret or token URL of the same client does not: the valid refresh token is stored nowhere else.
 */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  return {
    seed: grantSeed(context.settings),
    obtain: (lastRefreshToken, signal) =>
      obtainToken({ ...context, signal }, lastRefreshToken ?? context.settings.refreshToken),
  };
}

export function grantSeed({ baseUrl, clientId, refreshToken }: Settings): Record<string, string> {
  return { baseUrl, clientId, refreshToken };
}

/**
 * Exchanges a single-use refresh token for an access token of some 60 minutes and the next refresh token. The client's
 * credentials are sent as HTTP Basic.
 * https://api-portal.lsk.lightspeed.app/guides/tutorials/authentication-tutorial
 * @param context.signal not the order's: an aborted request would spend the refresh token for nothing
 * @throws NeedsOperator `reconnect needed` if the refresh token is spent or over 14 days old
 */
async function obtainToken(context: PosContext<Settings>, refreshToken: string): Promise<Grant> {
  const { baseUrl, tokenUrl = `${baseUrl}/oauth/token`, clientId, clientSecret } = context.settings;
  const { access_token, expires_in, refresh_token } = await oauthGrant(context, {
    pos: 'Lightspeed',
    url: tokenUrl,
    basic: [clientId, clientSecret],
    form: { grant_type: 'refresh_token', refresh_token: refreshToken },
    // Where it cannot be read, the next attempt shows whether this one spent the refresh token.
    granted: TokenGranted,
    refused,
  });
  return { accessToken: access_token, expiresIn: expires_in, refreshToken: refresh_token, lastsS: REFRESH_S };
}

function refused(httpStatus: number, json?: unknown): string | NeedsOperator {
  const { error = '' } = TokenRefused.safeParse(json).data ?? {};
  if (error === 'invalid_grant') {
    return new NeedsOperator(RECONNECT, { httpStatus, cause: { code: 'reconnect_needed', httpStatus } });
  }
  // What it means here is not documented. In OAuth it is either of the two.
  if (httpStatus === 401) {
    return `Lightspeed refused the request for a token with 401: either clientId and clientSecret are wrong, or ${RECONNECT}`;
  }
  const named = /^[a-z_]{1,40}$/.test(error) ? `, ${error}` : '';
  return `Lightspeed grants no token (${httpStatus}${named}): are clientId, clientSecret, baseUrl and tokenUrl right?`;
}
