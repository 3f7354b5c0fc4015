import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { Endpoint } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** The path of webhook registrations: https://api-docs.lsk.lightspeed.app/operation/operation-apecreatewebhookoo */
export const ENDPOINTS = '/o/wh/1/webhook';

/** @returns the URL that `endpointId` is registered for, or undefined */
export async function findEndpoint(context: PosContext<Settings>): Promise<string | undefined> {
  const answer = await callLightspeed(context, 'GET', `${ENDPOINTS}/${context.settings.endpointId}`);
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw refusalOf(answer, 'the webhook', 'baseUrl and endpointId');
  const endpoint = Endpoint.safeParse(answer.json);
  if (!endpoint.success) {
    throw new NeedsOperator('Lightspeed told of the webhook endpoint without its url: is baseUrl right?');
  }
  return endpoint.data.url;
}
