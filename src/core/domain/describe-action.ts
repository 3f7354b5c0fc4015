/** What the audit says of an action, in words. The console and the commands use it, so it loads nothing. */
import { changesIn, describeChange, IDS, type Names } from './describe-change.ts';
import { timesInWords } from './explain-failure.ts';
import { labelOf } from './label-of.ts';

/** An action as the audit has it. */
type Recorded = {
  at: string;
  by: { kind: string; id: string; name: string };
  action: string;
  subject: string | null;
  before: string | null;
  outcome: string | null;
  after: string | null;
};
/** Only what is stored about how it ended. */
type Done = Recorded & { before: string; after: string; names: Names };

type Row = {
  /** The sentence after the actor's name. */
  did: string | ((done: Done) => string);
  /** The name of the action, for a choice and for a refusal. */
  name: string;
  /** What it changed. By default nothing is said. */
  more?: (done: Done) => string | readonly string[];
};

/** `in_doubt/by_phone`: the states of an order and of its cancellation. */
const orderMoved = ({ before, after }: Done): string[] => {
  if (before === '' || before === after) return [];
  const [was, is] = [before.split('/'), after.split('/')];
  // What stayed as it was is no move.
  if (was[0] === is[0] && was.length === 1) return [stateInWords(`/${is[1]}`).slice(2)];
  return [`${stateInWords(before)} → ${stateInWords(after)}`];
};
const stateInWords = (state: string): string => words(state).replace('/', ', cancellation ');
const words = (code: string): string => code.replaceAll('_', ' ');
const settingsMoved = ({ before, after, names }: Done): string[] => {
  const changes = changesIn(before || null, after || null);
  return changes?.length === 0 ? ['nothing changed'] : (changes?.map((change) => describeChange(change, names)) ?? []);
};
/** `changed clientId, clientSecret`. */
const namesMoved = ({ after }: Done): string => {
  const names = /^changed (.*)$/.exec(after)?.[1]?.split(', ') ?? [];
  return names.length === 0 ? '' : `changed: ${names.map(labelOf).join(', ')}`;
};
/** `<id> nightly-report: viewer,operator at club-1,club-2`. */
const right = ({ after, names }: Done): string =>
  after
    .replace(/^[\da-f-]{36} /, '')
    .replace(
      / at (?!all locations|the groups )(\S+)( and the groups .+)?$/,
      (_, ids: string, groups = '') => ` at ${ids.split(',').map(names.location).join(', ')}${groups}`,
    )
    .replaceAll(/,(?=\S)/g, ', ');
const inWords = ({ after }: Done): string => words(after);
/** A count after its name: `orders 3`, `found 3`. */
const counted = ({ after }: Done): string => words(after).replace(/^orders (\d+)$/, '$1 of them here');

function tookCase({ by, before, after }: Done): string {
  const had = before === '' || before === 'nobody' || before === after ? undefined : personName(before);
  if (after === '') return 'took the case';
  if (after === by.name) return had === undefined ? 'took the case' : `took the case over from ${had}`;
  return `handed the case over to ${personName(after)}${had === undefined || before === by.name ? '' : `, ${had} had it`}`;
}

/** A change that begins with the integration is a location that was not there. */
const isNew = ({ before, after }: Done): boolean =>
  changesIn(before || null, after || null)?.some(
    (change) => change.field === 'integration' && change.before === null,
  ) === true;

const inHours = (minutes: number): string => {
  const hours = minutes / 60;
  if (!Number.isInteger(hours)) return `${minutes} minutes`;
  return hours === 1 ? '1 hour' : `${hours} hours`;
};

/** The end of a pause or of a busy kitchen, and why: `paused for 30 minutes: The oven is broken.` */
function lasted({ after }: Done): string[] {
  const [, extra, end, reason] = /^(?:paused|(\d+) minutes)( for .*?| until .*?)?(?:: (.*))?$/s.exec(after) ?? [];
  return [
    ...(extra === undefined ? [] : [`${extra} minutes more for each order`]),
    ...(end === undefined
      ? []
      : [end.trim().replace(/^for (\d+) minutes$/, (_, minutes) => `for ${inHours(Number(minutes))}`)]),
    ...(reason === undefined ? [] : [reason]),
  ];
}

function snoozed({ at, after }: Done): string {
  if (after === 'shown') return 'showed the alarm again';
  const minutes = Math.round((Date.parse(after) - Date.parse(at)) / 60_000);
  return minutes > 0 ? `snoozed the alarm for ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}` : 'snoozed the alarm';
}

function answered({ after }: Done): string {
  if (after === '') return 'said what is at the POS';
  return `said that the ticket is ${/^(there|sent)/.test(after) ? '' : 'not '}at the POS`;
}

function answeredCancel({ after }: Done): string {
  if (/(^|\/)cancelled$|^withdrawn/.test(after)) return 'said that the restaurant cancelled the order';
  if (/(^too_late|\/refused)$/.test(after)) return 'said that the restaurant makes the order anyway';
  return 'entered the answer of the restaurant';
}

function answeredChange({ after }: Done): string {
  if (after === 'done') return 'said that the restaurant applied the change';
  return after === 'too_late' ? 'said that it is too late for the change' : 'said whether the change is applied';
}

const checked = ({ after }: Done): string => {
  if (after === 'ok') return 'it works';
  if (after === 'failed') return 'it does not work';
  return after === 'unchecked' ? 'the settings can be read' : '';
};

const ROWS: Readonly<Record<string, Row>> = {
  retry: { did: 'retried the order', name: 'retry an order', more: orderMoved },
  resolve: { did: answered, name: 'say what is at the POS' },
  cancel: { did: 'cancelled the order', name: 'cancel an order', more: orderMoved },
  'conclude cancel': { did: answeredCancel, name: 'enter the answer of a restaurant' },
  'answer change': { did: answeredChange, name: 'say whether a change is applied' },
  'answer notice': { did: 'said that they know', name: 'say that a contact knows' },
  'take case': { did: tookCase, name: 'take or hand over a case' },
  'close case': {
    did: 'closed the case',
    name: 'close a case',
    more: ({ by, before }) => (['', 'nobody', by.name].includes(before) ? [] : `${personName(before)} had it`),
  },
  note: { did: 'wrote a note', name: 'write a note' },
  snooze: { did: snoozed, name: 'snooze an alarm' },
  'search member': { did: 'searched the orders of a member', name: 'search the orders of a member', more: counted },
  'read contents': { did: 'revealed the member data of the order', name: 'reveal member data' },
  'read webhook': { did: 'revealed a webhook', name: 'reveal a webhook' },
  replay: { did: 'replayed a webhook', name: 'replay a webhook', more: inWords },
  'replay many': {
    did: 'replayed all webhooks that match',
    name: 'replay all that match',
    more: ({ subject, after }) => [subject ?? [], after].flat().map(words),
  },
  'resume live messages': { did: 'had live messages sent to the platform again', name: 'resume live messages' },
  'resend live messages': {
    did: 'sent live messages of a time once more',
    name: 'send live messages once more',
    more: inWords,
  },
  check: { did: 'tested the connection', name: 'test a connection', more: checked },
  pause: {
    did: ({ before }) => (before === 'paused' ? 'changed the pause of the location' : 'paused the location'),
    name: 'pause a location',
    more: lasted,
  },
  resume: { did: 'resumed the location', name: 'resume a location' },
  'make busy': { did: 'made the kitchen busy', name: 'make a kitchen busy', more: lasted },
  'end busy': { did: 'ended the busy state of the kitchen', name: 'end the busy state of a kitchen' },
  put: {
    did: (done) => (isNew(done) ? 'added the location' : 'saved the location'),
    name: 'add or save a location',
    more: settingsMoved,
  },
  change: { did: 'changed the location', name: 'change a location', more: settingsMoved },
  'put application': {
    did: ({ subject }) => `saved the vendor application ${subject}`,
    name: 'save a vendor application',
    more: namesMoved,
  },
  'remove application': {
    did: ({ subject }) => `removed the vendor application ${subject}`,
    name: 'remove a vendor application',
  },
  'adopt applications': {
    did: 'moved secrets of locations into vendor applications',
    name: 'adopt vendor applications',
    more: inWords,
  },
  'test contacts': { did: 'sent test messages to the contacts', name: 'send test messages to contacts' },
  'test order': {
    did: 'placed a test order',
    name: 'place a test order',
    // `placed` is also the name of a state before the POS has the order.
    more: (done) => (done.after === 'placed' ? 'the POS took it' : inWords(done)),
  },
  remove: { did: 'removed the location', name: 'remove a location' },
  connect: { did: 'connected the location', name: 'connect a location' },
  'make connect link': { did: 'made a link to connect the location', name: 'make a connect link' },
  'grant by link': {
    did: 'granted access by a link, which waits until the account is confirmed',
    name: 'grant access by a link',
    more: inWords,
  },
  'connect by link': { did: 'connected the location by a link', name: 'connect a location by a link', more: inWords },
  disconnect: {
    did: 'disconnected the location',
    name: 'disconnect a location',
    more: ({ after }) => (after === 'revoked' ? 'the vendor revoked the access' : []),
  },
  certify: { did: 'certified the connection', name: 'certify a connection' },
  doctor: { did: 'had the service check itself', name: 'have the service check itself', more: inWords },
  issue: { did: 'made a token of the location', name: 'make a token of a location' },
  revoke: { did: 'revoked a token of the location', name: 'revoke a token of a location' },
  'issue signal token': { did: 'made a token for signals', name: 'make a token for signals' },
  'revoke signal token': { did: 'revoked a token for signals', name: 'revoke a token for signals' },
  'issue token': { did: 'made an operator token', name: 'make an operator token', more: right },
  'revoke token': { did: 'revoked an operator token', name: 'revoke an operator token', more: right },
  'give roles': { did: 'gave roles', name: 'give roles', more: right },
  'take roles': { did: 'took roles away', name: 'take roles away', more: right },
  'sign in': { did: 'signed in', name: 'sign in', more: inWords },
  'allow command line': { did: 'allowed a command line to sign in', name: 'allow a command line to sign in' },
  'sign out': { did: 'signed out', name: 'sign out' },
  'sign out everywhere': { did: 'signed out everywhere', name: 'sign out everywhere' },
  'revoke session': { did: 'ended a session', name: 'end a session' },
  'be refused': { did: 'was refused', name: 'a request that was refused' },
  'erase member': { did: 'erased the data of a member', name: 'erase the data of a member', more: counted },
  'look up member': { did: 'looked up a member', name: 'look up a member', more: counted },
  rekey: { did: 'encrypted the settings with another key', name: 'encrypt settings with another key', more: inWords },
  recover: { did: 'ran the recovery after a restore', name: 'run the recovery after a restore', more: inWords },
};
const ACTS = new Map(Object.entries(ROWS));

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
export const actionName = (code: string): string => ACTS.get(code)?.name ?? code;

type ActInWords = {
  sentence: string;
  tone: 'plain' | 'warn' | 'bad';
  more: string[];
  /** What the audit stores, for a technician. Null if the words say it all. */
  details: string | null;
  /** False for reads and refused actions. */
  isChange: boolean;
};

/** Turns an action into a sentence about what was before and what is after. Rows of earlier versions read the same. */
export function describeAction(recorded: Recorded, names: Names = IDS): ActInWords {
  const { by, action, subject, before, outcome, after } = recorded;
  const isRefusal = outcome === 'refused' && action !== 'be refused';
  const row = ACTS.get(action);
  const done = { ...recorded, before: before ?? '', after: after ?? '', names };
  const did = typeof row?.did === 'function' ? row.did(done) : row?.did;
  const changed = after === null || (isRefusal && action !== 'replay') ? [] : [row?.more?.(done) ?? []].flat();
  // The words of a right say it all, with names.
  const sides =
    row?.more === right ? null : before === null || before === after ? after : [before, after ?? 'unknown'].join(' → ');
  // Plain words are in the sentence already.
  const stored = [sides, subject].filter((each) => each !== null && !/^[\p{L}\s→:-]*$/u.test(each));
  return {
    sentence: `${nameOf(by)} ${isRefusal ? `was refused: ${actionName(action)}` : (did ?? `did “${words(action)}”`)}`,
    tone: outcome === 'failed' ? 'bad' : outcome === 'done' ? 'plain' : 'warn',
    more: [
      ...(outcome === 'failed' ? ['it failed'] : outcome === null ? ['how it ended is not known'] : []),
      // What has another form than expected is only in the details.
      ...changed.filter((each) => each !== '' && !/[{}]/.test(each)).map(timesInWords),
    ],
    details: stored.join(' · ') || null,
    isChange: outcome !== 'refused' && !LOOKS.has(action),
  };
}

/** What people call somebody by the stored name, which for each holder of the shared token is that of a variable. */
export const personName = (name: string): string => (name === 'OPERATOR_TOKEN' ? 'Shared operator token' : name);

/** The name of the actor, followed by `(token)` or `(command line)` if the actor used one of these. */
export function nameOf({ kind, id, name }: Recorded['by']): string {
  // A contact of a restaurant answered by the link of a message.
  if (kind === 'nobody') return id === 'answer link' ? name.replace(/^contact: /, '') : 'An anonymous caller';
  return kind === 'token' || kind === 'command_line' ? `${name} (${words(kind)})` : personName(name);
}
