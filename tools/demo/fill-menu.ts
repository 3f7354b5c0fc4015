import { flattenModifiers } from '../../src/core/domain/flatten-modifiers.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { Simulator } from '../../world/pos/simulator.ts';

/** Adds an order's items to a POS's menu, which has only the sample order's. A POS without its own ids has no menu. */
export function fillMenu({ menu }: Pick<Simulator, 'menu'>, { items }: CanonicalOrder): void {
  for (const { serviceItemId, name, unitPrice = 0, modifiers } of items) {
    menu?.sell(serviceItemId, name, unitPrice);
    for (const each of flattenModifiers(modifiers)) menu?.offer(each.serviceModifierId, each.name, each.unitPrice ?? 0);
  }
}
