/**
 * The shapes of our own order, the POS's answer and its reports. Money is integer minor units of an ISO 4217 currency.
 * Times are RFC 3339 with offset.
 */
import { z } from 'zod';
import { isStorable, storable } from './cause-text.ts';
import { STATUSES } from './lifecycle.ts';
import { ReasonCode } from './reason-code.ts';

/** An id. Ids are compared and stored unchanged, so an id that Postgres cannot store is refused. */
export const Id = z
  .string()
  .min(1)
  .max(255)
  .refine(isStorable, { error: 'contains a NUL or a lone surrogate; an id cannot' });

/** Text for people. A NUL is removed and a broken emoji is replaced; the order stays valid. */
const AnyText = z.string().transform(storable);

/** The most characters in a text of an order. Each POS has its own, lower limits. */
export const TEXT_MAX = 50_000;
const AtMost = z.string().max(TEXT_MAX);
/** Removes control characters other than tabs and line ends: a ticket printer would obey them. */
const withoutControls = (text: string): string => storable(text).replaceAll(/(?![\t\n\r])\p{Cc}/gu, '');
const Text = AtMost.transform(withoutControls);

/** Matches a text with a character that is neither a blank nor a control character. */
// oxlint-disable-next-line no-control-regex
export const NOT_BLANK = /[^\s\0-\x1f\x7f-\x9f]/;
const RequiredText = AtMost.regex(NOT_BLANK, { error: 'is blank; text is required' }).transform(withoutControls);
/** An id within an order. It is never blank: a POS would refuse it, and many members would share a blank id. */
const OrderId = Id.regex(NOT_BLANK, { error: 'is blank; an id is required' });

/** A time that Postgres can store and return: RFC 3339, offset below 16 hours, four-digit year in any zone. */
export const Time = z.iso
  .datetime({ offset: true, error: 'is not an RFC 3339 time with an offset, such as 2027-01-31T18:00:00Z' })
  .max(64)
  .refine((time) => !/[+-](1[6-9]|2\d):\d\d$/.test(time) && !/^(0000|0001|9999)/.test(time), {
    error: 'has a year or an offset that cannot be stored',
  });

/** A time as Postgres writes it. */
export const Instant = z.iso.datetime({ offset: true });

/** Compares such times in microseconds. Within the same millisecond, it compares the texts. */
export function compareInstants(a: string, b: string): number {
  return Date.parse(a) - Date.parse(b) || compareTexts(a, b);
}

/** Compares texts like the collation C: by the bytes of UTF-8. */
export const compareTexts = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

const MinorUnits = z.int();
/** A vendor refuses a negative line, or another charges it as it is. */
const NO_COUPON = 'is negative: write a coupon into money.discount and discounts, and not as an item';
const WHOLE =
  'has a fraction: write the weight into the name or notes, and a quantity of 1 with the price of all of it';
/** The largest quantity. A larger one is a mistake, and some POS systems need a line for every piece. */
const MAX_QUANTITY = 9_999;
const Quantity = z
  .int({ error: ({ code, input }) => (code === 'invalid_type' && Number.isFinite(input) ? WHOLE : undefined) })
  .min(1, { error: 'is below 1: is it a cancelled line? Leave it out' })
  .max(MAX_QUANTITY);

export const Member = z.object({
  id: OrderId,
  name: RequiredText,
  email: Text.optional(),
  phone: z
    .string()
    .regex(/^\+[1-9]\d{1,14}$/, { error: 'is not an E.164 number such as +4930123456' })
    .optional()
    .describe('E.164.'),
});

const Destination = z.object({
  line1: RequiredText,
  line2: Text.optional(),
  city: Text.optional(),
  postalCode: Text.optional(),
  region: Text.optional(),
  country: Text.meta({ description: 'ISO 3166-1 alpha-2, such as DE.' }).optional(),
  latitude: z.number().min(-90).max(90).optional(),
  longitude: z.number().min(-180).max(180).optional(),
  instructions: Text.optional(),
});

export const Fulfillment = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('pickup'), destination: Destination.optional(), requestedAt: Time.optional() }),
    z.object({ type: z.literal('delivery'), destination: Destination, requestedAt: Time.optional() }),
  ],
  {
    error: ({ code, input }) => {
      if (code !== 'invalid_union') return undefined;
      const { type } = input as { type?: unknown };
      return type === undefined ? 'is missing; pickup or delivery is required' : 'is neither pickup nor delivery';
    },
  },
);

/** The most levels of modifiers. Certifications of POS systems ask for three. */
export const MODIFIER_LEVELS = 5;

export type Modifier = {
  serviceModifierId: string;
  name: string;
  quantity: number;
  unitPrice?: number | undefined;
  modifiers?: Modifier[] | undefined;
};

/** Writes out each level, because a recursive schema would need a name in every document that it is copied into. */
function modifierOf(levels: number): z.ZodType<Modifier, Modifier> {
  const modifiers =
    levels > 1 ? z.array(modifierOf(levels - 1)) : z.array(z.any()).max(0, { error: 'are nested too deep' });
  return z.object({
    serviceModifierId: OrderId,
    name: RequiredText,
    quantity: Quantity.meta({ description: 'For one unit of its parent, an item or a modifier.' }),
    unitPrice: MinorUnits.optional().meta({ description: 'Minor units, for one, without its own modifiers.' }),
    modifiers: modifiers.optional(),
  });
}

const LineItem = z.object({
  serviceItemId: OrderId,
  name: RequiredText,
  quantity: Quantity,
  unitPrice: MinorUnits.min(0, { error: NO_COUPON })
    .optional()
    .meta({ description: 'Minor units, for one, without its modifiers.' }),
  notes: Text.optional(),
  ageRestricted: z.boolean().default(false).meta({ description: 'Check the age of the person who takes it.' }),
  modifiers: z.array(modifierOf(MODIFIER_LEVELS)).default([]),
});

const Money = z
  .object({
    subtotal: MinorUnits.nonnegative().meta({ description: 'Before discounts.' }),
    discount: MinorUnits.nonnegative().optional().meta({ description: 'The reduction of the subtotal.' }),
    tax: MinorUnits.nonnegative(),
    tip: MinorUnits.nonnegative(),
    fee: MinorUnits.nonnegative(),
    total: MinorUnits.nonnegative().describe(
      'The amount that the member has paid: with tip and fee, less the discount.',
    ),
    pricesIncludeTax: z
      .boolean()
      .optional()
      .describe('Whether the prices and the subtotal include the tax. Missing if the platform does not say it.'),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, { error: 'is not an ISO 4217 code such as EUR' })
      .describe('ISO 4217. It defines the number of digits of the minor units.'),
  })
  .refine(({ subtotal, discount = 0 }) => discount <= subtotal, {
    path: ['discount'],
    error: 'is more than the subtotal: perhaps a part of it is a discount of the fee. Leave this part out',
  });

const Part = z.object({
  name: RequiredText,
  amount: MinorUnits.nonnegative().meta({ description: 'Minor units, not negative.' }),
});
const TaxPart = Part.extend({
  rate: z.number().nonnegative().optional().meta({ description: 'Percent, such as 19 or 7.25.' }),
});

/** A list of the order whose amounts add up to an amount of `money`. `name` is the name of a part without one. */
export const PARTS = [
  { list: 'discounts', sum: 'discount', name: 'Discount' },
  { list: 'fees', sum: 'fee', name: 'Fee' },
  { list: 'taxes', sum: 'tax', name: 'Tax' },
] as const;
const [DISCOUNTS, FEES, TAXES] = PARTS;

const aboutParts = ({ sum }: (typeof PARTS)[number], more = '') => ({
  description: `The parts of \`money.${sum}\`, for the ticket. They add up to it.${more}`,
});
const ABOUT_DISCOUNTS = aboutParts(DISCOUNTS, ' Without them the discount has no name.');
const ABOUT_FEES = aboutParts(FEES, ' Such as a bag, service, delivery, a minimum order.');
const ABOUT_TAXES = aboutParts(TAXES);

const OrderFields = z.object({
  serviceOrderId: OrderId.meta({ description: "The order's id on the ordering platform." }),
  locationId: OrderId,
  member: Member,
  fulfillment: Fulfillment,
  items: z.array(LineItem).min(1),
  money: Money.meta({ description: 'Integers of minor units. The order is paid already.' }),
  discounts: z.array(Part).optional().meta(ABOUT_DISCOUNTS),
  fees: z.array(Part).optional().meta(ABOUT_FEES),
  taxes: z.array(TaxPart).optional().meta(ABOUT_TAXES),
  notes: Text.optional(),
  placedAt: Time,
});
const ABOUT_ORDERS = {
  title: 'Order',
  description: 'An order in our own words. Times are RFC 3339. Fields may be added.',
};

const nameOr = (name: string) => ({ name: RequiredText.default(name) });

/** An order in our own format, as the ordering platform has it. */
export const CanonicalOrder = OrderFields.extend({
  discounts: z
    .array(Part.extend(nameOr(DISCOUNTS.name)))
    .optional()
    .meta(ABOUT_DISCOUNTS),
  fees: z
    .array(Part.extend(nameOr(FEES.name)))
    .optional()
    .meta(ABOUT_FEES),
  taxes: z
    .array(TaxPart.extend(nameOr(TAXES.name)))
    .optional()
    .meta(ABOUT_TAXES),
  cancelledAt: Time.optional().describe('When it was cancelled on the platform. This is final.'),
  cancelReason: Text.optional().meta({ description: 'Why it was cancelled, fit for the restaurant.' }),
}).meta(ABOUT_ORDERS);
export type CanonicalOrder = z.infer<typeof CanonicalOrder>;

/** An order as a POS gets it, with our additions. A JSON Schema in `docs/providers` is generated from this. */
export const KitchenOrder = OrderFields.extend({
  callOutCode: z
    .string()
    .optional()
    .describe(
      'What the staff call out and the member shows, such as K472. We choose it. It never changes, and is unique among the ' +
        'last 4,096 orders of the location. Every order that is sent has one.',
    ),
  extraMinutes: z
    .int()
    .min(1)
    .optional()
    .describe('The minutes that the kitchen needs longer than usual now. Missing if it is not busy.'),
}).meta(ABOUT_ORDERS);
export type KitchenOrder = z.infer<typeof KitchenOrder>;

/** The result of `createOrder`. Some POS systems report their own id only later, in a webhook. */
export const OrderRef = z.object({
  providerOrderId: Id.optional(),
  /** The estimates in the POS's answer, if any, as in a `StatusEvent`. `occurredAt` is when the POS made them. */
  estimatedReadyAt: Time.optional(),
  estimatedDeliveryAt: Time.optional(),
  occurredAt: Time.optional(),
});
export type OrderRef = z.infer<typeof OrderRef>;

/** The most characters of a reason and of a link. A member gets both. */
const REASON_MAX = 500;
const LINK_MAX = 500;

/** An absolute https: URL without a user and a password, as a browser writes it. */
const Link = z
  .string()
  .max(LINK_MAX)
  .transform((text) => URL.parse(text)?.href ?? '')
  .pipe(
    z
      .string()
      .max(LINK_MAX)
      .regex(/^https:\/\/[^/@]+\//),
  );

/** A field without which the event still counts: a value that cannot be read is left out. */
const ifAny = <Shape extends z.ZodType>(shape: Shape) => shape.optional().catch(undefined);

/** A POS's report about one order, named by our id, the POS's id, or both. */
export const StatusEvent = z
  .object({
    status: z.enum(STATUSES),
    serviceOrderId: ifAny(Id),
    providerOrderId: ifAny(Id),
    reason: ifAny(AnyText.transform((text) => text.slice(0, REASON_MAX).toWellFormed())),
    /** Set only if the order failed or was cancelled. */
    reasonCode: ifAny(ReasonCode),
    /** Our own ids (`serviceItemId`) of the items that the POS names as the reason. */
    itemIds: ifAny(z.array(Id).max(100)),
    /** The POS's present estimates: when the food will be ready, and when it will reach the member. */
    estimatedReadyAt: ifAny(Time),
    estimatedDeliveryAt: ifAny(Time),
    /** The page on which the member can follow the courier. */
    trackingUrl: ifAny(Link),
    occurredAt: ifAny(Time),
    nativeStatus: AnyText.transform((text) => text.slice(0, 255).toWellFormed()),
  })
  .refine((event) => event.serviceOrderId !== undefined || event.providerOrderId !== undefined, {
    error: 'names no order: serviceOrderId or providerOrderId is required',
  });
export type StatusEvent = z.infer<typeof StatusEvent>;

/** Describes which fields are wrong and why. Leaves out their values, which may be a member's data. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'value'}: ${issue.message}`).join('; ');
}
