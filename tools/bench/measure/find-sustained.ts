/**
 * Finds the highest sustained rate per second: goes up in coarse steps while they hold, then bisects.
 * @param holds tries a rate, and returns true if the service sustains it
 */
export async function findSustained(
  holds: (perSecond: number) => Promise<boolean>,
  { coarse, fine }: { coarse: number; fine: number },
): Promise<number> {
  // Another program may have used the processor, so a rate fails only if it fails twice.
  const holdsAtLast = async (perSecond: number): Promise<boolean> => (await holds(perSecond)) || holds(perSecond);
  let sustained = 0;
  while (await holdsAtLast(sustained + coarse)) sustained += coarse;
  for (let finer = coarse / 2; finer >= fine; finer /= 2) if (await holdsAtLast(sustained + finer)) sustained += finer;
  return sustained;
}
