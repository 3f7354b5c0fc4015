/** Reads page after page, each from the `next` of the one before it, until there is none. */
export async function allPages<Page extends { next?: unknown }>(
  read: (after: NonNullable<Page['next']> | undefined) => Promise<Page | undefined>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let after: NonNullable<Page['next']> | undefined;
  do {
    const page = await read(after);
    if (page === undefined) throw new Error('the cursor is unknown');
    pages.push(page);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return pages;
}
