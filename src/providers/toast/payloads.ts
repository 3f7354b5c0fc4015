import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { absentable, ifAny, requestedId, timeIfAny } from '../read-json.ts';
import { BaseUrl, DeliveredBy, Secret, SHOWN } from '../shared-settings.ts';
import { pauseMinutes } from '../kitchen-report.ts';

const Guid = z.guid({ error: 'is not a GUID such as 9c59d4ab-8242-450f-8f36-b16e1b3ab802' }).meta(SHOWN);

/** An id in a menu: a GUID, or a multiLocationId, which names the same entry in all restaurants of a group. */
export const MENU_ID = String.raw`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d{1,20}`;
const MenuId = z.string().regex(new RegExp(`^(?:${MENU_ID})$`), {
  error: 'is neither a GUID nor a multiLocationId, digits as text, such as "500000008202871058"',
});

/** A place in Toast's menu: an item in a menu group, a modifier in a modifier group, or both. */
const MenuEntry = z
  .strictObject({ item: MenuId, itemGroup: MenuId.optional(), optionGroup: MenuId.optional() })
  .refine(({ itemGroup, optionGroup }) => itemGroup !== undefined || optionGroup !== undefined, {
    error: 'needs itemGroup (for an item) or optionGroup (for a modifier)',
  });
export type MenuEntry = z.infer<typeof MenuEntry>;

export const Settings = z
  .strictObject({
    baseUrl: BaseUrl.describe(
      "The API's host. Toast gives each partner its own: https://doc.toasttab.com/doc/devguide/apiEnvironments.html",
    ),
    clientId: Secret.describe('The id of the API client, as Toast gives it with baseUrl.'),
    clientSecret: Secret.describe("The client's secret, as Toast gives it."),
    restaurantGuid: Guid.meta({ target: true }).describe(
      "The restaurant's GUID, from Toast's partners webhook or API.",
    ),
    webhookSecret: z
      .union([Secret, z.array(Secret).min(1)], {
        error: 'is neither the secret of a webhook subscription nor a list of secrets',
      })
      .describe('The secrets of all subscriptions: each event category has a subscription of its own.'),
    diningOptionGuids: z
      .strictObject({ pickup: Guid, delivery: Guid })
      .describe("Dining options of behavior TAKE_OUT and DELIVERY. All GUIDs are in Toast's configuration API."),
    alternatePaymentGuid: Guid.optional().describe(
      'The alternate payment type, of type OTHER, that marks orders as paid. Without it they arrive unpaid.',
    ),
    feeServiceChargeGuid: Guid.optional().describe(
      'A service charge with an open amount, for the fee. Without it: no fee.',
    ),
    discountGuid: Guid.optional().describe(
      'A check discount with an open amount. Without it a note tells staff to subtract discounts.',
    ),
    namingAuthority: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,16}$/, { error: 'is not the name that Toast assigned, of up to 16 letters and digits' })
      .optional()
      .meta({ ...SHOWN, description: 'The name that Toast assigned to the platform. It is the prefix of order ids.' }),
    defaultState: z
      .string()
      .regex(/^[A-Z]{2}$/, { error: 'is not a two-letter abbreviation such as MA' })
      .optional()
      .meta({ ...SHOWN, description: 'The US state for an address that names none.' }),
    itemMap: z
      .record(Id, MenuEntry)
      .default({})
      .meta({
        ...SHOWN,
        description:
          "Maps our ids to places in Toast's menu, from its menus API. An id without an entry is `<group's id>/<item's id>`.",
      }),
    // Toast's schema requires an item in each selection, but the guide's example has none.
    specialRequestItem: z
      .strictObject({ item: MenuId, itemGroup: MenuId, optionGroup: MenuId })
      .optional()
      .meta({
        ...SHOWN,
        description: 'A free menu item for special requests, in a menu group and in a modifier group of the menu.',
      }),
    deliveredBy: DeliveredBy.default('restaurant').describe('With platform, the tip is not sent to Toast.'),
    closedMeansCompleted: z
      .boolean()
      .default(true)
      .describe('True if a closed order means that the member has the food.'),
    /**
     * Shorter than at other POS systems. Toast says that a restaurant is online again when its device fires an order, and
     * ours wait until then. Toast takes the orders of an offline restaurant and shows them later.
     */
    pauseMinutes: pauseMinutes(60),
  })
  .meta({ title: 'Toast', description: 'Toast, in the USA and Canada.' });
export type Settings = z.infer<typeof Settings>;

/**
 * The header that tells when a rate limit ends, "in UNIX epoch format". After a 429 a client must read this header or
 * `Retry-After`: https://doc.toasttab.com/doc/devguide/apiRateLimiting.html
 */
export const RATE_LIMIT_RESET = 'x-toast-ratelimit-reset';

/** The answer to a login: https://doc.toasttab.com/openapi/authentication/operation/authenticationLoginPost/ */
export const LoginAnswer = z.object({
  token: z.object({ accessToken: z.string().min(1), expiresIn: z.number().positive() }),
});

const Taken = z.object({
  guid: Id,
  modifiedDate: timeIfAny,
  estimatedFulfillmentDate: timeIfAny,
  promisedDate: timeIfAny,
  diningOption: ifAny(z.object({ guid: z.string() })),
});

/** An order, or a list with one order. In Toast's documentation the schema has a list, but the example has an order. */
export const TakenOrder = z.union([
  Taken,
  z.object({ orders: z.tuple([Taken]) }).transform(({ orders: [order] }) => order),
]);

export const PricedOrder = z.object({ checks: z.tuple([z.object({ totalAmount: z.number().nonnegative() })]) });

export const DiningOptions = z.array(
  z.object({
    guid: z.string(),
    behavior: absentable(z.string().regex(/^[A-Z_]{1,40}$/)),
    curbside: absentable(z.boolean()),
  }),
);
export type DiningOptions = z.infer<typeof DiningOptions>;

/** An error: https://doc.toasttab.com/doc/devguide/apiResponsesAndErrors.html. Any field may be missing. */
export const ErrorMessage = z.object({
  code: z.int().optional().catch(undefined),
  message: z.string().catch(''),
  developerMessage: z.string().catch(''),
  requestId: z
    .string()
    .regex(/^[\w-]{1,64}$/)
    .optional()
    .catch(undefined),
});

export const Signed = z.object({ timestamp: z.string() });

export const AnyEvent = z.object({ eventType: z.string() });

export const OfRestaurant = z.object({ details: z.object({ restaurantGuid: z.string() }) });
export type OfRestaurant = z.infer<typeof OfRestaurant>;

/** Whether online orders are taken: https://doc.toasttab.com/doc/devguide/apiRxAvailabilityWebhook.html */
export const AvailabilityChanged = z.object({
  eventCategory: z.enum(['restaurant_availability', 'restaurant_availability_toggle']),
  details: z.object({ restaurantGuid: z.string(), status: z.enum(['ONLINE', 'OFFLINE']) }),
});

export const GuestOrderStatusUpdated = z.object({
  details: z.object({
    orderGuid: Id,
    guestOrderStatus: z.string(),
    lastUpdated: timeIfAny,
  }),
});

/** The fields of an order that show its state: https://doc.toasttab.com/openapi/orders/operation/ordersGuidGet/ */
export const ToastOrder = z.object({
  ...Taken.shape,
  approvalStatus: ifAny(z.string()),
  voided: ifAny(z.boolean()),
  deliveryInfo: ifAny(z.object({ deliveryState: ifAny(z.string()) })),
  checks: z
    .array(
      z.object({
        selections: z
          .array(
            z.object({
              fulfillmentStatus: z.string().nullish(),
              selectionType: z.string().nullish(),
              voided: z.boolean().nullish(),
            }),
          )
          .catch([]),
        payments: z
          .array(z.object({ type: z.string().nullish() }))
          .nullish()
          .catch(undefined),
      }),
    )
    .catch([]),
});

/** Schema of an answer about an order, which was requested by its GUID or by our id. */
export function requestedOrder({ guid, externalId }: { guid: string | undefined; externalId: string }) {
  const ours = requestedId(externalId);
  return ToastOrder.extend({
    guid: guid === undefined ? Id : requestedId(guid),
    externalId: guid === undefined ? ours : absentable(ours),
  });
}

export const VoidedOrder = z.object({ voided: z.literal(true) });

export const OrderUpdated = z.object({ timestamp: timeIfAny, details: z.object({ order: ToastOrder }) });

/** Returns `{authority-name}:{identifier}`: https://doc.toasttab.com/doc/devguide/portalToastIdentifiers.html */
export function externalIdOf(serviceOrderId: string, { namingAuthority }: Settings): string {
  return namingAuthority === undefined ? serviceOrderId : `${namingAuthority}:${serviceOrderId}`;
}
