import { MOST_FOUND } from '../../src/core/domain/most-found.ts';
import type { Found } from '../wire.ts';

const OLDER = 'The page Orders finds older ones by location and time.';

/** What is said below the results of a search: why there are none, or that there may be more. */
export function hintFor({ orders, locations = [], webhooks = [] }: Found, ofMember: boolean): string | undefined {
  const longest = Math.max(orders.length, locations.length, webhooks.length);
  if (longest === 0) return 'Nothing found.';
  if (longest < MOST_FOUND) return undefined;
  return ofMember
    ? `At most ${MOST_FOUND} orders are shown, the newest. For fewer, add the first name, or the last digits of the number. ${OLDER}`
    : `At most ${MOST_FOUND} of each kind are shown, of orders the newest. For fewer, enter more of the name or id. ${OLDER}`;
}
