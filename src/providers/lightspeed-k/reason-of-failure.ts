import type { z } from 'zod';
import { Id, type StatusEvent } from '../../core/domain/order.ts';
import type { ReasonCode } from '../../core/domain/reason-code.ts';
import type { OrderNotification, Settings } from './payloads.ts';

const NOT_TAKEN = 'The restaurant could not take this order.';

/** Known words of Lightspeed's failure reasons, each with a code and a sentence for the member. */
const REASONS: readonly (readonly [RegExp, ReasonCode, string])[] = [
  [/accept online orders/i, 'paused', 'The restaurant takes no online orders at the moment.'],
  [/no devices available|validity ended/i, 'no_answer', 'The restaurant could not be reached.'],
  [/sales restrictions/i, 'item_unavailable', 'An item is not available at the moment.'],
  [/not found|no such item/i, 'item_unavailable', 'An item is not on the menu of the restaurant.'],
  [/payment amount/i, 'price_changed', NOT_TAKEN],
  [/payment/i, 'payment', NOT_TAKEN],
  [/consumer already exists/i, 'technical', NOT_TAKEN],
];

/** By `errors.account.type`, where it says more than that something failed. */
const TYPES: readonly (readonly [RegExp, ReasonCode])[] = [
  [/^ITEM_/, 'item_unavailable'],
  [/^OVERPAID$/, 'price_changed'],
  [/PAYMENT/, 'payment'],
  [/^ACCOUNT_|STAFF|^INVALID_TASK$/, 'technical'],
];

/**
 * Returns a failed order's reason, fit for a member. Lightspeed's own names items' ids, prices and other customers'
 * references. https://www.hubrise.com/apps/lightspeed-restaurant/troubleshooting lists what tills say (read 2026-11-23).
 */
export function reasonOfFailure(
  { reason: said = '', errors }: z.infer<typeof OrderNotification>,
  settings: Settings,
): Pick<StatusEvent, 'reason' | 'reasonCode' | 'itemIds'> {
  const [, typed] = TYPES.find(([types]) => types.test(errors?.account.type ?? '')) ?? [];
  const isIt = ([words, code]: (typeof REASONS)[number]): boolean => words.test(said) && (typed ?? code) === code;
  const [, reasonCode, reason] = REASONS.find(isIt) ?? [undefined, typed ?? 'other', NOT_TAKEN];
  // "No such item id: 6644662335523, sku: abc123, blId: 52000111222", "Could not add item abc123 (not found)"
  const sku = /\bsku: ([^,]+)/i.exec(said)?.[1] ?? /^could not add item (.+) \(not found\)$/i.exec(said)?.[1];
  return { reason, reasonCode, itemIds: sku === undefined ? undefined : itemsOf(sku, settings) };
}

/** Our ids of the items that are sold as a SKU. An id that no map has is a SKU itself, of an item or of nothing of ours. */
function itemsOf(sku: string, { itemMap, subItemMap, feeSku }: Settings): string[] | undefined {
  const ours = Object.keys(itemMap).filter((id) => itemMap[id] === sku);
  if (ours.length > 0) return ours.slice(0, 100);
  const isNone = sku === feeSku || Object.values(subItemMap).includes(sku) || !Id.safeParse(sku).success;
  return isNone ? undefined : [sku];
}
