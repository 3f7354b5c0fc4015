import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth.ts';
import { API_VERSION, TokenGranted, type Settings } from './payloads.ts';

type Asking = Pick<PosContext<Settings>, 'settings' | 'now' | 'signal' | 'fetch'>;

/** The settings that the seller's token depends on. Undefined before the seller has authorised the application. */
export function grantSeed(settings: Settings): Record<string, string> | undefined {
  const { baseUrl, accessToken, clientId, clientSecret, refreshToken } = settings;
  if (accessToken !== undefined) return { baseUrl, accessToken };
  if (clientId === undefined || clientSecret === undefined || refreshToken === undefined) return undefined;
  return { baseUrl, clientId, clientSecret, refreshToken };
}

/**
 * The token obtained by the seller's refresh token.
 * @throws NeedsOperator if the seller has not authorised the application yet
 */
export function tokenOf(context: Asking): Parameters<Credentials['accessToken']>[0] {
  const { refreshToken } = context.settings;
  const seed = grantSeed(context.settings);
  if (seed === undefined || refreshToken === undefined) {
    throw new NeedsOperator(
      'refreshToken is missing: run expediter provider connect, and let the seller authorise the application',
      { cause: { code: 'reconnect_needed' } },
    );
  }
  return {
    seed,
    async obtain(last, signal) {
      const proof = { grant_type: 'refresh_token', refresh_token: last ?? refreshToken };
      // After an earlier success, id and secret are right, so the seller must authorise again.
      return obtainToken({ ...context, signal }, proof, (httpStatus) =>
        refused(httpStatus, 'and that the seller has not revoked refreshToken', last !== undefined),
      );
    },
  };
}

/**
 * Exchanges an authorisation code, which lives for five minutes, for the seller's refresh token.
 * @throws NeedsOperator if the code is used or too old, or the application's secret is wrong
 */
export async function exchangeCode(
  context: Asking,
  code: string,
): Promise<{ settings: Partial<Settings>; did: string; accessToken: string }> {
  const proof = { grant_type: 'authorization_code', code };
  const { accessToken, refreshToken, merchantId } = await obtainToken(context, proof, (httpStatus) =>
    refused(httpStatus, 'and that authorizationCode is unused and under five minutes old'),
  );
  if (refreshToken === undefined)
    throw new NeedsOperator('Square granted no refresh token for authorizationCode: let the seller authorise again');
  return {
    accessToken,
    settings: { refreshToken, merchantId, authorizationCode: undefined },
    did: 'Square granted a token for authorizationCode. Its refreshToken, which renews it, is now in the settings.',
  };
}

/**
 * Requests a token of 30 days by the code flow. Its refresh token stays the same until it is revoked:
 * https://developer.squareup.com/docs/oauth-api/overview (read in November 2026)
 */
async function obtainToken(
  context: Asking,
  proof: Readonly<Record<string, string>>,
  refused: (httpStatus: number) => NeedsOperator,
): Promise<Grant & { merchantId: string | undefined }> {
  const { baseUrl, clientId, clientSecret } = context.settings;
  const { access_token, refresh_token, expires_at, merchant_id } = await oauthGrant(context, {
    pos: 'Square',
    url: `${baseUrl}/oauth2/token`,
    headers: { 'square-version': API_VERSION },
    json: { client_id: clientId, client_secret: clientSecret, ...proof },
    granted: TokenGranted,
    refused,
  });
  const expiresIn = secondsUntil(expires_at, context.now);
  return {
    accessToken: access_token,
    refreshToken: refresh_token,
    expiresIn,
    lastsS: expiresIn,
    merchantId: merchant_id,
  };
}

/** Seconds until a time in Square's format; 0 if it has passed. */
export function secondsUntil(time: string, now: Date): number {
  return Math.max(0, (Date.parse(time) - now.getTime()) / 1000);
}

/** The error has no `httpStatus`, or `quoteRefusal` would take it for the answer to a call and replace its message. */
function refused(httpStatus: number, advice: string, isLost = false): NeedsOperator {
  const code = isLost ? 'reconnect_needed' : 'pos_refused_us';
  return new NeedsOperator(
    `Square grants no token (${httpStatus}): check clientId, clientSecret, refreshToken and baseUrl, ${advice}`,
    { cause: { code, httpStatus } },
  );
}
