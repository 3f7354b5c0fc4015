/** What is looked at together, and can be asked for alone. */
export const PARTS = [
  'environment',
  'database',
  'clock',
  'keys',
  'platform',
  'topic',
  'push',
  'public-url',
  'locations',
] as const;
export type Part = (typeof PARTS)[number];

/** One thing that a deployment needs, and how it is; no secret, no member data, no URL's query. */
export type Finding = {
  part: Part;
  /** A few words; of a location, its id. */
  check: string;
  /** `skipped`: it could not be looked at, for the reason that `found` names. */
  state: 'ok' | 'warning' | 'failed' | 'skipped';
  found: string;
  /** What mends a failure or a warning. */
  toDo?: string;
};

/** Of one part. */
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
