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
 * lines, taxes, then the charges of the total phase. Taxes apply only if the order asks for them, and are rounded line
 * by line, halves to even.
 */
export function priceSquareOrder(
  order: CreateOrder['order'],
  catalog: SquareCatalog,
): { total: number; tax: number; charges: number } {
  const lines = (order.line_items ?? []).map((line) => {
    const { price } = catalog.variations.get(line.catalog_object_id ?? '') ?? { price: 0 };
    const modifiers = (line.modifiers ?? []).map((modifier) => {
      const { price } = catalog.modifiers.get(modifier.catalog_object_id ?? '') ?? { price: 0 };
      return (modifier.base_price_money?.amount ?? price) * Number(modifier.quantity ?? '1');
    });
    return ((line.base_price_money?.amount ?? price ?? 0) + sum(modifiers)) * Number(line.quantity);
  });
  const taxed = order.pricing_options?.auto_apply_taxes === true;
  const tax = taxed ? sum(lines.map((line) => roundToEven((line * catalog.taxPercentage) / 100))) : 0;
  const charges = sum((order.service_charges ?? []).map((charge) => charge.amount_money?.amount ?? 0));
  return { total: sum(lines) + tax + charges, tax, charges };
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
