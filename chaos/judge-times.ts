/** Something that takes time. `complaint` says what is wrong with it on a machine that is so many times slower. */
export type Timed = { slowdown: number; complaint: (slowdown: number) => string | undefined };

/** On a slower machine a time says nothing of the service. */
const TOO_SLOW = 2;

/** Judges times by how slow the machine was meanwhile. @returns what was late, and what may only have been delayed */
export function judgeTimes(times: readonly Timed[]): { complaints: string[]; notJudged: string[] } {
  const complaints: string[] = [];
  const notJudged: string[] = [];
  for (const { slowdown, complaint } of times) {
    const isTooSlow = slowdown > TOO_SLOW;
    const what = complaint(isTooSlow ? 1 : slowdown);
    if (what === undefined) continue;
    if (isTooSlow) notJudged.push(`${what}, while the machine was ${slowdown} times slower`);
    else complaints.push(what);
  }
  return { complaints, notJudged };
}
