import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { idIfAny, ifAny, requestedId, textIfAny, timeIfAny } from '../read-json.ts';
import { baseUrl, HttpUrl, ItemMap, Secret, SHOWN } from '../shared-settings.ts';
import { pauseMinutes } from '../kitchen-report.ts';
import type { Status } from '../../core/domain/lifecycle.ts';

const INT64_MAX = 2n ** 63n - 1n;
/** Maximum number of characters of a `sku`, from the vendor's schema apeToGoOrderItemLine. */
export const SKU_MAX = 25;

/** An int64 as a string of digits, because a JSON number beyond 2^53 would lose digits. */
const BusinessLocationId = z
  .union([z.string(), z.int()], { error: 'is neither a string of digits nor an integer' })
  .transform(String)
  .refine((id) => /^[1-9]\d{0,18}$/.test(id) && BigInt(id) <= INT64_MAX, {
    error: 'is not the digits of a business location id, such as 45454565682155',
  })
  .meta({ ...SHOWN, target: true, description: "The location's id: digits, from GET /o/op/data/businesses." });

/** A user name or password for HTTP Basic. Only ASCII is allowed, because it has the same bytes in every encoding. */
const BasicWord = Secret.regex(/^[\x20-\x7e]+$/, { error: 'has a character other than printable ASCII' });

const Sku = z.string().min(1).max(SKU_MAX).meta(SHOWN);
const Code = z.string().min(1).meta(SHOWN);

export const Settings = z
  .strictObject({
    clientId: Secret.describe("The platform's API client at Lightspeed."),
    clientSecret: Secret.describe("The client's secret. Lightspeed gives both when it makes the client."),
    refreshToken: Secret.describe("The token of the restaurant's authorisation (orders-api). It can be used once."),
    businessLocationId: BusinessLocationId,
    endpointId: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, {
        error: 'is not a name of letters, digits, dots, hyphens and underscores, such as expediter-club-1',
      })
      .meta({
        ...SHOWN,
        description: "The name of the webhook's registration. The operator chooses a different one for each location.",
      }),
    webhookUsername: BasicWord.refine((name) => !name.includes(':'), {
      error: 'has a colon, which Basic does not allow',
    })
      .meta({ generated: '' })
      .describe('The user name that Lightspeed sends with each webhook. The operator chooses it.'),
    webhookPassword: BasicWord.meta({ generated: '' }).describe(
      'The password with that name. The operator chooses a long random one.',
    ),
    paymentMethod: Code.describe('The code of an active payment method, for amounts paid on the platform.'),
    accountProfileCodes: z
      .strictObject({ pickup: Code.optional(), delivery: Code.optional() })
      .default({})
      .describe('Codes of order profiles, from GET /o/op/data/account-profiles. By default the one for online orders.'),
    baseUrl: baseUrl('https://api.lsk.lightspeed.app').describe(
      "The API's URL. For the trial environment it is https://api.trial.lsk.lightspeed.app.",
    ),
    tokenUrl: HttpUrl.optional().describe('The token URL for clients of the second version. It has another host.'),
    itemMap: ItemMap.describe('Maps our item ids to SKUs of the menu, and modifier ids to production instructions.'),
    subItemMap: z
      .record(Id, Sku)
      .default({})
      .describe("Maps our ids of modifiers that are products, with a price or without, to the menu's SKUs."),
    feeSku: Sku.optional().describe('The SKU of an open-price item that stands for the fee. Without it: no fee.'),
    discountCode: Code.optional().describe(
      'The code of a manual discount, from GET /o/op/1/menu/discounts. Without it staff subtract discounts.',
    ),
    preparationMinutes: z
      .int()
      .min(0)
      .max(1440)
      .default(0)
      .describe('The kitchen gets an order for later this number of minutes before the requested time.'),
    sendCustomerEmail: z
      .boolean()
      .default(false)
      .describe("True to store the member's e-mail address in the restaurant's customer file."),
    closedMeansCompleted: z
      .boolean()
      .default(false)
      .describe('True if a closed check means that the member has the order. A prepaid check may close before.'),
    pauseMinutes: pauseMinutes(),
  })
  .meta({ title: 'Lightspeed K', description: 'Lightspeed Restaurant, K series.' });
export type Settings = z.infer<typeof Settings>;

/** The answer with a token: https://api-portal.lsk.lightspeed.app/guides/best-practices/managing-access-tokens */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive(),
  refresh_token: z.string().min(1).optional(),
});

/** The answer if no token is granted: RFC 6749, section 5.2. */
export const TokenRefused = z.object({ error: z.string() });

const Word = z.string().optional().catch(undefined);

/** A 400 of the API. `message` may quote the request, so it is matched but never shown. `defaultMessage` is unread. */
export const Refusal = z.object({
  message: Word,
  /** A 409 has its message here, not in `message`. */
  msg: Word,
  errors: z.array(z.object({ field: Word, code: Word }).catch({})).catch([]),
});

/** The part of a registered webhook that we read: schema apeWebhookEndpoint. */
export const Endpoint = z.object({ url: z.string() });

const Location = z.union([z.string(), z.number()]);

/** Businesses and their locations: https://api-docs.lsk.lightspeed.app/operation/operation-apelookupbusinesses */
export const Businesses = z.array(z.object({ businessLocations: z.array(z.object({ id: Location })).default([]) }));

/** Order profiles: https://api-docs.lsk.lightspeed.app/operation/operation-apeaccountprofiles */
export const AccountProfiles = z.object({ accountProfileList: z.array(z.object({ code: z.string() })) });

/** Whether tills take orders, as `readReadiness` reads it. The status is READY if all other fields allow it. */
export const Readiness = z.object({
  status: z.enum(['READY', 'NOT_READY']),
  onlineOrderingApiConfiguration: z.object({ enabled: z.boolean() }),
  posStatus: z.object({
    salesPeriod: z.enum(['OPENED', 'CLOSED']),
    acceptingOnlineOrders: z.boolean(),
    availableDevices: z.boolean(),
  }),
});

export type Readiness = z.infer<typeof Readiness>;

/** https://api-docs.lsk.lightspeed.app/operation/operation-onlineorderingreadinessupdatednotification */
export const ReadinessChanged = Readiness.pick({ status: true }).extend({ type: z.literal('ORDER_API') });

/** Schema of an answer about a check. `ikaccountId` is the id that a webhook calls `ikentooAccountIdentifier`. */
export function requestedCheck(id: string) {
  return z.object({ ikaccountId: requestedId(id), openDate: timeIfAny, closeDate: timeIfAny });
}

export const OfLocation = z.object({
  /** Missing in some of Lightspeed's samples. */
  businessLocationId: ifAny(Location),
});

/** A status notification: https://api-docs.lsk.lightspeed.app/operation/operation-onlineordernotification */
export const OrderNotification = z.object({
  status: z.string(),
  /** Our order id, as sent. */
  thirdPartyReference: idIfAny,
  /** The check's id. */
  ikentooAccountIdentifier: idIfAny,
  reason: textIfAny,
  /** Lightspeed documents this field for payments. We read it from a failed order too. */
  errors: z
    .object({ account: z.object({ type: z.string() }) })
    .optional()
    .catch(undefined),
});

export const AnyNotification = z.object({
  /** ORDER, PAYMENT, ITEM or ORDER_API. The sample of a failed order has no type. */
  type: z.unknown().optional(),
  eventType: z.unknown().optional(),
  order: z.unknown().optional(),
});

/**
 * Our status for each of Lightspeed's: https://api-docs.lsk.lightspeed.app/operation/operation-onlineordernotification
 * Lightspeed does not document how ABANDONED differs from FAILURE and CANCELLED.
 */
const MEANINGS: ReadonlyMap<string, Status> = new Map([
  ['SUCCESS', 'received'],
  ['READY_FOR_PICKUP', 'ready'],
  ['IN_DELIVERY', 'en_route'],
  ['DELIVERED', 'completed'],
  ['CANCELLED', 'cancelled'],
  ['ABANDONED', 'cancelled'],
  ['FAILURE', 'failed'],
]);

export function meaningOf(nativeStatus: string, { closedMeansCompleted }: Settings): Status | undefined {
  if (nativeStatus === 'CLOSED') return closedMeansCompleted ? 'completed' : undefined;
  return MEANINGS.get(nativeStatus);
}
