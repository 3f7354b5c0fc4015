import { flattenModifiers } from '../src/core/domain/flatten-modifiers.ts';
import type { CanonicalOrder } from '../src/core/domain/order.ts';
import type { Simulator } from '../test/simulators/simulator.ts';

/** Puts what an order asks for on the menu of a POS with ids of its own, which knows the sample order's dishes alone. */
export function fillMenu({ menu }: Pick<Simulator, 'menu'>, { items }: CanonicalOrder): void {
  for (const { serviceItemId, name, unitPrice = 0, modifiers } of items) {
    menu?.sell(serviceItemId, name, unitPrice);
    for (const each of flattenModifiers(modifiers)) menu?.offer(each.serviceModifierId, each.name, each.unitPrice ?? 0);
  }
}
