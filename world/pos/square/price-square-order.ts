import type { CreateOrder } from './square-requests.ts';

/** The seller's catalog: prices in minor units, and one tax added to all of them. */
export type SquareCatalog = {
  /** Variations by id; an undefined price is variable. */
  readonly variations: Map<string, { name: string; price: number | undefined }>;
  readonly modifiers: Map<string, { name: string; price: number }>;
  /** Percent. */
  taxPercentage: number;
};

/**
 * Adds an order up as https://developer.squareup.com/docs/orders-api/how-it-works#how-totals-are-calculated says:
 * lines, discounts, taxes, then the charges of the total phase. A discount of the order is spread over its lines by their
 * prices. Taxes apply only if the order asks for them, and are rounded line by line, halves to even.
 */
export function priceSquareOrder(
  order: CreateOrder['order'],
  catalog: SquareCatalog,
): { total: number; tax: number; charges: number; discount: number } {
  const full = (order.line_items ?? []).map((line) => {
    const { price } = catalog.variations.get(line.catalog_object_id ?? '') ?? { price: 0 };
    const modifiers = (line.modifiers ?? []).map((modifier) => {
      const { price } = catalog.modifiers.get(modifier.catalog_object_id ?? '') ?? { price: 0 };
      return (modifier.base_price_money?.amount ?? price) * Number(modifier.quantity ?? '1');
    });
    return ((line.base_price_money?.amount ?? price ?? 0) + sum(modifiers)) * Number(line.quantity);
  });
  const whole = sum(full);
  const discount = Math.min(whole, sum((order.discounts ?? []).map(({ amount_money }) => amount_money?.amount ?? 0)));
  // The discount up to this line, less that before it: no unit is lost.
  const spread = (upTo: number): number => Math.round((discount * sum(full.slice(0, upTo))) / (whole || 1));
  const lines = full.map((line, nth) => line - spread(nth + 1) + spread(nth));
  const taxed = order.pricing_options?.auto_apply_taxes === true;
  const tax = taxed ? sum(lines.map((line) => roundToEven((line * catalog.taxPercentage) / 100))) : 0;
  const charges = sum((order.service_charges ?? []).map((charge) => charge.amount_money?.amount ?? 0));
  return { total: sum(lines) + tax + charges, tax, charges, discount };
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

function roundToEven(amount: number): number {
  const floor = Math.floor(amount);
  const rest = amount - floor;
  if (Math.abs(rest - 0.5) > 1e-9) return Math.round(amount);
  return floor % 2 === 0 ? floor : floor + 1;
}
