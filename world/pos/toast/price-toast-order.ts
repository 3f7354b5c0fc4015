import type { ToastRestaurant } from './open-toast-restaurant.ts';
import { toMinor, type ToastOrder, type ToastSelection } from './read-toast-order.ts';
import { ToastError } from './toast-error.ts';

/** The state's tax on food. */
const TAX = 0.19;

/** Returns the order with all that Toast adds. `guid` is null if only prices are asked for. */
export function priceToastOrder(
  order: ToastOrder,
  restaurant: ToastRestaurant,
  guid: string | null,
): Record<string, unknown> {
  const toAmount = (minor: number): number => minor / 10 ** restaurant.digits;
  const checks = order.checks.map(
    ({ selections, appliedServiceCharges = [], appliedDiscounts = [], payments = [], ...check }) => {
      const eaten = selections.reduce((sum, selection) => sum + priceOf(selection, restaurant), 0);
      const charged = appliedServiceCharges.reduce((sum, each) => sum + toMinor(each.chargeAmount ?? 0, restaurant), 0);
      const off = appliedDiscounts.reduce((sum, each) => sum + toMinor(each.discountAmount ?? 0, restaurant), 0);
      if (off > eaten) throw new ToastError(400, 'a discount is more than the check');
      // "Discounts are always applied before taxes, but after service charges are calculated."
      const tax = Math.round((eaten - off) * TAX);
      return {
        ...check,
        guid: guid && `check-of-${guid}`,
        amount: toAmount(eaten - off + charged),
        taxAmount: toAmount(tax),
        totalAmount: toAmount(eaten - off + charged + tax),
        appliedServiceCharges,
        appliedDiscounts,
        payments,
        selections: selections.map((selection) => priced(selection, restaurant, toAmount)),
      };
    },
  );
  return {
    ...order,
    guid,
    entityType: 'Order',
    source: 'API',
    voided: false,
    deleted: false,
    promisedDate: order.promisedDate ?? null,
    approvalStatus: order.promisedDate ? 'FUTURE' : 'APPROVED',
    checks,
  };
}

function priced(selection: ToastSelection, restaurant: ToastRestaurant, toAmount: (minor: number) => number): object {
  const name = restaurant.dishes.get(selection.item.guid)?.name;
  return { displayName: name, ...selection, price: toAmount(priceOf(selection, restaurant)), fulfillmentStatus: 'NEW' };
}

function priceOf({ item, quantity, modifiers }: ToastSelection, restaurant: ToastRestaurant): number {
  const { dishes, modifiers: options } = restaurant;
  const each = (dishes.get(item.guid) ?? options.get(item.guid))?.price ?? 0;
  return each * quantity + modifiers.reduce((sum, modifier) => sum + priceOf(modifier, restaurant), 0);
}
