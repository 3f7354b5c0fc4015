/**
 * The highest rate a second that holds: up in coarse steps for as long as it does, then halves what is between.
 * @param holds tries a rate
 */
export async function findSustained(
  holds: (perSecond: number) => Promise<boolean>,
  { coarse, fine }: { coarse: number; fine: number },
): Promise<number> {
  // Another program may have had the processor for a while: a rate has failed when it did so twice.
  const holdsAtLast = async (perSecond: number): Promise<boolean> => (await holds(perSecond)) || holds(perSecond);
  let sustained = 0;
  while (await holdsAtLast(sustained + coarse)) sustained += coarse;
  for (let finer = coarse / 2; finer >= fine; finer /= 2) if (await holdsAtLast(sustained + finer)) sustained += finer;
  return sustained;
}
