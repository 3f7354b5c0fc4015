import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callLightspeed, refusalOf } from './call-lightspeed.ts';
import { Endpoint, Refusal } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** The path of webhook registrations: https://api-docs.lsk.lightspeed.app/operation/operation-apecreatewebhookoo */
export const ENDPOINTS = '/o/wh/1/webhook';

/**
 * @returns the URL that `endpointId` is registered for, or undefined; null if the API has no such registrations, which one
 *   source of 2026-09-29 says, against the vendor's specification of 2026-08-27: that 404 has other words
 */
export async function findEndpoint(context: PosContext<Settings>): Promise<string | undefined | null> {
  const answer = await callLightspeed(context, 'GET', `${ENDPOINTS}/${context.settings.endpointId}`);
  if (answer.status === 404) {
    return /endpoint ID not found/i.test(Refusal.safeParse(answer.json).data?.message ?? '') ? undefined : null;
  }
  if (answer.status >= 300) throw refusalOf(answer, 'the webhook', 'baseUrl and endpointId');
  const endpoint = Endpoint.safeParse(answer.json);
  if (!endpoint.success) {
    throw new NeedsOperator('Lightspeed told of the webhook endpoint without its url: is baseUrl right?');
  }
  return endpoint.data.url;
}
