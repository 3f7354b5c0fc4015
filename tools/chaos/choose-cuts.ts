import { CUT_MOMENTS, type Commit, type CutMoment } from './watch-commits.ts';

type ChooseCut = (commit: Commit) => CutMoment | undefined;

/** Cuts at the next `count` commits that match. */
export function cutNext(
  count: number,
  moment: CutMoment,
  matches: (commit: Commit) => boolean = () => true,
): ChooseCut {
  let left = count;
  return (commit) => {
    if (left === 0 || !matches(commit)) return undefined;
    left -= 1;
    return moment;
  };
}

/**
 * Cuts at each commit with this probability. Each moment has the same chance.
 * @param random returns a number from 0 up to, but not including, 1
 */
export function cutSometimes(probability: number, random: () => number): ChooseCut {
  return () => {
    // Both are drawn each time, so that a commit's numbers do not depend on the probability.
    const [chance, nth] = [random(), Math.floor(random() * CUT_MOMENTS.length)];
    return chance < probability ? CUT_MOMENTS[nth] : undefined;
  };
}
