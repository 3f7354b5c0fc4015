/** The outcome of one check. It must contain no secret, no query of a URL, and no member data but the test member's. */
export type Check = {
  /** The name of the check: a few words such as `takes it once`, a location's id, or a status. */
  check: string;
  /** `skipped` means that nothing was examined. `found` says why. */
  state: 'failed' | 'warning' | 'skipped' | 'ok';
  found: string;
  /** How to fix a failure or a warning. */
  toDo?: string;
} & Details;

type Details = {
  /** What was sent or received, if anything. */
  request?: string | undefined;
  /** For a failure: the correct result. */
  expected?: string;
};

export function ok(check: string, found: string, details?: Details): Check {
  return { check, state: 'ok', found, ...details };
}

export function skipped(check: string, found: string, details?: Details): Check {
  return { check, state: 'skipped', found, ...details };
}

export function warning(check: string, found: string, toDo: string): Check {
  return { check, state: 'warning', found, toDo };
}

export function failed(check: string, found: string, toDo: string, details?: Details): Check {
  return { check, state: 'failed', found, toDo, ...details };
}

/** The parts of a deployment, in the order of the doctor's report. `--only` selects some of them. */
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

export type Finding = { part: Part } & Check;
