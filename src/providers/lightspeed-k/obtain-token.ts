import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import type { PosAnswer } from '../call-pos.ts';
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
  const { settings, signal, fetch } = context;
  const { baseUrl, tokenUrl = `${baseUrl}/oauth/token`, clientId, clientSecret } = settings;
  const answer = await callPos({
    method: 'POST',
    url: tokenUrl,
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken }).toString(),
    signal,
    fetch,
  }).catch((error: unknown) => {
    throw error instanceof NeedsOperator && error.httpStatus === 401 ? notKnown() : error;
  });
  if (answer.status >= 300) throw refusalOf(answer);

  const granted = TokenGranted.safeParse(answer.json);
  // The next attempt shows whether this one spent the refresh token.
  if (!granted.success) throw new TryAgain('Lightspeed granted no token that can be read', { sent: false });
  const { access_token: accessToken, expires_in: expiresIn, refresh_token: next } = granted.data;
  return { accessToken, expiresIn, refreshToken: next, lastsS: REFRESH_S };
}

/** The error for a 401, whose meaning is not documented here. In OAuth it is either of the two. */
function notKnown(): NeedsOperator {
  return new NeedsOperator(
    `Lightspeed refused the request for a token with 401: either clientId and clientSecret are wrong, or ${RECONNECT}`,
    { httpStatus: 401 },
  );
}

function refusalOf({ status: httpStatus, json }: PosAnswer): NeedsOperator {
  const { error = '' } = TokenRefused.safeParse(json).data ?? {};
  if (error === 'invalid_grant') {
    return new NeedsOperator(RECONNECT, { httpStatus, cause: { code: 'reconnect_needed', httpStatus } });
  }
  const named = /^[a-z_]{1,40}$/.test(error) ? `, ${error}` : '';
  return new NeedsOperator(
    `Lightspeed grants no token (${httpStatus}${named}): are clientId, clientSecret, baseUrl and tokenUrl right?`,
    { httpStatus },
  );
}
