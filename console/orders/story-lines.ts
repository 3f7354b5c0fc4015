import type { Happening, ShownOrder } from '../wire.ts';
import { describeHappening, type Told } from './describe-happening.ts';

export type Line = Told & {
  /** The same one whenever the story is told again, whatever else happened meanwhile. */
  key: string;
  at: string;
  what: Happening['what'];
  /** Since the line before; undefined where that was in the same millisecond, or there is none. */
  waitMs: number | undefined;
};

/** All that happened to an order, line by line, oldest first. */
export function storyLines(story: ShownOrder): Line[] {
  const seen = new Map<string, number>();
  return story.timeline.map((happening, i) => {
    const { at, what } = happening;
    const before = story.timeline[i - 1];
    const waitMs = before === undefined ? 0 : Date.parse(at) - Date.parse(before.at);
    const name = `${what} ${at}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return {
      ...describeHappening(happening, story),
      key: `${name} ${nth}`,
      at,
      what,
      waitMs: waitMs < 1 ? undefined : waitMs,
    };
  });
}
