import { duration } from '../parts/duration.ts';
import type { Line } from './story-lines.ts';

/** Up to this many tries in the middle are listed one by one. */
const FEW = 2;

/** Folds consecutive tries with the same result into one line between the first and the last. */
export function foldTries(lines: readonly Line[]): Line[] {
  const folded: Line[] = [];
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (isTry(lines, end, lines[i + 1]?.ending)) end += 2;
    const between = end > i ? lines.slice(i + 2, end - 2) : [];
    const [first, last] = [between[0], between.at(-1)];
    if (first === undefined || last === undefined || between.length / 2 <= FEW) {
      folded.push(...lines.slice(i, i + 1));
      i += 1;
      continue;
    }
    const many: Line = {
      ...first,
      key: `tries ${first.key}`,
      what: last.what,
      sentence: `${between.length / 2} more tries ended the same way`,
      more: [`within ${duration(Date.parse(last.at) - Date.parse(first.at))}`],
    };
    folded.push(...lines.slice(i, i + 2), many, ...lines.slice(end - 2, end));
    i = end;
  }
  return folded;
}

function isTry(lines: readonly Line[], at: number, ending: string | undefined): boolean {
  return ending !== undefined && lines[at]?.what === 'call began' && lines[at + 1]?.ending === ending;
}
