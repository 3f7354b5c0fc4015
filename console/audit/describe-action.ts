import type { Tone } from '../parts/tones.ts';
import type { RecordedAction } from '../wire.ts';

/** The sentence after the actor's name, and the name of the action, by its code. */
const WORDS: Readonly<Record<string, readonly [done: string, name: string]>> = {
  retry: ['retried the order', 'retry an order'],
  resolve: ['said what is at the POS', 'say what is at the POS'],
  cancel: ['cancelled the order', 'cancel an order'],
  'conclude cancel': ['entered the answer of the restaurant', 'enter the answer of a restaurant'],
  'answer change': ['said whether the restaurant applied the change', 'say whether a change is applied'],
  'answer notice': ['said that they know', 'say that a contact knows'],
  'take case': ['took the case, or handed it over', 'take or hand over a case'],
  'close case': ['closed the case', 'close a case'],
  note: ['wrote a note', 'write a note'],
  snooze: ['snoozed the alarm', 'snooze an alarm'],
  'search member': ['searched the orders of a member', 'search the orders of a member'],
  'read contents': ['revealed the member data of the order', 'reveal member data'],
  'read webhook': ['revealed a webhook', 'reveal a webhook'],
  replay: ['replayed a webhook', 'replay a webhook'],
  'replay many': ['replayed all webhooks that match', 'replay all that match'],
  'resume live messages': ['had live messages sent to the platform again', 'resume live messages'],
  'resend live messages': ['sent live messages of a time once more', 'send live messages once more'],
  check: ['tested the connection', 'test a connection'],
  pause: ['paused the location', 'pause a location'],
  resume: ['resumed the location', 'resume a location'],
  'make busy': ['made the kitchen busy', 'make a kitchen busy'],
  'end busy': ['ended the busy state of the kitchen', 'end the busy state of a kitchen'],
  put: ['saved the location', 'save a location'],
  change: ['changed the location', 'change a location'],
  'put application': ['saved a vendor application', 'save a vendor application'],
  'remove application': ['removed a vendor application', 'remove a vendor application'],
  'adopt applications': ['moved secrets of locations into vendor applications', 'adopt vendor applications'],
  'test contacts': ['sent test messages to the contacts', 'send test messages to contacts'],
  'test order': ['placed a test order', 'place a test order'],
  remove: ['removed the location', 'remove a location'],
  connect: ['connected the location', 'connect a location'],
  'make connect link': ['made a link to connect the location', 'make a connect link'],
  'grant by link': ['granted access by a link, which waits until the account is confirmed', 'grant access by a link'],
  'connect by link': ['connected the location by a link', 'connect a location by a link'],
  disconnect: ['disconnected the location', 'disconnect a location'],
  certify: ['certified the connection', 'certify a connection'],
  doctor: ['had the service check itself', 'have the service check itself'],
  issue: ['made a token of the location', 'make a token of a location'],
  revoke: ['revoked a token of the location', 'revoke a token of a location'],
  'issue signal token': ['made a token for signals', 'make a token for signals'],
  'revoke signal token': ['revoked a token for signals', 'revoke a token for signals'],
  'issue token': ['made an operator token', 'make an operator token'],
  'revoke token': ['revoked an operator token', 'revoke an operator token'],
  'give roles': ['gave roles', 'give roles'],
  'take roles': ['took roles away', 'take roles away'],
  'sign in': ['signed in', 'sign in'],
  'allow command line': ['allowed a command line to sign in', 'allow a command line to sign in'],
  'sign out': ['signed out', 'sign out'],
  'sign out everywhere': ['signed out everywhere', 'sign out everywhere'],
  'revoke session': ['ended a session', 'end a session'],
  'be refused': ['was refused', 'a request that was refused'],
  'erase member': ['erased the data of a member', 'erase the data of a member'],
  'look up member': ['looked up a member', 'look up a member'],
  rekey: ['encrypted the settings with another key', 'encrypt settings with another key'],
  recover: ['ran the recovery after a restore', 'run the recovery after a restore'],
};
const ACTS = new Map(Object.entries(WORDS));

/** Actions that change nothing. */
const LOOKS: ReadonlySet<string> = new Set([
  'read contents',
  'read webhook',
  'check',
  'doctor',
  'be refused',
  'search member',
  'look up member',
]);

export const ACT_CODES: readonly string[] = [...ACTS.keys()];

/** The action in words, for a choice and for a refusal. */
export const actionName = (code: string): string => ACTS.get(code)?.[1] ?? code;

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
    sentence: `${nameOf(by)} ${isRefusal ? `was refused: ${actionName(action)}` : (ACTS.get(action)?.[0] ?? `did “${action}”`)}`,
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
export function nameOf({ kind, id, name }: RecordedAction['by']): string {
  // A contact of a restaurant answered by the link of a message.
  if (kind === 'nobody') return id === 'answer link' ? name : 'An anonymous caller';
  const how = KINDS[kind];
  return how === undefined ? name : `${name} (${how})`;
}
