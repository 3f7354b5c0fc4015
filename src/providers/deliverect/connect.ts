import type { Connection, PosContext } from '../../core/domain/provider.ts';
import type { Settings } from './payloads.ts';

/** The fields that the registration's answer needs. All get the same URL, because webhooks differ by their content. */
const URLS = [
  'statusUpdateURL',
  'menuUpdateURL',
  'snoozeUnsnoozeURL',
  'busyModeURL',
  'updatePrepTimeURL',
  'courierUpdateURL',
  'paymentUpdateURL',
];

/** Lists the steps: https://developers.deliverect.com/v3.0-ordering-experience/reference/channel_register */
export function connect({ settings, webhookUrl }: PosContext<Settings> & { webhookUrl: string }): Promise<Connection> {
  const { channelLinkId, hmacSecret } = settings;
  const answer = JSON.stringify(Object.fromEntries(URLS.map((name) => [name, webhookUrl])));
  const todo = [
    `Deliverect calls your platform's registration URL with POST and status "register", "active" or ` +
      `"inactive". Answer 200 with this JSON if channelLinkId is that of the settings: ${answer}`,
    'Expediter accepts menus, snoozed items and payments, and ignores them. If your platform uses them, put its own URL ' +
      'into menuUpdateURL, snoozeUnsnoozeURL or paymentUpdateURL.',
    "Deactivate and activate the channel link in Deliverect, so that it calls that URL. Or ask Deliverect's support to set " +
      'these URLs on the channel link.',
  ];
  if (hmacSecret === channelLinkId) {
    todo.push(
      'hmacSecret is still the channelLinkId, so anybody who knows the id can sign webhooks. Before production, ' +
        "generate a secret in your integration's settings in Deliverect and put it into hmacSecret.",
    );
  }
  return Promise.resolve({ done: [], todo });
}
