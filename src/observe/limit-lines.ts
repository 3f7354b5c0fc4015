/** Lines of one kind in a second. Whoever reads them learns no more from the next. */
const MOST = 20;
const WINDOW_MS = 1_000;

/**
 * Limits the lines of a kind that strangers can cause, or an outage: the first twenty in a second are said, and a second
 * later how many came beyond.
 */
export function limitLines(sayMore: (more: number) => void): (say: () => void) => void {
  let count = 0;
  let began = -Infinity;
  const end = (): void => {
    if (count > MOST) sayMore(count - MOST);
    count = 0;
  };
  return (say) => {
    const now = performance.now();
    if (now - began >= WINDOW_MS && count <= MOST) {
      began = now;
      count = 0;
    }
    count += 1;
    if (count <= MOST) say();
    // Those at the end of a flood are told, too.
    else if (count === MOST + 1) setTimeout(end, WINDOW_MS).unref();
  };
}
