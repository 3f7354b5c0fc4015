/** A measured time. `complaint` says what is wrong with it, if the machine was `slowdown` times slower than usual. */
export type Timed = { slowdown: number; complaint: (slowdown: number) => string | undefined };

/** If the machine was more than this many times slower, a long time proves nothing about the service. */
const TOO_SLOW = 2;

/** Judges times. @returns as `complaints` late times, as `notJudged` late times that a slow machine may have caused */
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
