import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { absentable, ifAny, requestedId, textIfAny, timeIfAny } from '../read-json.ts';
import { DeliveredBy, HttpUrl, ItemMap, Secret, baseUrl, SHOWN } from '../shared-settings.ts';

const Minutes = z.int().min(1).max(1440);

/** The version of the API that these payloads follow: https://developer.squareup.com/docs/changelog/connect */
export const API_VERSION = '2026-05-20';

const Fields = z.strictObject({
  accessToken: Secret.optional().describe("The application's own token, or a seller's token that we do not renew."),
  clientId: Secret.optional().meta({
    ...SHOWN,
    description:
      "Instead of accessToken: the application's id and secret, and the seller's refreshToken, which renews tokens. " +
      'The id is in the URL of the page where the seller agrees.',
  }),
  clientSecret: Secret.optional().describe("The application's secret, next to its id in the Developer Console."),
  refreshToken: Secret.optional().describe('The refresh token of the code flow. Connect fills it in.'),
  authorizationCode: Secret.optional().describe('An authorisation code, which Connect exchanges.'),
  merchantId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ target: 'shared' })
    .meta({ ...SHOWN, description: 'The id of the seller who granted the access. Filled in with the refreshToken.' }),
  locationId: z
    .string()
    .regex(/^\w{1,255}$/, { error: 'is not a location id of Square: letters and digits' })
    .meta({ target: true })
    .meta({ ...SHOWN, description: "Square's id of the location, from Locations in the Developer Console." }),
  signatureKey: Secret.optional().describe('The key of the webhook subscription. Connect fills it in.'),
  notificationUrl: HttpUrl.optional().describe(
    "The subscription's exact URL, which the signature covers. By default it is made from PUBLIC_URL.",
  ),
  itemMap: ItemMap,
  closedMeansCompleted: z
    .boolean()
    .default(true)
    .describe(
      'True if a fulfillment completed at the till means that the member has the food. The state COMPLETED of an order never means that: it means paid, and our orders are paid from the start.',
    ),
  prepMinutes: z
    .strictObject({ pickup: Minutes.default(15), delivery: Minutes.default(30) })
    .prefault({})
    .describe(
      "Preparation times of ASAP orders. A delivery's time includes the way to the member. No API reports these times. Square requires one for a delivery, and does not document how it treats an ASAP pickup without one.",
    ),
  deliveredBy: DeliveredBy.optional().describe("restaurant (default) is the seller's staff, whose tips Square pools."),
  ownCouriers: z
    .boolean()
    .optional()
    .describe('Older settings have this instead of deliveredBy: false means platform.'),
  baseUrl: baseUrl('https://connect.squareup.com'),
});

export const Application = Fields.pick({ baseUrl: true, clientId: true, clientSecret: true }).required({
  clientId: true,
  clientSecret: true,
});

/** The settings of one location. They contain an `accessToken`, or the application's id and secret. */
export const Settings = Fields.superRefine((settings, { addIssue }) => {
  const { accessToken, clientId, clientSecret, refreshToken, authorizationCode } = settings;
  const isMissing = (field: string): void => addIssue({ code: 'custom', path: [field], message: 'is missing' });
  const isByOAuth = [clientId, clientSecret, refreshToken, authorizationCode].some((each) => each !== undefined);
  if (accessToken === undefined && !isByOAuth) isMissing('accessToken');
  if (accessToken !== undefined && isByOAuth) {
    addIssue({
      code: 'custom',
      path: ['accessToken'],
      message:
        'is not needed: remove accessToken, or remove clientId, clientSecret, refreshToken and authorizationCode',
    });
  }
  if (accessToken === undefined && isByOAuth && clientId === undefined) isMissing('clientId');
  if (accessToken === undefined && isByOAuth && clientSecret === undefined) isMissing('clientSecret');
}).meta({ title: 'Square', description: 'Square POS and Square for Restaurants.' });
export type Settings = z.infer<typeof Settings>;

/** An amount in minor units, like ours. */
const Money = z.object({ amount: z.int().default(0), currency: z.string() });

/** The fields of Square's order that we read: https://developer.squareup.com/reference/square/objects/Order */
export const SquareOrder = z.object({
  id: Id,
  reference_id: z.string().optional(),
  total_money: Money,
  net_amount_due_money: Money.optional(),
  service_charges: z.array(z.object({ name: z.string().nullish() })).nullish(),
});
export type SquareOrder = z.infer<typeof SquareOrder>;

export const MerchantAnswer = z.object({ merchant: z.object({ id: Id, business_name: z.string().nullish() }) });

export const OrderAnswer = z.object({ order: SquareOrder });

/**
 * When a fulfillment is due and why it ended. An ASAP fulfillment is due `prep_time_duration` after now.
 * https://developer.squareup.com/reference/square/objects/FulfillmentPickupDetails
 */
const Details = z.object({
  pickup_at: timeIfAny,
  deliver_at: timeIfAny,
  cancel_reason: textIfAny,
  expired_at: timeIfAny,
});
export type Details = z.infer<typeof Details>;

/** Schema of an answer about an order: https://developer.squareup.com/reference/square/orders-api/retrieve-order */
export function orderState({ id, locationId, reference }: { id: string; locationId: string; reference: string }) {
  return z.object({
    order: z.object({
      id: requestedId(id),
      location_id: requestedId(locationId),
      reference_id: absentable(requestedId(reference)),
      state: z.string().optional(),
      version: z.int().default(1),
      updated_at: timeIfAny,
      fulfillments: z
        .array(
          z.object({
            uid: absentable(z.string()),
            state: z.string(),
            pickup_details: absentable(Details),
            delivery_details: absentable(Details),
          }),
        )
        .max(50)
        .default([]),
    }),
  });
}

/** A page of orders. An order with another shape was made at a till, so it is not ours. */
export const FoundOrders = z.object({
  orders: z.array(SquareOrder.nullable().catch(null)).default([]),
  cursor: z.string().optional(),
});

export const LocationAnswer = z.object({ location: z.object({ id: Id, status: z.string().nullish() }) });

export const OrderEntries = z.object({ order_entries: z.array(z.unknown()).optional() });

export const Refusal = z.object({
  errors: z
    .array(
      z.object({
        category: z.string().optional(),
        code: z.string(),
        detail: z.string().optional(),
        field: z.string().optional(),
      }),
    )
    .min(1),
});

const Subscription = z.object({
  id: z.string().min(1),
  enabled: z.boolean().optional(),
  event_types: z.array(z.string()).default([]),
  notification_url: z.string().optional(),
  signature_key: z.string().min(1).optional(),
});
export type Subscription = z.infer<typeof Subscription>;

export const SubscriptionAnswer = z.object({ subscription: Subscription });
export const SubscriptionList = z.object({
  subscriptions: z.array(Subscription).default([]),
  cursor: z.string().optional(),
});

/** A time in Square's format, such as 2022-10-20T22:03:46Z. */
const Time = z.string().refine((text) => !Number.isNaN(Date.parse(text)));

/** A token's scopes and expiry: https://developer.squareup.com/reference/square/oauth-api/retrieve-token-status */
export const TokenStatus = z.object({
  scopes: z.array(z.string()).nullish(),
  /** Missing if the token never expires. */
  expires_at: Time.nullish().catch(undefined),
});

export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_at: Time,
  refresh_token: z.string().min(1).optional(),
  merchant_id: absentable(z.string().min(1).max(255)),
});

export const AnyEvent = z.object({ type: z.string(), created_at: timeIfAny });

export const AuthorizationRevoked = z.object({
  merchant_id: z.string(),
  data: z.object({ object: z.object({ revocation: z.object({ revoked_at: Time }) }) }),
});

/** One that cannot be read says nothing, and its neighbours still count. */
const Change = z.object({ old_state: ifAny(z.string()), new_state: z.string() });

const about = { order_id: Id, location_id: z.string(), updated_at: timeIfAny };

export const FulfillmentUpdated = z.object({
  data: z.object({
    object: z.object({
      order_fulfillment_updated: z.object({
        ...about,
        fulfillment_update: z
          .array(ifAny(Change))
          .refine((all) => all.length === 0 || all.some((each) => each !== undefined), {
            error: 'has no entry with new_state',
          }),
      }),
    }),
  }),
});

export const OrderUpdated = z.object({
  data: z.object({ object: z.object({ order_updated: z.object({ ...about, state: z.string() }) }) }),
});
