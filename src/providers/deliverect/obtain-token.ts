import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth.ts';
import { type Settings, TokenGranted } from './payloads.ts';

/** The settings that an access token depends on. Locations of one platform share the token. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientId, clientSecret, baseUrl } = context.settings;
  return { seed: { clientId, clientSecret, baseUrl }, obtain: (_none, signal) => obtainToken(context, signal) };
}

/**
 * Obtains a token by OAuth's client credentials, sent as JSON. `audience` is the environment that the token is for.
 * https://developers.deliverect.com/reference/access-token and https://developers.deliverect.com/openapi/oauth2.json
 * @param signal the token request's own signal, because orders of other locations wait for the same token
 */
async function obtainToken({ settings, now, fetch }: PosContext<Settings>, signal: AbortSignal): Promise<Grant> {
  const { clientId: client_id, clientSecret: client_secret, baseUrl } = settings;
  const { access_token, expires_in, expires_at } = await oauthGrant(
    { signal, fetch },
    {
      pos: 'Deliverect',
      url: `${baseUrl}/oauth/token`,
      json: { client_id, client_secret, audience: baseUrl, grant_type: 'client_credentials' },
      granted: TokenGranted,
      refused: (status) => `Deliverect grants no token (${status}): check clientId, clientSecret and baseUrl`,
    },
  );
  // Neither field is documented as always present. Without both, the token expires at once and serves only this order.
  return { accessToken: access_token, expiresIn: expires_in ?? Math.max(0, (expires_at ?? 0) - now.getTime() / 1000) };
}

/**
 * Obtains a token, which proves the credentials and the environment. The Channel API documents no read request, so a
 * wrong channelName or channelLinkId shows only with the first order.
 *
 * A stored token may be hours old and proves nothing. It is therefore reported as rejected, so that `Credentials`
 * obtains a new one. Deliverect limits logins, so this happens at most once a minute for all locations that share it.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const grant = tokenOf(context);
  const rejected = await context.credentials.accessToken(grant);
  await context.credentials.accessToken({ ...grant, rejected });
}
