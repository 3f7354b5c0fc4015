import type { Pool } from 'pg';
import { z } from 'zod';
import { MODIFIER_LEVELS } from '../domain/order.ts';

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

/** What was ordered and what it costs, for people who need not know for whom: no member, no address, no notes. */
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
      discount: z.int().default(0).meta({ description: 'What the subtotal is reduced by.' }),
      tax: z.int(),
      fee: z.int(),
      tip: z.int(),
      total: z.int(),
      currency: z.string(),
    })
    .meta({ description: 'Minor units.' }),
});
export type Ordered = z.infer<typeof Ordered>;

/**
 * Reads what was ordered, by the shape above: the rest of the contents is the member's.
 * @returns null before it was fetched, and after its erasure
 */
export async function readOrdered(pool: Pool, serviceOrderId: string): Promise<Ordered | null> {
  const { rows } = await pool.query(
    `SELECT contents -> 'items' AS items, contents -> 'money' AS money FROM order_contents WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  return rows[0] === undefined ? null : Ordered.parse(rows[0]);
}
