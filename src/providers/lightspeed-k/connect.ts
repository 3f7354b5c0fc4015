import { describeError } from '../../core/domain/classify-error.ts';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { callLightspeed, readAnswer, refusalOf } from './call-lightspeed.ts';
import { AccountProfiles, Businesses, Endpoint, Readiness, Refusal, type Settings } from './payloads.ts';
import { quoteRefusal } from '../call-pos.ts';

const ENDPOINTS = '/o/wh/1/webhook';

/**
 * @returns the URL registered for `endpointId`; undefined if none is. Null if the 404 has another message: then the API
 *   cannot register webhooks. One source of 2026-09-29 says this; the vendor's specification of 2026-08-27 does not
 */
async function findEndpoint(context: PosContext<Settings>): Promise<string | undefined | null> {
  const answer = await callLightspeed(context, 'GET', `${ENDPOINTS}/${context.settings.endpointId}`);
  if (answer.status === 404) {
    return /endpoint ID not found/i.test(Refusal.safeParse(answer.json).data?.message ?? '') ? undefined : null;
  }
  return readAnswer(Endpoint, answer, 'the webhook', 'baseUrl and endpointId').url;
}

/**
 * Registers the webhook under `endpointId`, or updates its registration. Each location needs its own endpoint, because
 * an endpoint has one URL. An endpoint that is registered for another URL is not changed: it may be another location's.
 * https://api-docs.lsk.lightspeed.app/operation/operation-apecreatewebhookoo and …/operation-apeupdatewebhookoo
 */
export async function connect(
  context: PosContext<Settings> & { webhookUrl: string; locations: number },
): Promise<Connection> {
  const { webhookUrl, settings } = context;
  const { endpointId, businessLocationId, paymentMethod } = settings;
  const known = await findEndpoint(context);
  if (known === null) return byHand(context);
  if (known !== undefined && pathOf(known) !== pathOf(webhookUrl)) {
    throw new NeedsOperator(
      `endpointId "${endpointId}" is registered at Lightspeed for another URL. Choose another endpointId for this location, ` +
        `or delete that registration with DELETE ${ENDPOINTS}/${endpointId}`,
    );
  }
  const endpoint = {
    endpointId,
    url: webhookUrl,
    withBasicAuth: true,
    username: settings.webhookUsername,
    password: settings.webhookPassword,
    provideAccount: false,
    expandTransactions: false,
    expandPayments: false,
    // Lightspeed sends all other statuses without a subscription.
    subscribeTo: [
      { name: 'DELIVERED', resource: 'order' },
      { name: 'ONLINE_ORDER_READINESS', resource: 'order_api' },
    ],
  };
  const isNew = known === undefined;
  const answer = await callLightspeed(context, isNew ? 'PUT' : 'POST', ENDPOINTS, endpoint);
  if (answer.status >= 300) throw refusalOf(answer, 'the webhook', 'baseUrl, endpointId and PUBLIC_URL');
  return {
    done: [
      `${isNew ? 'Registered' : 'Updated'} the webhook endpoint ${endpointId} at Lightspeed, with HTTP Basic and DELIVERED.`,
    ],
    todo: [
      ...(await linkLocation(context)),
      `Check in Lightspeed's Back Office that business location ${businessLocationId} has an active payment method with ` +
        `the code ${paymentMethod}. A wrong code shows only when an order fails. expediter provider check reports whether ` +
        'online orders are switched on and a till takes them.',
    ],
  };
}

/**
 * Adds the location to the webhook: "Readiness notifications are sent only for associated locations".
 * https://api-portal.lsk.lightspeed.app/guides/integration-guides/online-ordering/online-order-readiness/online-order-readiness-webhooks
 * Throws nothing: an error would revoke the token of the webhook that is registered now.
 * @returns what a person has to do
 */
async function linkLocation(context: PosContext<Settings>): Promise<string[]> {
  const { endpointId, businessLocationId } = context.settings;
  const path = `${ENDPOINTS}/${endpointId}/business-locations/${businessLocationId}`;
  const problem = await callLightspeed(context, 'PUT', path).then(
    ({ status }) => (status < 300 ? undefined : String(status)),
    describeError,
  );
  if (problem === undefined) return [];
  return [
    `Lightspeed does not report when tills stop taking online orders (${problem}). Run expediter provider connect again, or ` +
      `ask Lightspeed to add business location ${businessLocationId} to the webhook ${endpointId}.`,
  ];
}

function byHand({ webhookUrl, settings }: PosContext<Settings> & { webhookUrl: string }): Connection {
  return {
    done: [],
    todo: [
      `Lightspeed's API registers no webhooks (404). Ask Lightspeed to register ${settings.endpointId} for ${webhookUrl} , ` +
        'with webhookUsername and webhookPassword of the settings for HTTP Basic, the order status DELIVERED, ' +
        'and ONLINE_ORDER_READINESS for the business location. ' +
        'If expediter provider check fails, check baseUrl.',
    ],
  };
}

/** Returns a URL's path, which identifies the location. Host and token may change. */
function pathOf(url: string): string | undefined {
  return URL.parse(url)?.pathname;
}

/** Maximum number of menus that `check` reads, and of missing ids that it reports. */
const MENUS_MAX = 20;

/**
 * @returns whether tills take orders now, and the ids that no menu contains
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<string> {
  const { businessLocationId, accountProfileCodes, endpointId, discountCode } = context.settings;
  const locations = await listLocations(context);
  // JSON.parse rounds an id beyond 2^53. Number() rounds ours in the same way, so that the two are equal.
  if (!locations.some((id) => Number(id) === Number(businessLocationId))) {
    throw new NeedsOperator(
      `businessLocationId is not among the ${locations.length} locations that the restaurant authorised: correct it`,
    );
  }
  const wanted = Object.entries(accountProfileCodes);
  const known = wanted.length === 0 ? [] : await listProfiles(context);
  for (const [fulfillment, code] of wanted) {
    if (code !== undefined && !known.includes(code)) {
      throw new NeedsOperator(
        `accountProfileCodes.${fulfillment} is not an active order profile of the location: correct it`,
      );
    }
  }
  const endpoint = await findEndpoint(context);
  if (endpoint === undefined) {
    throw new NeedsOperator(
      `endpointId "${endpointId}" is not registered at Lightspeed, which refuses every order without it: connect the ` +
        'location (expediter provider connect)',
    );
  }
  const tills = describeTills(await readReadiness(context));
  const lacking = await listLacking(context);
  if (lacking.some((each) => each === discountCode)) {
    throw new NeedsOperator('discountCode is not a discount of the location: correct it');
  }
  return [
    tills,
    ...(endpoint === null ? ["the webhook's registration cannot be checked (404)"] : []),
    ...(lacking.length > 0 ? [`no menu contains ${lacking.join(', ')}`] : []),
  ].join('; ');
}

/** Lists the settings' ids that are in no menu and no discount. Empty if menus cannot be read, or are too many. */
async function listLacking(context: PosContext<Settings>): Promise<string[]> {
  const { itemMap, subItemMap, feeSku = [], discountCode = [] } = context.settings;
  const menus = valuesIn(await readMenu(context, '1/menu/list'), ['ikentooMenuId']);
  if (menus.length === 0 || menus.length > MENUS_MAX) return [];
  const known = new Set<string>();
  for (const path of ['1/menu/modifiers', '1/menu/discounts', ...menus.map((id) => `2/menu/load/${id}`)]) {
    const shown = await readMenu(context, path);
    if (shown === undefined) return [];
    for (const each of valuesIn(shown, ['sku', 'ikentooModifierId', 'code'])) known.add(each);
  }
  const named = [discountCode, Object.values(itemMap), Object.values(subItemMap), feeSku].flat();
  return [...new Set(named)].filter((each) => !known.has(each)).slice(0, MENUS_MAX);
}

function valuesIn(json: unknown, fields: readonly string[]): string[] {
  const found: string[] = [];
  JSON.stringify(json, (field, value: unknown) => {
    if (fields.includes(field)) found.push(String(value));
    return value;
  });
  return found;
}

/** Reads a part of the menu: https://api-docs.lsk.lightspeed.app/operation/operation-apegetmenubyidv2 */
async function readMenu(context: PosContext<Settings>, path: string): Promise<unknown> {
  const { businessLocationId } = context.settings;
  const answer = await callLightspeed(context, 'GET', `/o/op/${path}?businessLocationId=${businessLocationId}`);
  return answer.status < 300 ? answer.json : undefined;
}

/** Reads whether tills take orders: https://api-docs.lsk.lightspeed.app/operation/operation-apegetonlineorderreadiness */
async function readReadiness(context: PosContext<Settings>): Promise<Readiness> {
  const path = `/o/op/1/onlineOrderReadiness?businessLocationId=${context.settings.businessLocationId}`;
  const answer = await callLightspeed(context, 'GET', path);
  return readAnswer(Readiness, answer, 'its tills', 'businessLocationId and baseUrl');
}

/** Throws only if the Back Office has the API off. The other reasons are temporary, such as a closed restaurant. */
function describeTills({ status, onlineOrderingApiConfiguration, posStatus }: Readiness): string {
  if (!onlineOrderingApiConfiguration.enabled) {
    throw new NeedsOperator(
      "the Online Ordering API is switched off for the business location in Lightspeed's Back Office: switch it on, so that " +
        'tills take orders',
    );
  }
  if (status === 'READY') return 'its tills take online orders now';
  const reasons = [
    posStatus.salesPeriod === 'CLOSED' && 'the sales period is closed',
    !posStatus.acceptingOnlineOrders && 'online orders are switched off at the POS',
    !posStatus.availableDevices && 'no device is online with the app open',
  ].filter((reason) => reason !== false);
  return ['no till takes online orders now', reasons.join(', ')].filter(Boolean).join(': ');
}

async function listLocations(context: PosContext<Settings>): Promise<readonly (string | number)[]> {
  const answer = await callLightspeed(context, 'GET', '/o/op/data/businesses').catch(
    quoteRefusal(
      [403],
      (status) => `Lightspeed refuses this authorisation (${status}): check that it has the scope orders-api`,
    ),
  );
  const businesses = readAnswer(Businesses, answer, 'the list of locations', 'baseUrl and clientId');
  return businesses.flatMap(({ businessLocations }) => businessLocations.map(({ id }) => id));
}

async function listProfiles(context: PosContext<Settings>): Promise<readonly string[]> {
  const path = `/o/op/data/account-profiles?businessLocationId=${context.settings.businessLocationId}`;
  const answer = await callLightspeed(context, 'GET', path);
  const settings = 'businessLocationId and baseUrl';
  return readAnswer(AccountProfiles, answer, 'the list of order profiles', settings).accountProfileList.map(
    ({ code }) => code,
  );
}
