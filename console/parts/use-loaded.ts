import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export type Loaded<Value> = {
  /** The last value, also during a reload. */
  value: Value | undefined;
  /** The error of the last try. */
  problem: Error | undefined;
  isLoading: boolean;
  /** Reloads. The current value stays until then. */
  again(): void;
};

/**
 * Loads a value when the component appears and when `keys` change. Aborts an earlier request.
 * @param everyMs reloads at this interval after each answer, while the page is visible
 */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  keys: readonly unknown[],
  everyMs?: number,
): Loaded<Value> {
  const [loaded, setLoaded] = useState<Omit<Loaded<Value>, 'again'>>(NOTHING);
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const previous = useRef(keys);

  useEffect(() => {
    const giveUp = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const isOther = previous.current.some((key, i) => key !== keys[i]);
    previous.current = keys;
    // The current value stays until a newer value or an error arrives.
    setLoaded((before) => (isOther ? NOTHING : { ...before, isLoading: true }));
    load(giveUp.signal)
      .then(
        (value) => !giveUp.signal.aborted && setLoaded({ value, problem: undefined, isLoading: false }),
        (problem: Error) =>
          !giveUp.signal.aborted && setLoaded((before) => ({ value: before.value, problem, isLoading: false })),
      )
      .finally(() => {
        if (everyMs === undefined || giveUp.signal.aborted) return;
        timer = setTimeout(() => whenVisible(giveUp.signal, again), everyMs);
      });
    return () => {
      giveUp.abort();
      clearTimeout(timer);
    };
  }, [...keys, turn]);

  return { ...loaded, again };
}

const NOTHING = { value: undefined, problem: undefined, isLoading: true };

function whenVisible(signal: AbortSignal, then: () => void): void {
  if (document.visibilityState === 'visible') return then();
  document.addEventListener('visibilitychange', then, { once: true, signal });
}
