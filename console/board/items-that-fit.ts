import type { BoardOrder } from '../wire.ts';

type Ordered = NonNullable<BoardOrder['ordered']>;

/**
 * Lists as many whole items of an order as fit, and counts the rest.
 * @param space the number of lines, and of characters per line. Names wrap.
 */
export function itemsThatFit({ items, lines: count }: Ordered, space: { chars: number; lines: number }): string[] {
  const texts = items.map(({ name, quantity }) => `${quantity}× ${name}`);
  for (let shown = texts.length; shown > 0; shown -= 1) {
    const more = count - shown;
    const lines = [...texts.slice(0, shown), ...(more > 0 ? [`+ ${more} more`] : [])];
    if (flowOf(lines, space.chars) <= space.lines) return lines;
  }
  return space.lines > 0 ? [`${count} ${count === 1 ? 'item' : 'items'}`] : [];
}

/** Characters between two items on one line. */
const GAP = 2;

/** Counts the lines of texts. Several texts may share a line. */
function flowOf(texts: readonly string[], chars: number): number {
  let lines = 1;
  let used = 0;
  for (const text of texts) {
    if (used > 0 && used + text.length > chars) {
      lines += 1;
      used = 0;
    }
    lines += linesOf(text, chars) - 1;
    used = text.length > chars ? chars : used + text.length + GAP;
  }
  return lines;
}

/** Counts the lines of a text, wrapped at words. */
export function linesOf(text: string, chars: number): number {
  let lines = 1;
  let left = chars;
  for (const word of text.split(' ')) {
    if (left < chars && word.length > left) {
      lines += 1;
      left = chars;
    }
    lines += Math.max(0, Math.ceil(word.length / chars) - 1);
    left -= (word.length % chars) + 1;
  }
  return lines;
}
