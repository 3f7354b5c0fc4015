import type { CanonicalOrder } from './order.ts';

/** The discounts of an order, with an amount above 0 each, for a ticket: by their names, or the sum as one of no name. */
export function discountsOf({
  money: { discount = 0 },
  discounts,
}: Pick<CanonicalOrder, 'money' | 'discounts'>): readonly { name: string; amount: number }[] {
  const named = discounts?.length ? discounts : [{ name: 'Discount', amount: discount }];
  return named.filter(({ amount }) => amount > 0);
}
