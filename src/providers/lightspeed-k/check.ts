import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { findEndpoint } from './find-endpoint.ts';
import { AccountProfiles, Businesses, Readiness } from './payloads.ts';
import type { Settings } from './payloads.ts';

/**
 * Checks what a read can show: the business location, its order profiles, the webhook's registration, and that online
 * orders are switched on. No equally small read shows payment methods and SKUs.
 * @returns whether tills take orders now
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<string> {
  const { businessLocationId, accountProfileCodes, endpointId } = context.settings;
  const locations = await listLocations(context);
  // Ids are compared as numbers: beyond 2^53, JSON leaves no more of them.
  if (!locations.some((id) => Number(id) === Number(businessLocationId))) {
    throw new NeedsOperator(
      `businessLocationId is none of the ${locations.length} locations that the restaurant authorised: which is it?`,
    );
  }
  const wanted = Object.entries(accountProfileCodes);
  const known = wanted.length === 0 ? [] : await listProfiles(context);
  for (const [fulfillment, code] of wanted) {
    if (code !== undefined && !known.includes(code)) {
      throw new NeedsOperator(
        `accountProfileCodes.${fulfillment} is none of the location's active order profiles: which is it?`,
      );
    }
  }
  if ((await findEndpoint(context)) === undefined) {
    throw new NeedsOperator(
      `endpointId "${endpointId}" is not registered at Lightspeed, and it refuses every order until it is: connect the ` +
        'location (expediter provider connect)',
    );
  }
  return describeTills(await readReadiness(context));
}

/** Reads whether tills take orders: https://api-docs.lsk.lightspeed.app/operation/operation-apegetonlineorderreadiness */
async function readReadiness(context: PosContext<Settings>): Promise<Readiness> {
  const path = `/o/op/1/onlineOrderReadiness?businessLocationId=${context.settings.businessLocationId}`;
  const answer = await callLightspeed(context, 'GET', path);
  if (answer.status >= 300) {
    throw refusalOf(answer, 'to say whether tills take orders', 'businessLocationId and baseUrl');
  }
  const readiness = Readiness.safeParse(answer.json);
  if (!readiness.success) {
    throw new NeedsOperator('What Lightspeed says of its tills cannot be read: is baseUrl right?');
  }
  return readiness.data;
}

/** The switch in the Back Office is a setting, unlike the rest: a restaurant may be closed. */
function describeTills({ status, onlineOrderingApiConfiguration, posStatus }: Readiness): string {
  if (!onlineOrderingApiConfiguration.enabled) {
    throw new NeedsOperator(
      "the Online Ordering API is switched off for the business location in Lightspeed's Back Office, and no till takes " +
        'an order until it is on',
    );
  }
  if (status === 'READY') return 'its tills take online orders now';
  const why = [
    posStatus.salesPeriod === 'CLOSED' && 'the sales period is closed',
    !posStatus.acceptingOnlineOrders && 'online orders are switched off at the POS',
    !posStatus.availableDevices && 'no device is online with the app open',
  ].filter((reason) => reason !== false);
  return ['no till takes online orders now', why.join(', ')].filter(Boolean).join(': ');
}

/** Ids that the token may see: https://api-docs.lsk.lightspeed.app/operation/operation-apelookupbusinesses */
async function listLocations(context: PosContext<Settings>): Promise<readonly (string | number)[]> {
  const answer = await callLightspeed(context, 'GET', '/o/op/data/businesses').catch(
    quoteRefusal(
      [403],
      (status) => `Lightspeed lets this authorisation read nothing (${status}): has it the scope orders-api?`,
    ),
  );
  if (answer.status >= 300) throw refusalOf(answer, 'to list the locations', 'baseUrl and clientId');
  const businesses = Businesses.safeParse(answer.json);
  if (!businesses.success) throw new NeedsOperator("Lightspeed's list of locations cannot be read: is baseUrl right?");
  return businesses.data.flatMap(({ businessLocations }) => businessLocations.map(({ id }) => id));
}

/** Codes of the active order profiles: https://api-docs.lsk.lightspeed.app/operation/operation-apeaccountprofiles */
async function listProfiles(context: PosContext<Settings>): Promise<readonly string[]> {
  const path = `/o/op/data/account-profiles?businessLocationId=${context.settings.businessLocationId}`;
  const answer = await callLightspeed(context, 'GET', path);
  if (answer.status >= 300) throw refusalOf(answer, 'to list the order profiles', 'businessLocationId and baseUrl');
  const profiles = AccountProfiles.safeParse(answer.json);
  if (!profiles.success)
    throw new NeedsOperator("Lightspeed's list of order profiles cannot be read: is baseUrl right?");
  return profiles.data.accountProfileList.map(({ code }) => code);
}
