import type { Connection, PosContext } from '../../core/domain/provider.ts';
import type { Settings } from './payloads.ts';

/**
 * Lists what the operator has to do. Deliverect's API cannot set webhook URLs: Deliverect calls one registration URL of
 * the platform for every channel link and takes the URLs from its answer.
 * https://developers.deliverect.com/v3.0-ordering-experience/reference/channel_register
 */
export function connect({ settings, webhookUrl }: PosContext<Settings> & { webhookUrl: string }): Promise<Connection> {
  const { channelLinkId, hmacSecret } = settings;
  const urls = JSON.stringify({ statusUpdateURL: webhookUrl, courierUpdateURL: webhookUrl });
  const todo = [
    `Have your platform's registration URL, which Deliverect calls with POST and status "register" or "active", ` +
      `answer with these two beside the URLs it has for menus and the like, when channelLinkId is ${channelLinkId}: ${urls}`,
    `Deactivate and activate the channel link in Deliverect, so that it asks again; or ask Deliverect's support to set ` +
      `both URLs on channel link ${channelLinkId}.`,
  ];
  if (hmacSecret === channelLinkId) {
    todo.push(
      'hmacSecret is the channelLinkId, with which Deliverect signs before it has assigned a secret. Before production, ' +
        "generate one in your integration's settings in Deliverect and put it here: anybody who knows the id can sign.",
    );
  }
  return Promise.resolve({ done: [], todo });
}
