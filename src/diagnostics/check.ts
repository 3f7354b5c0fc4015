import { z } from 'zod';

/** The outcome of one check. It must contain no secret, no query of a URL, and no member data but the test member's. */
export const Check = z.object({
  check: z.string().meta({
    description: "The name of the check: a few words such as `takes it once`, a location's id, or a status.",
  }),
  state: z.enum(['failed', 'warning', 'skipped', 'ok']).meta({
    description: '`skipped`: nothing was examined. `found` says why.',
  }),
  found: z.string(),
  toDo: z.string().exactOptional().meta({ description: 'How to fix a failure or a warning.' }),
  request: z.string().optional().meta({ description: 'What was sent or received, if anything.' }),
  expected: z.string().exactOptional().meta({ description: 'For a failure: the correct result.' }),
});
export type Check = z.infer<typeof Check>;

type Details = Pick<Check, 'request' | 'expected'>;

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
  'live',
  'topic',
  'spill',
  'push',
  'follow',
  'public-url',
  'notify',
  'operators',
  'locations',
] as const;
export type Part = (typeof PARTS)[number];

export const Finding = Check.extend({ part: z.enum(PARTS) });
export type Finding = z.infer<typeof Finding>;
