import type { ListedOrders } from '../wire.ts';

/** So many pages without a single order are read at a stretch; each has looked at up to 2,000. */
const EMPTY_PAGES = 5;

/**
 * Reads on in a list until there is something to show: a page may be empty although the list goes on.
 * @returns `next` is not null although `orders` is empty when a good deal was looked through in vain
 */
export async function readOn(
  readPage: (cursor: string | undefined) => Promise<ListedOrders>,
  cursor: string | undefined,
): Promise<ListedOrders> {
  let page = await readPage(cursor);
  for (let i = 1; i < EMPTY_PAGES && page.orders.length === 0 && page.next !== null; i++) {
    page = await readPage(page.next);
  }
  return page;
}
