import type { Authorisation, Connection, PosContext } from '../../core/domain/provider.ts';
import { connectByCode, oauthGrant, oauthRevoke } from '../oauth.ts';
import { Callback, Location, type Settings, TokenGranted } from './payloads.ts';
import { NeedsOperator } from '../../core/domain/errors.ts';
import { callHubrise, type HubriseRequest, refusalOf } from './call-hubrise.ts';
import { quoteRefusal } from '../call-pos.ts';
import { listRefused } from './create-order.ts';

/**
 * The URL of the page where the restaurant agrees. Without `about`, the page then shows the code. HubRise documents no
 * PKCE (read in November 2026): https://www.hubrise.com/developers/api/authentication
 */
function authorisePage(
  { oauthUrl, clientId = '', customers }: Settings,
  about?: { redirectUri: string; state: string },
): string {
  const query = new URLSearchParams({
    redirect_uri: about?.redirectUri ?? 'urn:ietf:wg:oauth:2.0:oob',
    client_id: clientId,
    scope: customers === 'attach' ? 'location[orders.write,customer_list.write]' : 'location[orders.write]',
    ...(about && { state: about.state }),
  });
  return `${oauthUrl}/authorize?${query.toString()}`;
}

/**
 * Exchanges a code for the connection's token, which does not expire. HubRise returns the same token for the same
 * location and client.
 * @throws NeedsOperator if the code is used or over ten minutes old, or clientSecret is wrong
 */
async function exchangeCode(
  context: PosContext<Settings>,
  code: string,
): Promise<{ settings: Partial<Settings>; did: string; account: string }> {
  const { oauthUrl, clientId = '', clientSecret } = context.settings;
  const { access_token, customer_list_id, customer_list_name, ...of } = await oauthGrant(context, {
    pos: 'HubRise',
    url: `${oauthUrl}/token`,
    basic: [clientId, clientSecret],
    form: { code },
    granted: TokenGranted,
    refused: (status) =>
      `HubRise grants no token (${status}): ` +
      (status === 401
        ? 'check clientId and clientSecret'
        : 'authorizationCode may be used already, or older than ten minutes. ' +
          `Get a new one from ${authorisePage(context.settings)}`),
  });
  const list = customer_list_name ? `, with the customer list ${customer_list_name}` : '';
  return {
    settings: {
      accessToken: access_token,
      ...(customer_list_id && { customerListId: customer_list_id }),
      authorizationCode: undefined,
    },
    account: [of.location_name, of.account_name].filter(Boolean).join(' of ') || 'an account without a name',
    did: `HubRise granted a token for authorizationCode${list}. It is now in the settings.`,
  };
}

export const authorisation: Authorisation<Settings> = {
  vendor: 'HubRise',
  hosts: ['manager.hubrise.com', 'api.hubrise.com'],
  grants: ['accessToken', 'customerListId'],
  page(settings, about) {
    refuseNoClient(settings);
    return authorisePage(settings, about);
  },
  exchange: exchangeCode,
  revoke,
  access: ({ baseUrl, accessToken }) => accessToken && `${new URL(baseUrl).href} ${accessToken}`,
};

function refuseNoClient({ clientId }: Settings): void {
  if (clientId !== undefined) return;
  throw new NeedsOperator('clientId is missing: put the id of the OAuth client into the settings');
}

/** HubRise documents no answer for a token that is revoked already. */
async function revoke(context: PosContext<Settings>): Promise<void> {
  refuseNoClient(context.settings);
  const { oauthUrl, clientId, clientSecret, accessToken = '' } = context.settings;
  await oauthRevoke(context, {
    pos: 'HubRise',
    url: `${oauthUrl}/revoke`,
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ token: accessToken }).toString(),
  });
}

/** An order's update includes its delivery. HubRise sends `delivery.update` at every move of a driver. */
const EVENTS = { order: ['update'], location: ['update'] };

type ConnectContext = PosContext<Settings> & { webhookUrl: string };

/** Obtains a token if the settings have no token or have a new code. Then sets the callback. */
export async function connect(context: ConnectContext): Promise<Connection> {
  const { accessToken, authorizationCode } = context.settings;
  if (accessToken !== undefined && authorizationCode === undefined) return setCallback(context);
  return connectByCode(context, {
    url: authorisePage(context.settings),
    shown: 'the page shows it',
    exchange: (code) => exchangeCode(context, code),
    connect: setCallback,
  });
}

/**
 * Each run sets the connection's only callback again, because each run makes a new webhook token and so a new URL.
 * @throws as `callHubrise` does, and NeedsOperator
 */
async function setCallback(context: ConnectContext): Promise<Connection> {
  const { webhookUrl: url } = context;
  const location = Location.safeParse(await call({ method: 'GET', path: '/location' }));
  const callback = Callback.safeParse(await call({ method: 'GET', path: '/callback' })).data;
  await call({ method: 'POST', path: '/callback', body: { url, events: EVENTS } });

  const done = ['HubRise now calls this webhook for updates of orders and of the location.'];
  if (location.success) {
    const { id, name, account } = location.data;
    done.unshift(`The access token belongs to ${name} (${id}) of ${account.name}, in ${account.currency}.`);
  }
  const before = URL.parse(callback?.url ?? '');
  if (before !== null) {
    done.push(
      isSameWebhook(before, new URL(url))
        ? 'It replaced an earlier URL of this webhook.'
        : `It replaced the connection's earlier callback at ${before.origin}.`,
    );
  }
  return { done, todo: [] };

  async function call(request: HubriseRequest): Promise<unknown> {
    const answer = await callHubrise(context, request);
    if (answer.status < 300) return answer.json;
    throw refusalOf(answer, `${request.method} ${request.path}`);
  }
}

/** Compares without the query, which contains the token. */
function isSameWebhook(one: URL, other: URL): boolean {
  return one.origin === other.origin && one.pathname === other.pathname;
}

/**
 * Proves only that the token is valid: the request does not use `clientSecret`, and the settings name no location.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const answer = await callHubrise(context, { method: 'GET', path: '/location' }).catch(
    quoteRefusal(
      [401, 403],
      (status) => `HubRise refuses accessToken (${status}): check it, and that the connection still exists`,
    ),
  );
  if (answer.status >= 300) throw refusalOf(answer, 'to show the location', 'baseUrl');
  if (!Location.pick({ id: true }).safeParse(answer.json).success) {
    throw new NeedsOperator('the answer is not a HubRise location: check baseUrl', { httpStatus: answer.status });
  }
  if (context.settings.customers === 'attach') await checkCustomers(context);
}

async function checkCustomers(context: PosContext<Settings>): Promise<void> {
  const { customerListId = '' } = context.settings;
  const path = `/customer_lists/${encodeURIComponent(customerListId)}`;
  const answer = await callHubrise(context, { method: 'GET', path }).catch((error: unknown) => {
    throw listRefused(error);
  });
  if (answer.status >= 300) throw refusalOf(answer, 'the customer list', 'customerListId');
}
