import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Authorisation, PosContext, Webhook } from '../../core/domain/provider.ts';
import { oauthRevoke } from '../oauth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { callSquare, readAnswer } from './call-square.ts';
import { exchangeCode, tokenOf } from './obtain-token.ts';
import { AnyEvent, API_VERSION, AuthorizationRevoked, MerchantAnswer, type Settings } from './payloads.ts';

export const NEEDED_SCOPES = ['ORDERS_READ', 'ORDERS_WRITE', 'PAYMENTS_WRITE'];

/**
 * The URL of Square's page, which then redirects to the redirect URL in the application's registration. PKCE is for
 * applications without a secret: https://developer.squareup.com/reference/square/o-auth/obtain-token (November 2026)
 */
export function authorisePage({ baseUrl, clientId = '' }: Settings, state?: string): string {
  const query = new URLSearchParams({
    client_id: clientId,
    // The last one is for the name of the account, which the owner confirms.
    scope: [...NEEDED_SCOPES, 'MERCHANT_PROFILE_READ'].join(' '),
    session: 'false',
    ...(state !== undefined && { state }),
  });
  return `${baseUrl}/oauth2/authorize?${query.toString()}`;
}

export const authorisation: Authorisation<Settings> = {
  vendor: 'Square',
  hosts: ['connect.squareup.com', 'connect.squareupsandbox.com'],
  grants: ['refreshToken', 'merchantId'],
  page(settings, { state }) {
    refuseOwnToken(settings);
    return authorisePage(settings, state);
  },
  // The name is read as https://developer.squareup.com/reference/square/merchants/retrieve-merchant says (November 2026).
  async exchange(context, code) {
    const { settings, accessToken } = await exchangeCode(context, code);
    const asSeller = { ...context, settings: { ...context.settings, accessToken } };
    const answer = await callSquare(asSeller, { method: 'GET', path: '/v2/merchants/me' });
    const { business_name: name, id } = readAnswer(MerchantAnswer, answer, "the seller's account").merchant;
    return { settings, account: name ? `${name} (${id})` : id };
  },
  revoke,
  access: ({ baseUrl, clientId, refreshToken, merchantId }) =>
    refreshToken && `${new URL(baseUrl).href} ${clientId} ${merchantId ?? refreshToken}`,
  readRevoked,
};

/** @throws NeedsOperator if the settings have a token that nobody granted by Square's page */
function refuseOwnToken({ accessToken }: Settings): void {
  if (accessToken === undefined) return;
  throw new NeedsOperator(
    "the settings have an accessToken: replace it by clientId and clientSecret, the application's id and secret",
  );
}

async function revoke(context: PosContext<Settings>): Promise<void> {
  const { settings } = context;
  refuseOwnToken(settings);
  const { baseUrl, clientId, clientSecret } = settings;
  // The token belongs to the seller who granted it. `merchantId` is a setting, and could name another seller.
  const accessToken = await context.credentials.accessToken(tokenOf(context));
  await oauthRevoke(context, {
    pos: 'Square',
    url: `${baseUrl}/oauth2/revoke`,
    headers: {
      authorization: `Client ${clientSecret}`,
      'square-version': API_VERSION,
      'content-type': 'application/json',
      accept: 'application/json',
    },
    body: JSON.stringify({ client_id: clientId, access_token: accessToken }),
  });
}

/**
 * Reads `oauth.authorization.revoked`. A subscription gets it for all sellers of the application, so it counts only if
 * it names the seller in the settings.
 */
function readRevoked({ body }: Webhook, { merchantId }: Settings): Date | undefined {
  const json = parseJson(body, 'an object with type and data');
  if (readShape(AnyEvent, json).type !== 'oauth.authorization.revoked') return undefined;
  const { merchant_id, data } = readShape(AuthorizationRevoked, json);
  return merchant_id === merchantId ? new Date(data.object.revocation.revoked_at) : undefined;
}
