import { oauthGrant } from 'expediter-kit';
import type { Credentials, Grant, PosContext } from 'expediter-kit';
import { TokenGranted, type Settings } from './payloads.ts';

/** The settings of the token request. Locations with the same three settings share the token. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientId, clientSecret, baseUrl } = context.settings;
  return {
    seed: { clientId, clientSecret, baseUrl },
    obtain: (_refreshToken, signal) => obtainToken(context, signal),
  };
}

/**
 * Requests a token by OAuth's client credentials ("Tokens").
 * @param signal the signal of `obtain`, not of one order, because orders of other stores wait for the same token
 */
async function obtainToken({ settings, fetch }: PosContext<Settings>, signal: AbortSignal): Promise<Grant> {
  const { clientId, clientSecret, baseUrl } = settings;
  const { access_token, expires_in } = await oauthGrant(
    { signal, fetch },
    {
      pos: 'Acme',
      url: `${baseUrl}/v1/oauth/token`,
      form: { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret },
      granted: TokenGranted,
      refused: (status) => `Acme grants no token (${status}): check clientId, clientSecret and baseUrl`,
    },
  );
  return { accessToken: access_token, expiresIn: expires_in };
}
