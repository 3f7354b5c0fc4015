import type { BoardOrder } from '../wire.ts';

type Ordered = NonNullable<BoardOrder['ordered']>;

/**
 * Writes as many of an order's items as there is room for, each whole, and counts the others.
 * @param room characters of a line, and lines; names are wrapped
 */
export function itemsThatFit({ items, lines: count }: Ordered, room: { chars: number; lines: number }): string[] {
  const said = items.map(({ name, quantity }) => `${quantity}× ${name}`);
  for (let shown = said.length; shown > 0; shown -= 1) {
    const more = count - shown;
    const lines = [...said.slice(0, shown), ...(more > 0 ? [`+ ${more} more`] : [])];
    if (flowOf(lines, room.chars) <= room.lines) return lines;
  }
  return room.lines > 0 ? [`${count} ${count === 1 ? 'item' : 'items'}`] : [];
}

/** Characters between two that share a line. */
const GAP = 2;

/** Lines of texts, of which several may share one. */
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

/** Lines of a text, a word on each that leaves no room for the next. */
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
