import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { absentable } from '../absentable.ts';
import { HttpUrl, ItemMap, Secret, baseUrl } from '../shared-settings.ts';

const INT64_MAX = 2n ** 63n - 1n;
/** Of `sku` in the vendor's schema apeToGoOrderItemLine. */
export const SKU_MAX = 25;

/** An int64, which a JSON number beyond 2^53 would change: kept as its digits. */
const BusinessLocationId = z
  .union([z.string(), z.int()], { error: 'is neither a string of digits nor an integer' })
  .transform(String)
  .refine((id) => /^[1-9]\d{0,18}$/.test(id) && BigInt(id) <= INT64_MAX, {
    error: 'is not the digits of a business location, such as 45454565682155',
  });

/** HTTP Basic joins both with a colon, and no other than ASCII is the same bytes to everybody. */
const BasicWord = Secret.regex(/^[\x20-\x7e]+$/, { error: 'has a character other than printable ASCII' });

const Sku = z.string().min(1).max(SKU_MAX);
const Code = z.string().min(1);

/** One business location's, in Lightspeed's words. */
export const Settings = z.strictObject({
  /** The platform's API client at Lightspeed. */
  clientId: Secret,
  clientSecret: Secret,
  /** From the restaurant's authorisation, for the scope orders-api. Spent by its first use; later ones are kept elsewhere. */
  refreshToken: Secret,
  businessLocationId: BusinessLocationId,
  /** Names the webhook's registration: ours to choose, one for each location. */
  endpointId: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, {
    error: 'is not a name of letters, digits, dots, hyphens and underscores such as expediter-club-1',
  }),
  /** Ours to choose; Lightspeed sends them with each webhook. */
  webhookUsername: BasicWord.refine((name) => !name.includes(':'), { error: 'has a colon, which Basic cannot carry' }),
  webhookPassword: BasicWord,
  /** Code of the payment method that stands for what is paid on the platform. */
  paymentMethod: Code,
  /** Order profiles that make an order a takeaway or a delivery; without one the location's own for online orders holds. */
  accountProfileCodes: z.strictObject({ pickup: Code.optional(), delivery: Code.optional() }).default({}),
  /** `https://api.trial.lsk.lightspeed.app` for trial. */
  baseUrl: baseUrl('https://api.lsk.lightspeed.app'),
  /** Of API clients of the second version, whose tokens come from another host than `baseUrl`. */
  tokenUrl: HttpUrl.optional(),
  /** SKUs of items and ids of production instructions, by our items' and modifiers' ids. */
  itemMap: ItemMap,
  /** SKUs of those modifiers that have a SKU of their own, and perhaps a price, by our modifiers' ids. */
  subItemMap: z.record(Id, Sku).default({}),
  /** An item of open price that carries the order's fee. */
  feeSku: Sku.optional(),
  /** How long before the time asked for the kitchen gets an order. */
  preparationMinutes: z.int().min(0).max(1440).default(0),
  /** Puts the member's e-mail address into the restaurant's customer file. */
  sendCustomerEmail: z.boolean().default(false),
  /** Does a closed check mean that the member has the order? A prepaid one may close before the food is ready. */
  closedMeansCompleted: z.boolean().default(false),
});
export type Settings = z.infer<typeof Settings>;

/** https://api-portal.lsk.lightspeed.app/guides/best-practices/managing-access-tokens */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive(),
  refresh_token: z.string().min(1).optional(),
});

/** RFC 6749, 5.2. */
export const TokenRefused = z.object({ error: z.string() });

const Word = z.string().optional().catch(undefined);

/** A 400 of the API. `message` and `defaultMessage` may quote what was sent: they are looked at, never shown. */
export const Refusal = z.object({
  message: Word,
  /** Instead of `message` in a 409. */
  msg: Word,
  errors: z.array(z.object({ field: Word, code: Word }).catch({})).catch([]),
});

/** A registered webhook, as far as it matters: schema apeWebhookEndpoint. */
export const Endpoint = z.object({ url: z.string() });

const Location = z.union([z.string(), z.number()]);

/** https://api-docs.lsk.lightspeed.app/operation/operation-apelookupbusinesses */
export const Businesses = z.array(z.object({ businessLocations: z.array(z.object({ id: Location })).default([]) }));

/** https://api-docs.lsk.lightspeed.app/operation/operation-apeaccountprofiles */
export const AccountProfiles = z.object({ accountProfileList: z.array(z.object({ code: z.string() })) });

export const OfLocation = z.object({
  /** Not in every sample. */
  businessLocationId: absentable(Location),
});

/** https://api-docs.lsk.lightspeed.app/operation/operation-onlineordernotification */
export const OrderNotification = z.object({
  status: z.string(),
  /** Ours, as sent. */
  thirdPartyReference: absentable(Id),
  /** The check's. */
  ikentooAccountIdentifier: absentable(Id),
  reason: absentable(z.string()),
});

/** What tells notifications apart. */
export const AnyNotification = z.object({
  /** ORDER, PAYMENT, ITEM or ORDER_API; the sample of a failed order has none. */
  type: z.unknown().optional(),
  eventType: z.unknown().optional(),
  order: z.unknown().optional(),
});
