/** An event, `at` milliseconds since the run's beginning, with its details. */
export type Entry = { at: number; what: string; order?: string; [detail: string]: unknown };

export type History = {
  /** Sets the run's clock to 0. Earlier entries get negative times. */
  begin(): void;
  /** Milliseconds since the beginning. */
  now(): number;
  note(what: string, about?: { order?: string; [detail: string]: unknown }): void;
  readonly entries: readonly Entry[];
};

/** Records the events of the run, in order. */
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
