import type { Pool } from 'pg';
import { z } from 'zod';
import type { KitchenChange } from '../domain/kitchen-changes.ts';
import { Instant, MODIFIER_LEVELS } from '../domain/order.ts';

export const Contents = z.looseObject({});
export type Contents = z.infer<typeof Contents>;

/** Reads an order as it was fetched, with member data. @returns null before it is fetched and after it is erased */
export async function readContents(pool: Pool, serviceOrderId: string): Promise<Contents | null> {
  const { rows } = await pool.query<{ contents: Contents }>(
    'SELECT contents FROM order_contents WHERE service_order_id = $1',
    [serviceOrderId],
  );
  return rows[0]?.contents ?? null;
}

/**
 * The complete difference between the platform's order and the ticket at the time `seenAt`. The values are member data.
 * `changes` is empty if the platform's order equals the ticket again.
 */
export const Change = z.object({
  seenAt: Instant,
  changes: z.array(z.object({ path: z.string(), was: z.unknown(), is: z.unknown() })),
});
type Change = z.infer<typeof Change>;

/** SQL of the names of the changed fields in a row of `order_changes`. */
export const CHANGED_PATHS = `(SELECT coalesce(json_agg(each ->> 'path'), '[]') FROM jsonb_array_elements(changes) AS each)`;

/** SQL of what an order `o` is told to be changed in, and of its location's time zone. */
export const TOLD = `(SELECT told FROM order_changes
  WHERE service_order_id = o.service_order_id AND seen_at = o.changed_at)`;
export const TIME_ZONE = '(SELECT time_zone FROM locations WHERE location_id = o.location_id)';
export type ToldChange = { told: KitchenChange[] | null; timeZone: string | null };

export async function readChanges(pool: Pool, serviceOrderId: string): Promise<Change[]> {
  const { rows } = await pool.query<{ change: Change }>(
    `SELECT json_build_object('seenAt', seen_at, 'changes', changes) AS change
     FROM order_changes WHERE service_order_id = $1 ORDER BY seen_at`,
    [serviceOrderId],
  );
  return rows.map(({ change }) => change);
}

type OrderedModifier = {
  name: string;
  quantity: number;
  unitPrice: number | null;
  modifiers?: OrderedModifier[] | undefined;
};

const Price = z.int().nullable().default(null);
const Quantity = z.int();

function modifierOf(levels: number): z.ZodType<OrderedModifier> {
  return z.object({
    name: z.string(),
    quantity: Quantity,
    unitPrice: Price,
    modifiers: (levels > 1 ? z.array(modifierOf(levels - 1)) : z.array(z.never())).optional(),
  });
}

const Part = z.object({ name: z.string(), amount: z.int() });

/** Ordered items and prices, for people who need no member data such as name, address or notes. */
export const Ordered = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      quantity: Quantity,
      unitPrice: Price,
      ageRestricted: z.boolean().default(false),
      modifiers: z.array(modifierOf(MODIFIER_LEVELS)).default([]),
    }),
  ),
  money: z
    .object({
      subtotal: z.int(),
      discount: z.int().default(0).meta({ description: 'Amount by which the subtotal is reduced.' }),
      tax: z.int(),
      fee: z.int(),
      tip: z.int(),
      total: z.int(),
      currency: z.string(),
    })
    .meta({ description: 'Minor units.' }),
  fees: z.array(Part).meta({ description: 'The parts of the fee.' }),
  taxes: z
    .array(Part.extend({ rate: z.number().exactOptional().meta({ description: 'Percent.' }) }))
    .describe('The parts of the tax.'),
});
export type Ordered = z.infer<typeof Ordered>;

/**
 * Reads an order's items and prices. `Ordered` drops the member data.
 * @returns null before the order is fetched and after it is erased
 */
export async function readOrdered(pool: Pool, serviceOrderId: string): Promise<Ordered | null> {
  const { rows } = await pool.query(
    `SELECT contents -> 'items' AS items, contents -> 'money' AS money,
            coalesce(contents -> 'fees', '[]') AS fees, coalesce(contents -> 'taxes', '[]') AS taxes
     FROM order_contents WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  return rows[0] === undefined ? null : Ordered.parse(rows[0]);
}
