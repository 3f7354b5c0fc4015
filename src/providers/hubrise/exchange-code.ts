import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { TokenGranted, type Settings } from './payloads.ts';

const REFUSED = 'has authorizationCode been used, or is it older than ten minutes?';

/**
 * The page where the restaurant agrees, which then shows the code: https://www.hubrise.com/developers/api/authentication,
 * "Installed App Workflow" (read in November 2026). The scope is the one of HubRise's integration guide, and without
 * customers what orders need.
 */
export function authorisePage({ oauthUrl, clientId = '', customers }: Settings): string {
  const query = new URLSearchParams({
    redirect_uri: 'urn:ietf:wg:oauth:2.0:oob',
    client_id: clientId,
    scope: customers === 'attach' ? 'location[orders.write,customer_list.write]' : 'location[orders.write]',
  });
  return `${oauthUrl}/authorize?${query.toString()}`;
}

/**
 * Exchanges a code for the connection's token, which does not expire. A second token for the same location and client is
 * the same.
 * @throws NeedsOperator if the code is spent or over ten minutes old, or the client is not known by its secret
 */
export async function exchangeCode(
  { settings, signal, fetch }: PosContext<Settings>,
  code: string,
): Promise<{ settings: Partial<Settings>; did: string }> {
  const { oauthUrl, clientId = '', clientSecret } = settings;
  const answer = await callPos({
    method: 'POST',
    url: `${oauthUrl}/token`,
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: new URLSearchParams({ code }).toString(),
    signal,
    fetch,
  }).catch(
    quoteRefusal([401], (status) => `HubRise grants no token (${status}): are clientId and clientSecret right?`),
  );
  const { status: httpStatus } = answer;
  if (httpStatus >= 300) {
    throw new NeedsOperator(`HubRise grants no token (${httpStatus}): ${REFUSED} Open ${authorisePage(settings)}`, {
      httpStatus,
    });
  }
  const granted = TokenGranted.safeParse(answer.json);
  if (!granted.success) throw new TryAgain('HubRise granted no token that can be read', { sent: false });
  const { access_token: accessToken, customer_list_id, customer_list_name } = granted.data;
  const list = customer_list_name ? `, with the customer list ${customer_list_name}` : '';
  return {
    settings: { accessToken, ...(customer_list_id && { customerListId: customer_list_id }) },
    did: `HubRise granted a token for authorizationCode${list}; the settings hold it now.`,
  };
}
