/** Works on `most` items at the same time. @returns the results in the order of the items */
export async function inTurns<Item, Result>(
  most: number,
  items: readonly Item[],
  work: (item: Item, at: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  const worker = async (): Promise<void> => {
    for (const [at, item] of left) results[at] = await work(item, at);
  };
  await Promise.all(Array.from({ length: most }, worker));
  return results;
}
