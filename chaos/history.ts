/** Something that happened, `at` milliseconds since the run's beginning; what else is known stands beside it. */
export type Entry = { at: number; what: string; order?: string; [detail: string]: unknown };

export type History = {
  /** Now is the beginning; what was noted before is before it. */
  begin(): void;
  /** Milliseconds since the beginning. */
  now(): number;
  note(what: string, about?: { order?: string; [detail: string]: unknown }): void;
  readonly entries: readonly Entry[];
};

/** What the run did and saw, in the order in which it did. */
export function recordHistory(): History {
  let began = performance.now();
  const entries: Entry[] = [];
  const now = (): number => Math.round(performance.now() - began);
  return {
    begin() {
      const passed = now();
      for (const entry of entries) entry.at -= passed;
      began = performance.now();
    },
    now,
    entries,
    note(what, about = {}) {
      entries.push({ at: now(), what, ...about });
    },
  };
}
