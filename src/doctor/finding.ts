/** The parts that can be examined alone. */
export const PARTS = [
  'environment',
  'database',
  'clock',
  'keys',
  'platform',
  'topic',
  'spill',
  'push',
  'follow',
  'public-url',
  'operators',
  'locations',
] as const;
export type Part = (typeof PARTS)[number];

/** One need of a deployment and its state. No secret, no member data, no URL's query. */
export type Finding = {
  part: Part;
  /** A few words; for a location, its id. */
  check: string;
  /** `skipped` means not examined, for the reason in `found`. */
  state: 'ok' | 'warning' | 'failed' | 'skipped';
  found: string;
  /** The remedy of a failure or a warning. */
  toDo?: string;
};

/** Makes the findings of one part. */
export type Reporter = {
  ok(check: string, found: string): Finding;
  warning(check: string, found: string, toDo: string): Finding;
  failed(check: string, found: string, toDo: string): Finding;
  skipped(check: string, found: string): Finding;
};

export function reporterOf(part: Part): Reporter {
  return {
    ok: (check, found) => ({ part, check, state: 'ok', found }),
    warning: (check, found, toDo) => ({ part, check, state: 'warning', found, toDo }),
    failed: (check, found, toDo) => ({ part, check, state: 'failed', found, toDo }),
    skipped: (check, found) => ({ part, check, state: 'skipped', found }),
  };
}
