import { useState } from 'preact/hooks';

export type Chosen = {
  ids: ReadonlySet<string>;
  set(ids: readonly string[], isChosen: boolean): void;
  clear(): void;
};

/** The rows of a list that were chosen. */
export function useChosen(): Chosen {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const set = (some: readonly string[], isChosen: boolean): void =>
    setIds((before) => new Set(isChosen ? [...before, ...some] : [...before].filter((id) => !some.includes(id))));
  return { ids, set, clear: () => setIds(new Set()) };
}
