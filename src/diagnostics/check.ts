/** The outcome of one check. No secret, no query of a URL, and no member data but that of the made-up test member. */
export type Check = {
  /** A few words, such as `takes it once`; for a location its id, for a status its name. */
  check: string;
  /** `skipped` means not examined, for the reason in `found`. */
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

/** The parts of a deployment, in the order in which the doctor reports them. Each can be examined alone. */
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
