import type { GiveUp } from '../../core/domain/errors.ts';
import type { CanonicalOrder } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import type { Settings } from './payloads.ts';
import { menuIdOf } from './write-selection.ts';

const REFUSED = 'The restaurant could not take this order.';

/**
 * Codes by Toast's words, of which few are documented (https://doc.toasttab.com/doc/devguide/apiOrdersFirstOrder.html, read
 * 2026-11-23): that an item is not in its group, and what the request lacks. The others are inferred from the names of the
 * fields. Hours, quote times and stock are not asked: the orders API "accepts the order even if the restaurant is not
 * currently open" (https://doc.toasttab.com/doc/devguide/calculatingOrderWaitTime.html).
 */
const CODES: readonly (readonly [RegExp, ReasonCode, string])[] = [
  [/does not belong to the group|out.of.stock/i, 'item_unavailable', 'An item is not available at the moment.'],
  [/deliveryInfo|address|zip ?code/i, 'invalid_address', 'The restaurant cannot deliver to this address.'],
  [/payment/i, 'payment', REFUSED],
  [/price|discount/i, 'price_changed', REFUSED],
];

/** Why Toast refuses an order. All else is about the request's form. @param words Toast's, which are not repeated */
export function reasonOfRefusal(
  words: string,
  { items }: CanonicalOrder,
  settings: Settings,
): Pick<GiveUp, 'reason' | 'reasonCode' | 'itemIds'> {
  const [, reasonCode, reason] = CODES.find(([known]) => known.test(words)) ?? [undefined, 'technical', REFUSED];
  const said = words.toLowerCase().split(/[^\da-z-]+/);
  const named = items
    .map(({ serviceItemId }) => serviceItemId)
    .filter((id) => said.includes(menuIdOf(id, settings)?.toLowerCase() ?? 'no id'));
  return { reason, reasonCode, itemIds: named.length === 0 ? undefined : [...new Set(named)] };
}
