/** Known words of Lightspeed's failure reasons, each with a sentence for the member. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/accept online orders/i, 'The restaurant takes no online orders at the moment.'],
  [/no devices available|validity ended/i, 'The restaurant could not be reached.'],
  [/sales restrictions/i, 'An item is not available at the moment.'],
  [/not found|no such item/i, 'An item is not on the menu of the restaurant.'],
];

/**
 * Returns a failed order's reason, fit for a member. Lightspeed's own names items' ids, prices and other customers'
 * references. https://www.hubrise.com/apps/lightspeed-restaurant/troubleshooting lists what tills say.
 */
export function reasonOfFailure(said: string | undefined): string {
  const known = REASONS.find(([words]) => words.test(said ?? ''));
  return known?.[1] ?? 'The restaurant could not take this order.';
}
