import { z } from 'zod';
import { LIST, readJson, readList, time } from '../terminal/print.ts';
import { toCauseText } from '../core/domain/cause-text.ts';
import { Id } from '../core/domain/order.ts';
import { CheckedLocation, checkLocation } from '../core/locations/check-location.ts';
import { ConnectedLocation, connectLocation } from '../core/locations/connect-location.ts';
import { findLocation } from '../core/locations/locations.ts';
import type { SettingsChange } from '../core/locations/where-settings-lead.ts';
import { PausedLocation, pauseLocation, resumeLocation } from '../core/kitchens/pause-location.ts';
import { staysRefused } from '../core/replay/stays-refused.ts';
import { settleKitchen } from '../core/kitchens/settle-kitchens.ts';
import {
  ChangedLocation,
  type LocationChange,
  LocationDetails,
  patchLocation,
  putLocation,
  ReplacedDetails,
  type PutLocation,
  type PutRefused,
} from '../core/locations/put-location.ts';
import { removeLocation } from '../core/locations/remove-location.ts';
import { ListedLocations, ShownLocation, listSeenLocations, showLocation } from '../core/locations/show-location.ts';
import { listTokens, stateOfToken, type TokenRow } from '../core/locations/webhook-tokens.ts';
import { refuseTest, TESTS_A_DAY, TestedContacts, testContacts } from '../core/notices/send-notices.ts';
import { withOpen } from '../core/orders/open-at-locations.ts';
import { describeCheck } from '../diagnostics/print-checks.ts';
import type { Action } from '../core/operators/audit.ts';
import { changeInWords, locationInWords, locationsTable } from './location-text.ts';
import {
  NOTIFY,
  NO_PUBLIC_URL,
  POS,
  SETTINGS,
  operation,
  refusing,
  unlessDrained,
  type Caller,
  type CommandOption,
  type Operation,
} from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { group, lasting, LocationParams, optional, optionsOf, whether } from './requests.ts';

/** Limit for all calls to the POS together. It is short, because an operator waits for the result. */
const CHECK_MS = 8_000;

const LocationsQuery = z.strictObject({ group });

const list = operation({
  id: 'listLocations',
  access: { role: 'any', of: 'list' },
  api: {
    route: 'GET /locations',
    summary: 'All locations that you may see',
    description: 'The settings are left out.',
    output: ListedLocations,
    answer: 'The locations.',
  },
  query: LocationsQuery,
  async run({ pool, within }) {
    return { locations: await withOpen(pool, await listSeenLocations(pool, within())) };
  },
  print: ({ locations }) => locationsTable(locations),
  command: {
    name: 'location list',
    about: 'list all locations',
    options: optionsOf(LocationsQuery, '--group <name>'),
    examples: ['expediter location list', 'expediter location list --group brand-nord'],
    rows: 'locations',
  },
});

/** Base64, as the settings of `standard` want it. It says in words that it is an example. */
const EXAMPLE_SECRET = Buffer.from('an example: make a secret of your own').toString('base64');
/** Maximum body of a location in bytes, most of them an item map: it may have thousands of entries. */
const LOCATION_BYTES = 256 * 1024;
const dryRun = whether('Change nothing, and answer with what would change.').optional();
const anyway = whether('Change the integration although its POS has orders that have not ended.').optional();
const settings = z.record(z.string(), z.unknown()).meta({
  description:
    'As the schema of the integration says: see `GET /providers`. Secrets are stored encrypted and never shown.',
});
const Integration = Id.meta({ description: 'The name of an integration.', examples: ['standard'] });

export const PutBody = z.strictObject({ integration: Integration, settings, ...ReplacedDetails.shape });
const PatchBody = z
  .strictObject({ integration: Integration, settings, ...LocationDetails.shape })
  .partial()
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), {
    error: `must change something: one of ${Object.keys(PutBody.shape).join(', ')} is required`,
  });

type Flags = { dryRun?: boolean | undefined; anyway?: boolean | undefined };
type Wanted = Partial<LocationDetails> & { locationId: string } & Flags;
type PutInput = Wanted & { integration: string; settings: Readonly<Record<string, unknown>> };
type PatchInput = Partial<PutInput> & Wanted;

/** Stores a location, or what is given of it. `isDry` overrides the input, for the audit. */
async function store(
  caller: Caller,
  { locationId, dryRun: isDry = false, anyway: isSure, integration, settings: given, ...details }: PatchInput,
  isPatch: boolean,
  isForAudit = false,
): Promise<PutLocation | PutRefused | undefined> {
  const { pool, pos, headers, mayPlace, hasAt, scope, service } = caller;
  const { registry, keys, publicUrl } = caller.settings;
  await refuseCountry(details.country);
  const rules = { registry, keys, publicUrl: publicUrl || undefined, allowedHosts: pos.allowedHosts };
  let valid: SettingsChange | undefined;
  const options = {
    ...headers,
    dryRun: isDry || isForAudit,
    mayPlace,
    isUnscoped: scope() === undefined,
    mayTell: (groups: readonly string[]) => hasAt('operator', locationId, groups),
    mayMove: service === undefined,
    anyway: isSure,
    namesOrders: hasAt('viewer', locationId),
    onValid: (change: SettingsChange) => void (valid = change),
  };
  const put = { locationId, integration: integration ?? '', settings: given, ...details };
  const patch = { ...details, ...(integration && { integration }), ...(given && { settings: given }) };
  const done = await (isPatch
    ? patchLocation(pool, rules, locationId, patch, options)
    : putLocation(pool, rules, put, options));
  if (!isDry || isForAudit || done === undefined || 'refused' in done || valid === undefined) return done;
  return { ...done, warnings: [...done.warnings, ...(await judgeSecrets(caller, locationId, valid, done))] };
}

/** Says if the dropped webhooks that are stored would not be verified by changed settings either. */
async function judgeSecrets(
  { pool, settings, hasAt }: Caller,
  locationId: string,
  { provider, used }: SettingsChange,
  { changes }: PutLocation,
): Promise<string[]> {
  const { settings: names, previousSetting, urlSetting } = provider.webhookAuth ?? { settings: [] };
  const verifies = [...names, previousSetting, urlSetting].map((name) => `settings.${name}`);
  // An integrator may not see webhooks.
  if (!hasAt('viewer', locationId) || !changes.some(({ field }) => verifies.includes(field))) return [];
  const at = { locationId, integration: provider.integration };
  return (await staysRefused({ ...settings, pool }, at, { provider, settings: used })) ? [STAYS_REFUSED] : [];
}

const STAYS_REFUSED =
  'The webhooks that were dropped would be dropped again: they do not match what you entered. Compare it with what is set at the POS.';

async function refuseCountry(code: string | null | undefined): Promise<void> {
  if (code === null || code === undefined) return;
  // Imported here, because no other operation needs this library's tables.
  const { isSupportedCountry } = await import('libphonenumber-js/min');
  if (isSupportedCountry(code)) return;
  const says = toCauseText('is not an ISO 3166-1 code such as DE');
  throw new NotDone(400, `country ${says}`, { issues: [{ path: toCauseText('country'), received: 'string', says }] });
}

/** The audit's fields of a change. What cannot be stored has no `before`: the operation then refuses it. */
async function aboutChange(caller: Caller, input: PatchInput, isPatch: boolean): Promise<Partial<Action>> {
  const { locationId } = input;
  const would = await store(caller, input, isPatch, true).catch(() => undefined);
  return { locationId, before: would !== undefined && 'changes' in would ? sideOf(would, 'before') : '{}' };
}

/** One side of the changes, as JSON. A secret is `set`; if it changed and looks the same, it is `changed`. */
function sideOf({ changes }: PutLocation, side: 'before' | 'after'): string {
  const isSecretChange = ({ before, after }: LocationChange): boolean => before === after;
  return JSON.stringify(
    Object.fromEntries(
      changes.map((change) => [change.field, side === 'after' && isSecretChange(change) ? 'changed' : change[side]]),
    ),
  );
}

async function finish(
  { pool, note, service }: Caller,
  locationId: string,
  done: PutLocation | PutRefused | undefined,
): Promise<z.output<typeof ChangedLocation> | PutRefused | undefined> {
  if (done === undefined) return undefined;
  if ('refused' in done) return done;
  note(sideOf(done, 'after'));
  // Rights at a group include its locations.
  if (done.changes.some(({ field }) => field === 'groups')) service?.identify.invalidateCache();
  const [location, tokens] = await Promise.all([findLocation(pool, locationId), listTokens(pool, locationId)]);
  const integration = done.changes.find(({ field }) => field === 'integration')?.after ?? location?.integration ?? '';
  const isValid = (token: TokenRow): boolean => stateOfToken(token, integration, new Date()) === 'valid';
  return { locationId, integration, ...done, validTokens: tokens.filter(isValid).length };
}

const DETAILS: readonly CommandOption[] = [
  ...optionsOf(ReplacedDetails, '--name <text>', '--time-zone <name>', '--country <code>'),
  { flags: '--groups <names>', about: `its groups, such as its brand and its region; ${LIST}`, read: readList },
  ...optionsOf(ReplacedDetails, '--address <text>', '--back-office-url <url>'),
  { flags: '--anyway', about: 'change the integration although its POS has orders that have not ended' },
  { flags: '--dry-run', about: 'change nothing, and print what would change' },
];

const put = operation({
  id: 'putLocation',
  access: { role: 'integrator', of: 'new', does: 'put' },
  api: {
    route: 'PUT /locations/:locationId',
    summary: 'Create or replace a location',
    description:
      'Everything that the body leaves out is removed. Its held orders are tried immediately. The audit records what ' +
      'changed, without secrets. An integrator of some groups creates locations only in these groups, with ids that ' +
      'begin with the group and a colon and have no orders or webhooks yet, adds and removes no other group, and names ' +
      'no restaurant at the POS that another location has. To add a location to one of these groups, they need every ' +
      'role that others have there, also at the location.',
    output: ChangedLocation,
    answer: 'It is stored.',
    refuses: [409, 412],
    creates: true,
    bodyLimit: LOCATION_BYTES,
  },
  takes: ['ifMatch', 'ifNoneMatch'],
  params: LocationParams,
  query: z.strictObject({ dryRun, anyway }),
  body: PutBody,
  reads: POS,
  wakes: true,
  about: (caller, input: PutInput) => aboutChange(caller, input, false),
  run: async (caller, input: PutInput) => finish(caller, input.locationId, await store(caller, input, false)),
  print: (done, { dryRun: isDry }: PutInput) => changeInWords(done, isDry === true),
  command: {
    name: 'location put',
    argument: false,
    about: 'create or replace a location. Everything that is not given is removed. Held orders are tried immediately',
    options: [
      { flags: '--location <id>', about: "the location's id on the platform", required: true },
      { flags: '--integration <name>', about: 'see: expediter provider list', required: true },
      {
        flags: '--settings <file>',
        about: 'a JSON file, or - for standard input; see: expediter provider schema',
        required: true,
      },
      ...DETAILS,
    ],
    more: `
Settings are stored encrypted, and secrets are never printed. A URL in the settings with http or a private address is
refused, unless ALLOW_PRIVATE_HOSTS names its host (docs/deploy.md#where-pos-systems-may-be).
`,
    examples: [
      `echo '{"ordersUrl": "https://pos.example.com/orders", "secret": "whsec_${EXAMPLE_SECRET}"}' |\n      expediter location put --location club-1 --integration standard --settings - --name "Club Nord"`,
      'expediter location put --location club-2 --integration standard --settings - < club-1.json',
    ],
    read: async ({ location, settings: file, ...typed }) => ({
      ...typed,
      locationId: location,
      settings: await readSettings(String(file)),
    }),
  },
});

const change = operation({
  id: 'changeLocation',
  access: { role: 'integrator', of: 'location', does: 'change' },
  api: {
    route: 'PATCH /locations/:locationId',
    summary: 'Change a location',
    description:
      'Only the given fields change. Settings are merged by JSON Merge Patch (RFC 7396): null removes a field, and ' +
      'secrets that are not given stay. If a URL changes to another host, all secrets must be given again; by an ' +
      'integrator of some groups also if the restaurant at the POS or the path of a URL changes. With another ' +
      '`integration`, `settings` replaces all settings.',
    output: ChangedLocation,
    answer: 'It is changed.',
    refuses: [409, 412],
    bodyLimit: LOCATION_BYTES,
  },
  takes: ['ifMatch'],
  params: LocationParams,
  query: z.strictObject({ dryRun, anyway }),
  body: PatchBody,
  reads: POS,
  wakes: true,
  about: (caller, input: PatchInput) => aboutChange(caller, input, true),
  run: async (caller, input: PatchInput) => finish(caller, input.locationId, await store(caller, input, true)),
  print: (done, { dryRun: isDry }: Wanted) => changeInWords(done, isDry === true),
  command: {
    name: 'location change',
    about: 'change a location. What is not given stays',
    options: [
      { flags: '--settings <file>', about: 'a JSON file, or -, with the settings that change; null removes one' },
      ...DETAILS,
    ],
    examples: [
      'expediter location change club-1 --name "Club Nord" --groups brand-nord,berlin',
      'expediter location change club-1 --settings - < club-1.json',
    ],
    read: async ({ settings: file, ...typed }) => ({
      ...typed,
      ...(typeof file === 'string' && { settings: await readSettings(file) }),
    }),
  },
});

const show = operation({
  id: 'showLocation',
  access: { role: 'any', of: 'location' },
  api: {
    route: 'GET /locations/:locationId',
    summary: 'One location with its settings and tokens',
    description:
      'A secret is shown by its fingerprint only, its origin too if it is a URL, and a token by its id only.',
    output: ShownLocation,
    answer: 'The location.',
  },
  params: LocationParams,
  reads: SETTINGS,
  async run({ pool, settings, service, hasAt }, { locationId }) {
    const now = service?.now ?? (() => new Date());
    const found = await showLocation({ ...settings, pool, now, readsOrders: hasAt('viewer', locationId) }, locationId);
    return found && (await withOpen(pool, [found]))[0];
  },
  print: locationInWords,
  command: {
    name: 'location show',
    about: 'show one location: integration, state, valid tokens, settings without secrets, operator actions',
    more: `
It also says whether the POS uses an old token (docs/webhooks.md#an-old-token), and which command fixes that. If the POS
grants access for a limited time, it says when the access was last renewed, and in how many days it ends otherwise.
`,
    examples: ['expediter location show club-1'],
  },
});

const check = operation({
  id: 'checkLocation',
  access: { role: 'operator or integrator', of: 'location', does: 'check' },
  api: {
    route: 'POST /locations/:locationId/check',
    summary: "Check with a location's POS whether its settings work",
    description: 'The check changes nothing at the POS, and takes up to 8 s. A paused location can be checked too.',
    output: CheckedLocation,
    answer: 'The answer of the POS.',
  },
  params: LocationParams,
  reads: POS,
  async run({ pos, stopped, note }, { locationId }) {
    const checked = await unlessDrained(checkLocation(pos, locationId, CHECK_MS), stopped);
    note(checked.state);
    return checked;
  },
  fails: ({ state }) => state === 'failed',
  async print(checked) {
    const { judgeReach } = await import('../diagnostics/examine-locations.ts');
    return describeCheck(judgeReach(checked));
  },
  command: {
    name: 'provider check',
    about: "check with a location's POS whether its settings work. Changes nothing there. Exits 1 if they do not work",
    more: `
This also shows whether the tills take orders now, if the POS reports that.
`,
    examples: ['expediter provider check club-1'],
  },
});

const connect = operation({
  id: 'connectLocation',
  access: { role: 'integrator', of: 'location', does: 'connect' },
  api: {
    route: 'POST /locations/:locationId/connect',
    summary: "Connect a location's POS to our webhook with a new token",
    description:
      "Registers the webhook if the POS's API allows it, and says what is left to do by hand. Earlier tokens stay " +
      'valid until they are revoked. It takes up to 60 s.',
    output: ConnectedLocation,
    answer: 'What is done, and what is left to do. A step may contain the new token, which is not shown again.',
    refuses: [409],
  },
  params: LocationParams,
  reads: POS,
  async run({ pool, settings: { registry, keys, publicUrl }, pos, note }, { locationId }) {
    if (publicUrl === '') throw new NotDone(409, NO_PUBLIC_URL);
    const rules = { registry, keys, publicUrl };
    const { tokenId, done, todo } = await connectLocation({ ...pos, pool, rules }, locationId).catch(
      refusing('The POS was not connected'),
    );
    note(tokenId);
    return { locationId, tokenId, done: [...done], todo: [...todo] };
  },
  print: ({ done, todo }) =>
    [...done, ...(todo.length > 0 ? ['Left to do:'] : []), ...todo.map((step) => `- ${step}`)].join('\n'),
  command: {
    name: 'provider connect',
    about:
      "connect a location's POS to our webhook with a new token. Registers the webhook if the POS's API allows it, " +
      'and says what is left to do by hand. Earlier tokens stay valid until they are revoked',
    more: `
This needs PUBLIC_URL. For HubRise and Square: if the settings have the application's id and secret but no token, this
prints the URL of the page where the restaurant agrees. Put the code from that page into the settings as
authorizationCode, and run the command again. This replaces the code in the stored settings by a token, which your file
does not have. Before you put the file again, add the code of a new authorisation to it.
`,
    examples: ['expediter provider connect club-1'],
  },
});

const pauseTime = lasting('resume');
const Pause = optional(
  z
    .strictObject(pauseTime.fields)
    .refine(...pauseTime.hasOneEnd)
    .meta({ examples: [{ minutes: 30, reason: 'The oven is broken.' }] }),
);

const pause = operation({
  id: 'pauseLocation',
  access: { role: 'operator', of: 'location', does: 'pause' },
  api: {
    route: 'POST /locations/:locationId/pause',
    summary: 'Pause a location: its orders wait',
    description:
      'No order is lost: the pause does not count towards the deadline. Webhooks are still accepted. With `minutes` or ' +
      '`until`, the location resumes automatically. A later request replaces the end and the reason.',
    output: PausedLocation,
    answer: 'The state of the location, even if it did not change.',
  },
  params: LocationParams,
  body: Pause,
  async run(caller, { locationId, ...pause }) {
    pauseTime.refusePast(caller, pause);
    const paused = await pauseLocation(caller.pool, locationId, { ...pause, by: caller.by.name });
    if (!paused) return undefined;
    caller.note(`paused${pauseTime.inWords(pause)}`);
    await settleKitchen(caller, locationId);
    return { locationId, paused: true };
  },
  print: (_, { locationId, until, minutes }) => {
    const end =
      until === undefined ? (minutes === undefined ? '' : ` for ${minutes} minutes`) : ` until ${time(until)}`;
    return `${locationId} is paused${end}; its orders wait`;
  },
  command: {
    name: 'location pause',
    about:
      'pause a location: its orders wait. The pause does not count towards their deadline. Webhooks are still accepted',
    options: pauseTime.options,
    examples: ['expediter location pause club-1', 'expediter location pause club-1 --for 30m --reason "Oven broken"'],
    read: pauseTime.read,
  },
});

const resume = operation({
  id: 'resumeLocation',
  access: { role: 'operator', of: 'location', does: 'resume' },
  api: {
    route: 'POST /locations/:locationId/resume',
    summary: 'Resume a paused location: its orders continue',
    description:
      'The waiting orders are tried immediately. If the POS paused the location, this also ends that pause ' +
      '(docs/order-life.md#a-paused-location).',
    output: PausedLocation,
    answer: 'The state of the location, even if it did not change.',
  },
  params: LocationParams,
  wakes: true,
  async run(caller, { locationId }) {
    if (!(await resumeLocation(caller.pool, locationId))) return undefined;
    await settleKitchen(caller, locationId);
    return { locationId, paused: false };
  },
  print: (_, { locationId }) => `${locationId} takes orders`,
  command: {
    name: 'location resume',
    about: 'resume a location that an operator or its POS paused. Its orders continue',
    examples: ['expediter location resume club-1'],
  },
});

const test = operation({
  id: 'testContacts',
  access: { role: 'integrator', of: 'location', does: 'test contacts' },
  api: {
    route: 'POST /locations/:locationId/contacts/test',
    summary: 'Send a test message to the contacts of a location',
    description:
      'Each contact with `via` gets one. It takes up to 30 s. A location can be tested once a minute, and a caller can ' +
      `for ${TESTS_A_DAY} tests a day.`,
    output: TestedContacts,
    answer: 'To whom it was sent. Empty if no contact is told about orders.',
    refuses: [409],
  },
  params: LocationParams,
  reads: NOTIFY,
  async run({ pool, by, ways, stopped }, { locationId }) {
    const refused = await refuseTest(pool, by, locationId);
    if (refused !== undefined) return { refused };
    return unlessDrained(testContacts(pool, ways, locationId), stopped);
  },
  fails: ({ contacts: tested }) => tested.some(({ problem }) => problem !== null),
  print: ({ contacts: tested }) =>
    tested.length === 0
      ? 'No contact of this location has `via`, so nobody is told about its orders.'
      : tested.map((each) => `${each.contact ?? 'A contact'}, by ${each.via}: ${each.problem ?? 'sent'}`).join('\n'),
  command: {
    name: 'location notify-test',
    about: 'send a test message to each contact of a location that is told about orders. Exits 1 if one was not sent',
    examples: ['expediter location notify-test club-1'],
  },
});

const remove = operation({
  id: 'removeLocation',
  access: { role: 'integrator', of: 'location', does: 'remove' },
  api: {
    route: 'DELETE /locations/:locationId',
    summary: 'Remove a location with its settings and tokens',
    description:
      'The location must be paused, and all its orders must have ended. No access that an owner granted by a connect link ' +
      'may wait to be confirmed. Its orders and webhooks stay stored. After five seconds its webhooks are answered 401. It also loses all roles that name it, which needs the role admin there.',
    output: z.object({ locationId: z.string(), removed: z.literal(true), tokens: z.int() }),
    answer: 'It is removed.',
    refuses: [409, 412],
  },
  takes: ['ifMatch'],
  params: LocationParams,
  query: z.strictObject({
    dryRun,
    unpaused: whether('Also remove a location that is not paused.').optional(),
  }),
  async run({ pool, headers, service, hasAt }, { locationId, ...options }) {
    const rights = { namesOrders: hasAt('viewer', locationId), mayRevoke: hasAt('admin', locationId) };
    const removed = await removeLocation(pool, locationId, { ...headers, ...options, ...rights });
    if (removed === undefined || 'refused' in removed) return removed;
    service?.identify.invalidateCache();
    return { locationId, removed: true as const, ...removed };
  },
  print: ({ locationId, tokens }, { dryRun: isDry }) =>
    isDry === true
      ? `${locationId} would be removed, with ${tokens} tokens`
      : `${locationId} is removed, with ${tokens} tokens; no token works after five seconds`,
  command: {
    name: 'location remove',
    about: 'remove a paused location with its settings and tokens. Its orders and webhooks stay stored',
    options: [
      { flags: '--unpaused', about: 'also if it is not paused' },
      { flags: '--dry-run', about: 'change nothing, and print whether it can be removed' },
    ],
    cannot: 'cannot be removed',
    more: `
All orders of the location must have ended, and no access that an owner granted by a connect link may wait to be confirmed.
Otherwise this prints the reason and exits 1.
After five seconds its webhooks are answered 401. "order show" and "webhook show" still show its history.
New orders of the platform for this location are held until "location put" configures it again. The location then has
its old history again, but needs new tokens. Access tokens that the POS granted may be shared with other locations, so
they stay stored, encrypted, until 90 days after their last renewal. Revoke them at the POS.
`,
    examples: ['expediter location pause club-2', 'expediter location remove club-2'],
  },
});

/** The operations that `apply` and `export` consist of. */
export const LOCATIONS = { put, list, show, remove };

export const LOCATION_OPERATIONS: readonly Operation[] = [
  put,
  change,
  list,
  show,
  check,
  connect,
  pause,
  resume,
  test,
  remove,
];

export async function readSettings(source: string): Promise<unknown> {
  if (/^\s*[{[]/.test(source)) {
    throw new NotDone(
      400,
      '--settings takes a file, or - for standard input. Never type settings: other users of the machine see arguments.',
    );
  }
  return readJson('--settings', source, ' See: expediter provider schema <integration>');
}
