import type { ListedOrders } from '../wire.ts';

/** How many empty pages are read without asking the operator. The service scans up to 2,000 orders for each. */
const EMPTY_PAGES = 5;

/**
 * Reads pages of a list until one has orders: a page may be empty although the list continues.
 * @returns an empty `orders` with a `next` if many orders were scanned and none matched
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
