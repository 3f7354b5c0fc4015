import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { ENDPOINTS, findEndpoint } from './find-endpoint.ts';
import type { Settings } from './payloads.ts';

/**
 * Registers the webhook under `endpointId`, or updates its registration. An endpoint has one URL, and each location has
 * its own: an endpoint registered for another URL is left alone.
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
      `endpointId "${endpointId}" is registered at Lightspeed for another URL: give this location one of its own, ` +
        `or delete that with DELETE ${ENDPOINTS}/${endpointId}`,
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
    // All other statuses are sent in any case.
    subscribeTo: [{ name: 'DELIVERED', resource: 'order' }],
  };
  const isNew = known === undefined;
  const answer = await callLightspeed(context, isNew ? 'PUT' : 'POST', ENDPOINTS, endpoint);
  if (answer.status >= 300) throw refusalOf(answer, 'the webhook', 'baseUrl, endpointId and PUBLIC_URL');
  return {
    done: [
      `${isNew ? 'Registered' : 'Updated'} the webhook endpoint ${endpointId} at Lightspeed, with Basic and DELIVERED.`,
    ],
    todo: [
      `See in Lightspeed's Back Office that business location ${businessLocationId} has an active payment method with ` +
        `the code ${paymentMethod}: no order says so before it fails. Whether online orders are switched on and a till ` +
        'takes them, expediter provider check says.',
    ],
  };
}

function byHand({ webhookUrl, settings }: PosContext<Settings> & { webhookUrl: string }): Connection {
  return {
    done: [],
    todo: [
      `Lightspeed's API registers no webhooks (404): have Lightspeed register ${settings.endpointId} for ${webhookUrl} , ` +
        'with Basic by webhookUsername and webhookPassword of the settings, and DELIVERED of orders. If ' +
        'expediter provider check fails, baseUrl may be wrong instead',
    ],
  };
}

/** The path identifies the location. Host and token may change. */
function pathOf(url: string): string | undefined {
  return URL.parse(url)?.pathname;
}
