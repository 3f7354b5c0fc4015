import { z } from 'zod';
import { baseUrl, DeliveredBy, ItemMap, Secret, SHOWN } from '../shared-settings.ts';
import { minutesIfAny, pauseMinutes } from '../kitchen-report.ts';
import { idIfAny, ifAny, textIfAny, timeIfAny } from '../read-json.ts';

export const Settings = z
  .strictObject({
    clientId: Secret.describe("The platform's client at Deliverect, shared by all of its locations."),
    clientSecret: Secret.describe("The client's secret. Deliverect gives both, a set each for staging and production."),
    channelName: z
      .string()
      .regex(/^[a-z0-9][a-z0-9_-]*$/, { error: 'is not one lower-case word, as Deliverect assigns it' })
      .meta({
        ...SHOWN,
        description: 'The scope that Deliverect assigns to the client. The URL of every order contains it.',
      }),
    channelLinkId: z
      .string()
      .regex(/^[A-Za-z0-9]+$/, { error: 'is not an id of letters and digits, such as 61bcc34f657cc48c23eb60d5' })
      .meta({ target: true })
      .describe("The restaurant's id at Deliverect, on its Locations page. Anybody who knows it can sign on staging."),
    hmacSecret: Secret.describe(
      "The secret that signs webhooks. It is the channel link's id until Deliverect assigns a secret, as on staging.",
    ),
    baseUrl: baseUrl('https://api.deliverect.com').describe(
      "The API's URL, which is also the token's audience. On staging it is https://api.staging.deliverect.com.",
    ),
    itemMap: ItemMap.describe("Maps our ids of items and modifiers to Deliverect's PLUs (product codes)."),
    deliveredBy: DeliveredBy.default('restaurant').describe("vendor is Deliverect's delivery service, Dispatch."),
    closedMeansCompleted: z
      .boolean()
      .default(true)
      .describe('True if the statuses 90 and 95, which close an order in the POS, mean that the member has the food.'),
    pauseMinutes: pauseMinutes(),
  })
  .meta({ title: 'Deliverect', description: 'Every POS that is connected to Deliverect.' });
export type Settings = z.infer<typeof Settings>;

const Seconds = z.number().positive();

export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: Seconds.optional(),
  /** Seconds since the Unix epoch. */
  expires_at: Seconds.optional(),
});

const FieldErrors = z.record(z.string(), z.unknown()).catch({});

/** The fields that a 400 names. Their messages are not read, because they may quote the order. */
export const OrderRefused = z.object({ orderFieldsErrors: FieldErrors, orderPaymentErrors: FieldErrors });

/**
 * The answer to a wrong channelName: https://developers.deliverect.com/docs/how-to-create-orders. Its HTTP status is
 * not documented. If the status is 401 or 403, `noAccess` explains it and the body is not read.
 */
export const NotAllowed = z.object({ code: z.literal('Authorization error') });

/**
 * The fields of three webhooks: an order's new preparation time, a courier's status, and an order's status:
 * https://docs.deliverect.com/doc/channel-api/operation/operation-post-/yourwebhook.com/order_status
 */
export const OrderUpdate = z.object({
  /** The status code. It is a number in every sample, but one page documents it as a string. */
  status: z.preprocess((value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value), z.int()),
  /** Our order id, as sent. */
  channelOrderId: idIfAny,
  /** Deliverect's order id. */
  orderId: idIfAny,
  /** The channel link's id. A courier's update has none. */
  channelLink: ifAny(z.string()),
  /** The location's id. A courier's update has none. */
  location: ifAny(z.string()),
  reason: textIfAny,
  timeStamp: timeIfAny,
  /** When the order can be picked up. In a courier's update: when the courier reaches the restaurant. */
  pickupTime: timeIfAny,
  /** In a courier's update: when the order will be delivered. */
  deliveryTime: timeIfAny,
});

export const BusyMode = z.object({
  channelLinkId: z.string(),
  status: z.enum(['PAUSED', 'BUSY', 'ONLINE']),
  delay: minutesIfAny,
});
