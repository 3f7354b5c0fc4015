import { useEffect, useState } from 'preact/hooks';

const NARROW = matchMedia('(max-width: 40rem)');

/** Whether the screen is as narrow as a phone. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const update = (): void => setNarrow(NARROW.matches);
    NARROW.addEventListener('change', update);
    return () => NARROW.removeEventListener('change', update);
  }, []);
  return isNarrow;
}
