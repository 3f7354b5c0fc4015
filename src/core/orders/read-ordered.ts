import type { Pool } from 'pg';
import { z } from 'zod';

/** What was ordered and what it costs, for people who need not know for whom: no member, no address, no notes. */
export const Ordered = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      quantity: z.int(),
      unitPrice: z.int().nullable(),
      ageRestricted: z.boolean(),
      modifiers: z.array(z.object({ name: z.string(), quantity: z.int(), unitPrice: z.int().nullable() })),
    }),
  ),
  money: z
    .object({
      subtotal: z.int(),
      discount: z.int().meta({ description: 'What the subtotal is reduced by.' }),
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
 * Reads what was ordered, field by field: the rest of the contents is the member's.
 * @returns null before it was fetched, and after its erasure
 */
export async function readOrdered(pool: Pool, serviceOrderId: string): Promise<Ordered | null> {
  const { rows } = await pool.query<{ ordered: Ordered }>(
    `SELECT json_build_object(
       'items', (SELECT coalesce(json_agg(json_build_object(
           'name', item -> 'name', 'quantity', item -> 'quantity', 'unitPrice', item -> 'unitPrice',
           'ageRestricted', coalesce(item -> 'ageRestricted', 'false'),
           'modifiers', (SELECT coalesce(json_agg(json_build_object(
               'name', modifier -> 'name', 'quantity', modifier -> 'quantity', 'unitPrice', modifier -> 'unitPrice')), '[]')
             FROM jsonb_path_query(item, '$.modifiers[*]') AS modifier))), '[]')
         FROM jsonb_path_query(contents, '$.items[*]') AS item),
       'money', json_build_object(
         'subtotal', contents #> '{money,subtotal}', 'discount', coalesce(contents #> '{money,discount}', '0'), 'tax', contents #> '{money,tax}', 'fee', contents #> '{money,fee}',
         'tip', contents #> '{money,tip}', 'total', contents #> '{money,total}',
         'currency', contents #> '{money,currency}')) AS ordered
     FROM order_contents WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  return rows[0]?.ordered ?? null;
}
