import type { Connection, PosContext } from '../../core/domain/provider.ts';
import type { Settings } from './payloads.ts';

/** What Deliverect expects in the answer. One URL serves all: its webhooks are told apart by what is in them. */
const URLS = [
  'statusUpdateURL',
  'menuUpdateURL',
  'snoozeUnsnoozeURL',
  'busyModeURL',
  'updatePrepTimeURL',
  'courierUpdateURL',
  'paymentUpdateURL',
];

/**
 * Lists what the operator has to do. Deliverect's API cannot set webhook URLs: Deliverect calls one registration URL of
 * the platform for every channel link and takes the URLs from its answer.
 * https://developers.deliverect.com/v3.0-ordering-experience/reference/channel_register
 */
export function connect({ settings, webhookUrl }: PosContext<Settings> & { webhookUrl: string }): Promise<Connection> {
  const { channelLinkId, hmacSecret } = settings;
  const answer = JSON.stringify(Object.fromEntries(URLS.map((name) => [name, webhookUrl])));
  const todo = [
    `Have your platform's registration URL, which Deliverect calls with POST and status "register", "active" or ` +
      `"inactive", answer 200 with this JSON when channelLinkId is ${channelLinkId}: ${answer}`,
    'Menus, snoozed items and payments are taken and not used here: where your platform serves them, put its own URL ' +
      'for menuUpdateURL, snoozeUnsnoozeURL or paymentUpdateURL.',
    `Deactivate and activate the channel link in Deliverect, so that it asks again; or ask Deliverect's support to set ` +
      `these URLs on channel link ${channelLinkId}.`,
  ];
  if (hmacSecret === channelLinkId) {
    todo.push(
      'hmacSecret is the channelLinkId, with which Deliverect signs before it has assigned a secret. Before production, ' +
        "generate one in your integration's settings in Deliverect and put it here: anybody who knows the id can sign.",
    );
  }
  return Promise.resolve({ done: [], todo });
}
