import { describeError } from '../core/domain/describe-error.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { Registry } from '../core/domain/provider.ts';

/** An integration whose POS takes no such order, whatever a location's settings are. */
export type Refusal = { integration: string; problem: string };

/** Asks all providers whether they would refuse an order before they ask their POS. */
export function listRefusals(order: CanonicalOrder, registry: Registry): Refusal[] {
  return [...registry].flatMap(([integration, provider]) => {
    try {
      provider.checkOrder?.(order);
      return [];
    } catch (error) {
      return [{ integration, problem: describeError(error) }];
    }
  });
}
