import type { Tone } from '../parts/tones.ts';
import type { RecordedAction } from '../wire.ts';

/** What was done, after the name of who did it, by the act's code. */
const ACTS: Readonly<Record<string, string>> = {
  retry: 'tried it again',
  resolve: 'said what was seen at the POS',
  cancel: 'had it cancelled',
  'conclude cancel': 'said what the restaurant said',
  'read contents': 'read what was ordered and by whom',
  'read webhook': 'read a webhook',
  replay: 'replayed a webhook',
  'replay many': 'replayed many webhooks',
  check: 'tested the connection',
  pause: 'paused the location',
  resume: 'resumed the location',
  put: 'put the settings',
  remove: 'removed the location',
  connect: 'connected the location',
  certify: 'certified the connection',
  issue: 'issued a token of the location',
  revoke: 'revoked a token of the location',
  'issue token': 'issued an operator token',
  'revoke token': 'revoked an operator token',
  'give roles': 'gave roles',
  'take roles': 'took roles back',
  'sign in': 'signed in',
  'sign out': 'logged out',
  'sign out everywhere': 'logged out everywhere',
  'revoke session': 'ended a session',
  'be refused': 'was refused',
  'erase member': 'erased a member',
  rekey: 'encrypted anew with another key',
  renumber: 'raised the numbers of live messages',
};

/** Those that change nothing. */
const LOOKS: ReadonlySet<string> = new Set(['read contents', 'read webhook', 'check', 'be refused']);

/** The codes of acts, for a filter. */
export const ACT_CODES: readonly string[] = Object.keys(ACTS);

export type ActInWords = {
  sentence: string;
  tone: Tone;
  more: string[];
  /** False for a look, and for what was not done. */
  isChange: boolean;
};

/** Says who did what, and how it ended. */
export function describeAction({ by, action, subject, before, outcome, after }: RecordedAction): ActInWords {
  const isRefusal = outcome === 'refused' && action !== 'be refused';
  const moved = before === null || after === null || before === after ? [] : [`${before} → ${after}`];
  return {
    sentence: `${nameOf(by)} ${isRefusal ? `was refused: “${action}”` : (ACTS[action] ?? `did “${action}”`)}`,
    tone: outcome === 'failed' ? 'bad' : outcome === 'done' ? 'plain' : 'warn',
    more: [
      ...(outcome === 'failed' ? ['it failed'] : outcome === null ? ['how it ended is not known'] : []),
      ...(moved.length === 0 && after !== null && before === null ? [after] : moved),
      ...(subject === null ? [] : [subject]),
    ],
    isChange: outcome !== 'refused' && !LOOKS.has(action),
  };
}

const KINDS: Partial<Record<RecordedAction['by']['kind'], string>> = {
  token: 'token',
  command_line: 'command line',
};

/** Who it was, and how they came in, unless as a person. */
export function nameOf({ kind, name }: RecordedAction['by']): string {
  if (kind === 'nobody') return 'Somebody who did not sign in';
  const how = KINDS[kind];
  return how === undefined ? name : `${name} (${how})`;
}
