import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth.ts';
import { type Settings, TokenGranted } from './payloads.ts';

/** The settings that an access token depends on. Locations of one platform share the token. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientId, clientSecret, baseUrl } = context.settings;
  return { seed: { clientId, clientSecret, baseUrl }, obtain: (_none, signal) => obtainToken(context, signal) };
}

/** OAuth's client credentials: https://developers.deliverect.com/openapi/oauth2.json */
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
 * Obtains a token, because the Channel API documents no read request. A stored token may be hours old and proves
 * nothing, so it is reported as rejected. `Credentials` then obtains a new one, at most once a minute.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const grant = tokenOf(context);
  const rejected = await context.credentials.accessToken(grant);
  await context.credentials.accessToken({ ...grant, rejected });
}
