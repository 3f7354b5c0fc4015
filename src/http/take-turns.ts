/**
 * Makes a queue in which callers take turns: a caller with much work delays another one by one piece, not by all.
 * @param most pieces of work that run at once
 * @returns a function that resolves when it is the caller's turn, with a function that ends the turn
 */
export function takeTurns(most: number): (caller: string) => Promise<() => void> {
  /** The work that waits, by caller. The caller whose turn is next is first. */
  const waiting = new Map<string, (() => void)[]>();
  let running = 0;
  const end = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      running -= 1;
      return;
    }
    const [caller, pieces] = next;
    waiting.delete(caller);
    const begin = pieces.shift();
    if (pieces.length > 0) waiting.set(caller, pieces);
    begin?.();
  };
  return async (caller) => {
    if (running < most) {
      running += 1;
      return end;
    }
    const pieces = waiting.get(caller) ?? [];
    waiting.set(caller, pieces);
    await new Promise<void>((begin) => pieces.push(begin));
    return end;
  };
}
