import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { tokenOf } from './obtain-token.ts';
import type { Settings } from './payloads.ts';

/**
 * Logs in, the only possible test without an order: Toast has no API for webhook subscriptions.
 * https://doc.toasttab.com/doc/devguide/apiSubscriptions.html,
 * https://doc.toasttab.com/doc/devguide/devApiAccessWebhookSubscriptions.html
 */
export async function connect(
  context: PosContext<Settings> & { webhookUrl: string; locations: number },
): Promise<Connection> {
  const { settings, webhookUrl, locations, credentials } = context;
  await credentials.accessToken(tokenOf(context));
  return {
    done: ['Toast takes clientId and clientSecret.'],
    todo: [
      'Partners: ask the Toast integrations team for a webhook subscription of the event category guest_order_status, ' +
        `of the restaurant ${settings.restaurantGuid}, to this URL: ${webhookUrl}`,
      'Ask them, too, for one of the category order_updated (or channel_order_updated) to the same URL: it alone ' +
        'reports that nobody approved an order, and where a delivery is.',
      'With standard API access: create the subscription yourself in Toast Web, Integrations > Toast API access > ' +
        'Manage webhooks > Add webhook, category Orders, with the URL above. The category guest_order_status is not ' +
        'offered there: without it orders do not become in progress, ready or completed. Ask Toast for it.',
      'Put the secret of each subscription into webhookSecret: one as text, several as a list.',
      ...(locations > 1
        ? [
            `Expediter has a URL of its own for each of the ${locations} restaurants, and a subscription has one URL: ` +
              `each category needs ${locations} subscriptions. Toast sends the events of all restaurants of a client to ` +
              "each of them; those of others than a location's own are passed over.",
          ]
        : []),
    ],
  };
}
