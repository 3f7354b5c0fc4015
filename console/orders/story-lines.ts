import type { Happening, ShownOrder } from '../wire.ts';
import { describeHappening, type StoryLine } from './describe-happening.ts';

export type Line = StoryLine & {
  /** The same whenever the story is loaded again, whatever else has happened. */
  key: string;
  at: string;
  what: Happening['what'];
  /** Its place in the whole story. */
  nth: number;
  /** Of the live message that it made, or is. */
  sequence: number | undefined;
  /** Time since the line before; undefined within the same millisecond, or without one. */
  waitMs: number | undefined;
};

/** Makes the lines of an order's story, oldest first. */
export function storyLines(story: ShownOrder): Line[] {
  const seen = new Map<string, number>();
  return story.timeline.map((happening, i) => {
    const { at, what } = happening;
    const before = story.timeline[i - 1];
    const waitMs = before === undefined ? 0 : Date.parse(at) - Date.parse(before.at);
    const name = `${what} ${at}`;
    const again = seen.get(name) ?? 0;
    seen.set(name, again + 1);
    return {
      ...describeHappening(happening, story),
      key: `${name} ${again}`,
      nth: i,
      at,
      what,
      sequence: happening.details['sequence'] as number | undefined,
      waitMs: waitMs < 1 ? undefined : waitMs,
    };
  });
}
