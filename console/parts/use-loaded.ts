import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Refused } from '../call.ts';

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
 * If the service cannot be reached, tries again automatically.
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
    const settle = (value: Value | undefined, problem: Error | undefined, nextMs: number | undefined): void => {
      if (giveUp.signal.aborted) return;
      setLoaded((before) => ({ value: problem ? before.value : value, problem, isLoading: false }));
      if (nextMs !== undefined) timer = setTimeout(() => whenVisible(giveUp.signal, again), nextMs);
    };
    load(giveUp.signal).then(
      (value) => settle(value, undefined, everyMs),
      (problem: Error) => {
        const isUnreached = problem instanceof Refused && problem.status === 0;
        if (isUnreached) addEventListener('online', again, { signal: giveUp.signal });
        settle(undefined, problem, isUnreached ? UNREACHED_MS : everyMs);
      },
    );
    return () => {
      giveUp.abort();
      clearTimeout(timer);
    };
  }, [...keys, turn]);

  return { ...loaded, again };
}

/** How soon a service that could not be reached is asked again. */
const UNREACHED_MS = 3_000;

const NOTHING = { value: undefined, problem: undefined, isLoading: true };

function whenVisible(signal: AbortSignal, then: () => void): void {
  if (document.visibilityState === 'visible') return then();
  document.addEventListener('visibilitychange', then, { once: true, signal });
}
