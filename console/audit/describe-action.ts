import type { Tone } from '../parts/tones.ts';
import type { RecordedAction } from '../wire.ts';

/** The sentence after the actor's name, by the code of the action. */
const ACTS: Readonly<Record<string, string>> = {
  retry: 'retried the order',
  resolve: 'entered what was seen at the POS',
  cancel: 'cancelled the order',
  'conclude cancel': 'entered the answer of the restaurant',
  'read contents': 'revealed the member data of the order',
  'read webhook': 'revealed a webhook',
  replay: 'replayed a webhook',
  'replay many': 'replayed many webhooks',
  check: 'tested the connection',
  pause: 'paused the location',
  resume: 'resumed the location',
  put: 'stored the location',
  change: 'changed the location',
  'test order': 'placed a test order',
  remove: 'removed the location',
  connect: 'connected the location',
  'make connect link': 'made a link to connect the location',
  'connect by link': 'connected the location by a link',
  disconnect: 'disconnected the location',
  certify: 'certified the connection',
  doctor: 'had the service check itself',
  issue: 'issued a token of the location',
  revoke: 'revoked a token of the location',
  'issue token': 'issued an operator token',
  'revoke token': 'revoked an operator token',
  'give roles': 'gave roles',
  'take roles': 'took roles away',
  'sign in': 'signed in',
  'sign out': 'logged out',
  'sign out everywhere': 'logged out everywhere',
  'revoke session': 'ended a session',
  'be refused': 'was refused',
  'erase member': 'erased the data of a member',
  rekey: 're-encrypted data with another key',
  renumber: 'raised the numbers of live messages',
};

/** Actions that change nothing. */
const LOOKS: ReadonlySet<string> = new Set(['read contents', 'read webhook', 'check', 'doctor', 'be refused']);

export const ACT_CODES: readonly string[] = Object.keys(ACTS);

export type ActInWords = {
  sentence: string;
  tone: Tone;
  more: string[];
  /** False for reads and refused actions. */
  isChange: boolean;
};

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

/** The name of the actor, followed by `(token)` or `(command line)` if the actor used one of these. */
export function nameOf({ kind, name }: RecordedAction['by']): string {
  if (kind === 'nobody') return 'An anonymous caller';
  const how = KINDS[kind];
  return how === undefined ? name : `${name} (${how})`;
}
