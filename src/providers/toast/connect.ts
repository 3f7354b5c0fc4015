import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { callToast, refusalOf, tokenOf } from './call-toast.ts';
import { writeTime } from './write-order.ts';
import { DiningOptions, type Settings } from './payloads.ts';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { FulfillmentType } from '../../core/domain/lifecycle.ts';
import { type PosAnswer, quoteRefusal } from '../call-pos.ts';

/** Toast has no API for webhook subscriptions: https://doc.toasttab.com/doc/devguide/apiSubscriptions.html */
export async function connect(
  context: PosContext<Settings> & { webhookUrl: string; locations: number },
): Promise<Connection> {
  const { settings, webhookUrl, locations, credentials } = context;
  await credentials.accessToken(tokenOf(context));
  return {
    done: ['Toast accepts clientId and clientSecret.'],
    todo: [
      'Partners: ask the Toast integrations team for a webhook subscription to the event category guest_order_status, ' +
        `for the restaurant ${settings.restaurantGuid}, with this URL: ${webhookUrl}`,
      'Also ask for a subscription to order_updated (or channel_order_updated) with the same URL: only this category ' +
        'reports unapproved orders and the progress of deliveries.',
      'Also ask for a subscription to restaurant_availability with the same URL: only this category says that the ' +
        'restaurant takes no online orders.',
      'With standard API access: create the subscription yourself in Toast Web, Integrations > Toast API access > ' +
        'Manage webhooks > Add webhook, categories Orders and Restaurant availability, with the URL above. Toast Web does ' +
        'not offer the category guest_order_status. Without it orders do not become in progress, ready or completed: ' +
        'ask Toast for it.',
      'Put the secret of each subscription into webhookSecret. It takes several.',
      ...(locations > 1
        ? [
            `Each of the ${locations} restaurants has its own URL, and a subscription has one URL: ` +
              `each category needs ${locations} subscriptions. Toast sends the events of all restaurants of a client to ` +
              'each URL. Events of other restaurants are recorded as ignored.',
          ]
        : []),
    ],
  };
}

/** The time span in milliseconds from which `check` reads orders. It is short, so that there are few. */
const SPAN_MS = 60_000;

const BEHAVIORS: Readonly<Record<FulfillmentType, string>> = { pickup: 'TAKE_OUT', delivery: 'DELIVERY' };

/**
 * Reads at most one order of the last minute, which proves client and restaurant and needs only the scopes of orders.
 * Then it reads the dining options, if the client may see them.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  await listOrders(context);
  const options = await listDiningOptions(context);
  if (options !== undefined) checkDiningOptions(options, context.settings);
  if (context.settings.specialRequestItem === undefined) {
    throw new NeedsOperator('specialRequestItem is missing: Toast requires an item for each note');
  }
}

function checkDiningOptions(options: DiningOptions, { diningOptionGuids }: Settings): void {
  for (const fulfillment of ['pickup', 'delivery'] as const) {
    const guid = diningOptionGuids[fulfillment];
    const option = options.find((each) => each.guid === guid);
    const name = `diningOptionGuids.${fulfillment}`;
    if (option === undefined) throw new NeedsOperator(`${name} is not a dining option of this restaurant: correct it`);
    const { behavior = BEHAVIORS[fulfillment], curbside = false } = option;
    if (behavior !== BEHAVIORS[fulfillment] || curbside) {
      throw new NeedsOperator(
        `${name} is a dining option for ${curbside ? 'curbside pickup' : behavior}: use one for ${BEHAVIORS[fulfillment]}`,
      );
    }
  }
}

/** Lists orders. `GET /orders` is deprecated: https://doc.toasttab.com/openapi/orders/operation/ordersBulkGet/ */
async function listOrders(context: PosContext<Settings>): Promise<void> {
  const { now } = context;
  const span = new URLSearchParams({
    startDate: writeTime(new Date(now.getTime() - SPAN_MS)),
    endDate: writeTime(now),
    pageSize: '1',
  });
  const answer = await callToast(context, 'GET', `/orders/v2/ordersBulk?${span.toString()}`).catch(
    quoteRefusal(
      [403],
      (status) =>
        `Toast refuses to show orders (${status}): connect restaurantGuid to this client, and give the client the ` +
        'scopes orders:read and orders.channel:read',
    ),
  );
  if (answer.status >= 300) throw refusalOf(answer, 'orders');
  if (!Array.isArray(answer.json)) {
    throw new NeedsOperator("Toast's list of orders cannot be read: check baseUrl");
  }
}

/**
 * Lists the dining options: https://doc.toasttab.com/openapi/configuration/operation/diningOptionsGet/
 * @returns undefined if the client lacks the scope config:read, or if there is more than one page
 */
async function listDiningOptions(context: PosContext<Settings>): Promise<DiningOptions | undefined> {
  let answer: PosAnswer;
  try {
    answer = await callToast(context, 'GET', '/config/v2/diningOptions');
  } catch (error) {
    // `check` has just read orders, so this 403 is about the scope.
    if (error instanceof NeedsOperator && error.httpStatus === 403) return undefined;
    throw error;
  }
  if (answer.status >= 300) throw refusalOf(answer, 'dining options');
  if (answer.headers.has('toast-next-page-token')) return undefined;
  const options = DiningOptions.safeParse(answer.json);
  if (!options.success) throw new NeedsOperator("Toast's list of dining options cannot be read: check baseUrl");
  return options.data;
}
