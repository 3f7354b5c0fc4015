/**
 * Square's requests by its OpenAPI description (github.com/square/connect-api-specification, api.json of 2025-08-19, read
 * on 2026-11-23) and its guides: fields, types, lengths and enums. Any other field is an UNKNOWN_BODY_PARAMETER.
 */
import { z, type ZodType } from 'zod';

export type SquareAnswer = { status: number; body: unknown };

export type SquareCall = {
  /** Such as `POST /v2/orders`. */
  route: string;
  query: URLSearchParams;
  body: unknown;
  read<Shape>(shape: ZodType<Shape>): { value: Shape } | SquareAnswer;
};

const text = (max: number) => z.string().min(1).max(max);
const key = (max: number) => text(max);
const money = z.strictObject({ amount: z.int().min(0), currency: z.string().regex(/^[A-Z]{3}$/) });
const metadata = z.record(z.string().regex(/^[\w-]{1,60}$/), z.string().max(255));
const time = z.iso.datetime({ offset: true });
const duration = z.iso.duration();
const quantity = z.string().min(1).max(12).regex(/^\d+$/);

const address = z.strictObject({
  address_line_1: text(500).optional(),
  address_line_2: text(500).optional(),
  address_line_3: text(500).optional(),
  locality: text(300).optional(),
  administrative_district_level_1: text(200).optional(),
  postal_code: text(12).optional(),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .optional(),
  first_name: text(300).optional(),
  last_name: text(300).optional(),
});

/** The guides' own examples of a pickup have only the name. */
const recipient = z.strictObject({
  display_name: text(255),
  email_address: z.email().max(255).optional(),
  phone_number: text(17)
    .regex(/^\+?[\d ().-]{7,}$/)
    .optional(),
  address: address.optional(),
});

const pickup = z
  .strictObject({
    recipient,
    schedule_type: z.enum(['SCHEDULED', 'ASAP']).default('SCHEDULED'),
    pickup_at: time.optional(),
    pickup_window_duration: duration.optional(),
    prep_time_duration: duration.optional(),
    auto_complete_duration: duration.optional(),
    expires_at: time.optional(),
    note: text(500).optional(),
  })
  .refine(({ schedule_type, pickup_at }) => schedule_type === 'ASAP' || pickup_at !== undefined, {
    path: ['pickup_at'],
    error: 'is required of SCHEDULED',
  });

const delivery = z
  .strictObject({
    recipient: recipient.required({ address: true }),
    schedule_type: z.enum(['SCHEDULED', 'ASAP']).default('SCHEDULED'),
    deliver_at: time.optional(),
    delivery_window_duration: duration.optional(),
    prep_time_duration: duration.optional(),
    note: text(550).optional(),
    dropoff_notes: text(550).optional(),
    is_no_contact_delivery: z.boolean().optional(),
  })
  .refine(({ schedule_type, deliver_at }) => schedule_type === 'ASAP' || deliver_at !== undefined, {
    path: ['deliver_at'],
    error: 'is required of SCHEDULED',
  })
  .refine(({ schedule_type, prep_time_duration }) => schedule_type !== 'ASAP' || prep_time_duration !== undefined, {
    path: ['prep_time_duration'],
    error: 'is required of ASAP',
  });

const fulfillment = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('PICKUP'), state: z.literal('PROPOSED').optional(), pickup_details: pickup }),
  z.strictObject({ type: z.literal('DELIVERY'), state: z.literal('PROPOSED').optional(), delivery_details: delivery }),
]);

const lineItem = z
  .strictObject({
    uid: text(60).optional(),
    name: text(512).optional(),
    quantity,
    note: text(2000).optional(),
    catalog_object_id: text(192).optional(),
    base_price_money: money.optional(),
    metadata: metadata.optional(),
    modifiers: z
      .array(
        z
          .strictObject({
            uid: text(60).optional(),
            catalog_object_id: text(192).optional(),
            name: text(255).optional(),
            quantity: quantity.optional(),
            base_price_money: money.optional(),
          })
          .refine(({ catalog_object_id, base_price_money }) => catalog_object_id ?? base_price_money, {
            path: ['base_price_money'],
            error: 'is required of an ad hoc modifier',
          }),
      )
      .optional(),
  })
  .refine(({ catalog_object_id, base_price_money }) => catalog_object_id ?? base_price_money, {
    path: ['base_price_money'],
    error: 'is required of an ad hoc line item',
  });

const serviceCharge = z
  .strictObject({
    uid: text(60).optional(),
    name: text(512).optional(),
    amount_money: money.optional(),
    percentage: text(10).optional(),
    calculation_phase: z.enum(['SUBTOTAL_PHASE', 'TOTAL_PHASE']),
    taxable: z.boolean().optional(),
  })
  .refine(({ amount_money, percentage }) => (amount_money === undefined) !== (percentage === undefined), {
    path: ['amount_money'],
    error: 'or percentage is required, and not both',
  })
  .refine(({ calculation_phase, taxable }) => calculation_phase !== 'TOTAL_PHASE' || taxable !== true, {
    path: ['taxable'],
    error: 'cannot be true in the TOTAL_PHASE',
  });

/** Of an order, not of the catalog: https://developer.squareup.com/reference/square/objects/OrderLineItemDiscount */
const discount = z
  .strictObject({
    uid: text(60).optional(),
    name: text(255),
    type: z.enum(['FIXED_AMOUNT', 'FIXED_PERCENTAGE']),
    amount_money: money.optional(),
    percentage: text(10).optional(),
    scope: z.enum(['ORDER', 'LINE_ITEM']),
  })
  .refine(({ type, amount_money }) => type !== 'FIXED_AMOUNT' || amount_money !== undefined, {
    path: ['amount_money'],
    error: 'is required of FIXED_AMOUNT',
  });

export const CreateOrder = z.strictObject({
  idempotency_key: key(192).optional(),
  order: z.strictObject({
    location_id: text(50),
    reference_id: text(40).optional(),
    customer_id: text(191).optional(),
    source: z.strictObject({ name: text(255).optional() }).optional(),
    ticket_name: text(30).optional(),
    metadata: metadata
      .refine((entries) => Object.keys(entries).length <= 10, { error: 'has over 10 entries' })
      .optional(),
    line_items: z.array(lineItem).max(500).optional(),
    discounts: z.array(discount).optional(),
    service_charges: z.array(serviceCharge).optional(),
    pricing_options: z
      .strictObject({ auto_apply_discounts: z.boolean().optional(), auto_apply_taxes: z.boolean().optional() })
      .optional(),
    fulfillments: z.array(fulfillment).max(1).optional(),
  }),
});
export type CreateOrder = z.infer<typeof CreateOrder>;

/** A sparse order: https://developer.squareup.com/docs/orders-api/manage-orders/update-orders */
export const UpdateOrder = z.strictObject({
  idempotency_key: key(192).optional(),
  order: z.strictObject({
    location_id: text(50).optional(),
    version: z.int(),
    state: z.enum(['OPEN', 'COMPLETED', 'CANCELED']).optional(),
    fulfillments: z
      .array(
        z.strictObject({
          uid: text(60),
          state: z.enum(['PROPOSED', 'RESERVED', 'PREPARED', 'COMPLETED', 'CANCELED', 'FAILED']),
          pickup_details: z.strictObject({ cancel_reason: text(100) }).optional(),
          delivery_details: z.strictObject({ cancel_reason: text(100) }).optional(),
        }),
      )
      .optional(),
  }),
});

export const CreatePayment = z.strictObject({
  idempotency_key: key(45),
  source_id: z.literal('EXTERNAL'),
  amount_money: money,
  tip_money: money.optional(),
  order_id: text(192),
  location_id: text(50).optional(),
  reference_id: text(40).optional(),
  note: text(500).optional(),
  autocomplete: z.boolean().optional(),
  external_details: z.strictObject({
    type: z.enum([
      'CHECK',
      'BANK_TRANSFER',
      'OTHER_GIFT_CARD',
      'CRYPTO',
      'SQUARE_CASH',
      'SOCIAL',
      'EXTERNAL',
      'EMONEY',
      'CARD',
      'STORED_BALANCE',
      'FOOD_VOUCHER',
      'OTHER',
    ]),
    source: text(255),
    source_id: text(255).optional(),
    source_fee_money: money.optional(),
  }),
});
export type CreatePayment = z.infer<typeof CreatePayment>;

export const PayOrder = z.strictObject({
  idempotency_key: key(192),
  order_version: z.int().optional(),
  payment_ids: z.array(z.string()).default([]),
});

export const SearchOrders = z
  .strictObject({
    location_ids: z.array(z.string()).min(1).max(10),
    limit: z.int().min(1).max(1000).default(500),
    cursor: z.string().optional(),
    return_entries: z.boolean().default(false),
    query: z
      .strictObject({
        filter: z
          .strictObject({
            date_time_filter: z.strictObject({
              created_at: z.strictObject({ start_at: time, end_at: time.optional() }),
            }),
          })
          .optional(),
        sort: z
          .strictObject({
            sort_field: z.enum(['CREATED_AT', 'UPDATED_AT', 'CLOSED_AT']),
            sort_order: z.enum(['ASC', 'DESC']),
          })
          .optional(),
      })
      .optional(),
  })
  .refine(({ query }) => query?.filter === undefined || query.sort?.sort_field === 'CREATED_AT', {
    path: ['query', 'sort', 'sort_field'],
    error: 'must be the filtered one',
  });

const subscription = z.strictObject({
  name: text(64).optional(),
  enabled: z.boolean().optional(),
  event_types: z
    .array(
      z.enum([
        'order.created',
        'order.updated',
        'order.fulfillment.updated',
        'payment.created',
        'oauth.authorization.revoked',
      ]),
    )
    .min(1),
  notification_url: z.url(),
  api_version: z.iso.date().optional(),
});

export const CreateSubscription = z.strictObject({ idempotency_key: key(45).optional(), subscription });
/** A partial update. */
export const UpdateSubscription = z.strictObject({ subscription: subscription.partial() });

/** The requests with a body, each of which has its table above. */
export const TAKES_BODY =
  /^(POST \/oauth2\/(token|revoke)|POST \/v2\/(orders(\/search|\/\w+\/pay)?|payments|webhooks\/subscriptions)|PUT \/v2\/orders\/\w+|PUT \/v2\/webhooks\/subscriptions\/\w+)$/;

/** The requests with a query: ListWebhookSubscriptions. */
export const QUERIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['GET /v2/webhooks/subscriptions', ['cursor', 'include_disabled', 'sort_order', 'limit']],
]);

export type SquareError = { category: string; code: string; detail: string; field?: string };

/** Square's errors for an invalid body. */
export function errorsIn(error: z.ZodError): SquareError[] {
  return error.issues.map((issue) => {
    const unknown = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
    const path = [...issue.path, ...(unknown === undefined ? [] : [unknown])];
    return {
      category: 'INVALID_REQUEST_ERROR',
      code: codeOf(issue),
      detail: issue.message,
      field: path
        .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
        .join('')
        .slice(1),
    };
  });
}

function codeOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return 'UNKNOWN_BODY_PARAMETER';
  if (issue.code === 'too_big') return issue.origin === 'array' ? 'ARRAY_LENGTH_TOO_LONG' : 'VALUE_TOO_LONG';
  if (issue.code === 'too_small') return issue.origin === 'string' ? 'VALUE_EMPTY' : 'VALUE_TOO_LOW';
  if (issue.code === 'custom') return 'MISSING_REQUIRED_PARAMETER';
  if (issue.code !== 'invalid_type') return 'INVALID_VALUE';
  return issue.input === undefined ? 'MISSING_REQUIRED_PARAMETER' : 'INCORRECT_TYPE';
}
