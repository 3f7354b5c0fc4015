import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { TokenGranted } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** The settings that an access token depends on. Locations of one platform share the token. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientId, clientSecret, baseUrl } = context.settings;
  return { seed: { clientId, clientSecret, baseUrl }, obtain: (_none, signal) => obtainToken(context, signal) };
}

/**
 * Obtains a token by OAuth's client credentials, sent as JSON. `audience` is the environment that the token is for.
 * https://developers.deliverect.com/reference/access-token and https://developers.deliverect.com/openapi/oauth2.json
 * @param signal not the order's: orders of other locations wait for the same token
 */
async function obtainToken({ settings, now, fetch }: PosContext<Settings>, signal: AbortSignal): Promise<Grant> {
  const { clientId, clientSecret, baseUrl } = settings;
  const answer = await callPos({
    method: 'POST',
    url: `${baseUrl}/oauth/token`,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({
      client_id: clientId,
      client_secret: clientSecret,
      audience: baseUrl,
      grant_type: 'client_credentials',
    }),
    signal,
    fetch,
  }).catch(quoteRefusal([401, 403], refused));
  if (answer.status >= 300) throw new NeedsOperator(refused(answer.status), { httpStatus: answer.status });
  const granted = TokenGranted.safeParse(answer.json);
  if (!granted.success) throw new TryAgain('Deliverect granted no token that can be read', { sent: false });
  const { access_token: accessToken, expires_in: expiresIn, expires_at: expiresAt } = granted.data;
  // Neither field is documented as always present. Without both, the token serves this order and is not stored.
  return { accessToken, expiresIn: expiresIn ?? Math.max(0, (expiresAt ?? 0) - now.getTime() / 1000) };
}

function refused(httpStatus: number): string {
  return `Deliverect grants no token (${httpStatus}): are clientId, clientSecret and baseUrl right?`;
}
