import type { PosContext } from '../../core/domain/provider.ts';
import { oauthGrant } from '../oauth-grant.ts';
import { TokenGranted, type Settings } from './payloads.ts';

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
  context: PosContext<Settings>,
  code: string,
): Promise<{ settings: Partial<Settings>; did: string }> {
  const { oauthUrl, clientId = '', clientSecret } = context.settings;
  const { access_token, customer_list_id, customer_list_name } = await oauthGrant(context, {
    pos: 'HubRise',
    url: `${oauthUrl}/token`,
    basic: [clientId, clientSecret],
    form: { code },
    granted: TokenGranted,
    refused: (status) =>
      `HubRise grants no token (${status}): ` +
      (status === 401
        ? 'are clientId and clientSecret right?'
        : 'has authorizationCode been used, or is it older than ten minutes? ' +
          `Open ${authorisePage(context.settings)}`),
  });
  const list = customer_list_name ? `, with the customer list ${customer_list_name}` : '';
  return {
    settings: { accessToken: access_token, ...(customer_list_id && { customerListId: customer_list_id }) },
    did: `HubRise granted a token for authorizationCode${list}; the settings hold it now.`,
  };
}
