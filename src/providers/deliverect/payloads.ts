import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { baseUrl, ItemMap, Secret } from '../shared-settings.ts';

/** One location's: a channel link in Deliverect's words. */
export const Settings = z.strictObject({
  /** The platform's own at Deliverect, for all of its locations. */
  clientId: Secret,
  clientSecret: Secret,
  /** The scope that Deliverect grants beside them; it stands in the path of every order. */
  channelName: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]*$/, { error: 'is not one word in lower case, as Deliverect assigns it' }),
  channelLinkId: z
    .string()
    .regex(/^[A-Za-z0-9]+$/, { error: 'is not an id of letters and digits such as 61bcc34f657cc48c23eb60d5' }),
  /** Signs webhooks. Before Deliverect has assigned one, as on staging, it signs with the channel link's id. */
  hmacSecret: Secret,
  /** `https://api.staging.deliverect.com` for staging. It is the token's audience as well. */
  baseUrl: baseUrl('https://api.deliverect.com'),
  /** PLUs, by our items' and modifiers' ids. */
  itemMap: ItemMap,
  /** Does the POS being through with an order, 90 and 95, mean that the member has it? */
  closedMeansCompleted: z.boolean().default(true),
});
export type Settings = z.infer<typeof Settings>;

const Seconds = z.number().positive();

/** What grants an access token: https://developers.deliverect.com/openapi/oauth2.json */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: Seconds.optional(),
  /** Of the Unix epoch. */
  expires_at: Seconds.optional(),
});

const FieldErrors = z.record(z.string(), z.unknown()).catch({});

/** A 400 names fields; the words beside them may quote what was sent, so they are not read. */
export const OrderRefused = z.object({ orderFieldsErrors: FieldErrors, orderPaymentErrors: FieldErrors });

/**
 * A wrong channelName: https://developers.deliverect.com/docs/how-to-create-orders. Not documented under which HTTP
 * status; those of 401 and 403 are known for what they are without it.
 */
export const NotAllowed = z.object({ code: z.literal('Authorization error') });

/** Samples have an empty string for what there is none of. */
const AbsentableId = z.preprocess((value) => (value === null || value === '' ? undefined : value), Id.optional());

/**
 * What an order status and a courier's status have in common, and what only the first has.
 * https://docs.deliverect.com/doc/channel-api/operation/operation-post-/yourwebhook.com/order_status
 * https://developers.deliverect.com/page/courier-status-update-model
 */
export const OrderUpdate = z.object({
  /** Documented as a string in one place, and a number in every sample. */
  status: z.preprocess((value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value), z.int()),
  /** Ours, as sent. */
  channelOrderId: AbsentableId,
  /** Deliverect's. */
  orderId: AbsentableId,
  /** A courier's update has none. */
  channelLink: z.string().nullish(),
  reason: z.string().nullish(),
  timeStamp: z.unknown().optional(),
});
