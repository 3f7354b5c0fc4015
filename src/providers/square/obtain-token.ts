import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth.ts';
import { API_VERSION, TokenGranted, type Settings } from './payloads.ts';

type Asking = Pick<PosContext<Settings>, 'settings' | 'now' | 'signal' | 'fetch'>;

/** The settings that the seller's token depends on. An `accessToken` depends on nothing else. */
export function grantSeed(settings: Settings): Record<string, string> | undefined {
  const { baseUrl, accessToken, clientId, clientSecret, refreshToken } = settings;
  if (accessToken !== undefined) return { baseUrl, accessToken };
  if (clientId === undefined || clientSecret === undefined || refreshToken === undefined) return undefined;
  return { baseUrl, clientId, clientSecret, refreshToken };
}

/**
 * The token that the seller's refresh token brings.
 * @throws NeedsOperator if the seller has not authorised the application yet
 */
export function tokenOf(context: Asking): Parameters<Credentials['accessToken']>[0] {
  const { refreshToken } = context.settings;
  const seed = grantSeed(context.settings);
  if (seed === undefined || refreshToken === undefined) {
    throw new NeedsOperator(
      'no refreshToken yet: let the seller authorise the application, as expediter provider connect says',
      { cause: { code: 'reconnect_needed' } },
    );
  }
  return {
    seed,
    async obtain(last, signal) {
      const proof = { grant_type: 'refresh_token', refresh_token: last ?? refreshToken };
      return obtainToken({ ...context, signal }, proof, (httpStatus) => notRenewed(httpStatus, last !== undefined));
    },
  };
}

/**
 * Exchanges an authorisation code, which lives for five minutes, for the seller's refresh token.
 * @throws NeedsOperator if the code is spent or too old, or the application's secret is not its own
 */
export async function exchangeCode(context: Asking, code: string): Promise<string> {
  const proof = { grant_type: 'authorization_code', code };
  const { refreshToken } = await obtainToken(context, proof, (httpStatus) =>
    refused(httpStatus, 'has authorizationCode been used, or is it older than five minutes?'),
  );
  if (refreshToken !== undefined) return refreshToken;
  throw new NeedsOperator('Square granted no refresh token for authorizationCode: let the seller authorise once more');
}

/**
 * Asks for a token of 30 days by the code flow, whose refresh token stays the same and ends only when it is revoked:
 * https://developer.squareup.com/reference/square/o-auth-api/obtain-token and
 * https://developer.squareup.com/docs/oauth-api/overview (read in November 2026)
 * @param context.signal not the order's: others wait for the same token
 */
async function obtainToken(
  context: Asking,
  proof: Readonly<Record<string, string>>,
  refused: (httpStatus: number) => NeedsOperator,
): Promise<Grant> {
  const { baseUrl, clientId, clientSecret } = context.settings;
  const { access_token, refresh_token, expires_at } = await oauthGrant(context, {
    pos: 'Square',
    url: `${baseUrl}/oauth2/token`,
    headers: { 'square-version': API_VERSION },
    json: { client_id: clientId, client_secret: clientSecret, ...proof },
    granted: TokenGranted,
    refused,
  });
  const expiresIn = secondsUntil(expires_at, context.now);
  return { accessToken: access_token, refreshToken: refresh_token, expiresIn, lastsS: expiresIn };
}

/** Seconds until a time of Square's; 0 if it has passed. */
export function secondsUntil(time: string, now: Date): number {
  return Math.max(0, (Date.parse(time) - now.getTime()) / 1000);
}

/** What an application was granted before shows that its id and its secret were right. */
function notRenewed(httpStatus: number, wasGranted: boolean): NeedsOperator {
  return refused(httpStatus, 'or has the seller withdrawn what refreshToken stands for?', wasGranted);
}

/** The error, without `httpStatus`: nobody shall take it for the answer to a call. */
function refused(httpStatus: number, otherwise: string, isLost = false): NeedsOperator {
  const code = isLost ? 'reconnect_needed' : 'pos_refused_us';
  return new NeedsOperator(
    `Square grants no token (${httpStatus}): are clientId, clientSecret, refreshToken and baseUrl right, ${otherwise}`,
    { cause: { code, httpStatus } },
  );
}
