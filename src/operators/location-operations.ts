import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Pool } from 'pg';
import { z } from 'zod';
import { Id } from '../core/domain/order.ts';
import { CheckedLocation, checkLocation } from '../core/locations/check-location.ts';
import { connectLocation } from '../core/locations/connect-location.ts';
import {
  PausedLocation,
  WrongLocation,
  findLocation,
  pauseLocation,
  putLocation,
  resumeLocation,
  type OpenSettings,
} from '../core/locations/locations.ts';
import { removeLocation } from '../core/locations/remove-location.ts';
import { ListedLocations, ShownLocation, listSeenLocations, showLocation } from '../core/locations/show-location.ts';
import { listTokens, stateOfToken, type TokenRow } from '../core/locations/webhook-tokens.ts';
import { describeCheck } from '../diagnostics/print-checks.ts';
import { locationInWords, locationsTable, type SettingsShown } from './location-text.ts';
import { NotDone, POS, SETTINGS, operation, type Operation } from './operation.ts';
import { LocationParams } from './requests.ts';

const tag = 'Locations';
const argument = { flags: '<id>', about: 'its id on the ordering platform', field: 'locationId' };
/** Time for all calls to the POS together, since an operator waits. */
const CHECK_MS = 8_000;

const list = operation({
  id: 'listLocations',
  role: 'viewer',
  of: 'list',
  api: {
    tag,
    route: 'GET /locations',
    summary: 'All locations that you may see',
    description: 'Without their settings.',
    output: ListedLocations,
    answer: 'All of them.',
  },
  async run({ pool, within }) {
    const rows = await listSeenLocations(pool, within());
    return { locations: rows.map((row) => ({ ...row, paused: row.pausedAt !== null })) };
  },
  print: ({ locations }) => locationsTable(locations),
  command: {
    name: 'location list',
    about: 'all locations',
    examples: ['expediter location list'],
    rows: 'locations',
  },
});

const put = operation({
  id: 'putLocation',
  role: 'admin',
  of: 'all',
  does: 'put',
  body: z.strictObject({
    locationId: Id,
    integration: z.string(),
    settings: z.unknown(),
    country: z.string().toUpperCase().optional(),
  }),
  reads: POS,
  wakes: true,
  about: async ({ pool }, { locationId }) => ({
    locationId,
    before: (await findLocation(pool, locationId))?.integration,
  }),
  async run(
    { pool, settings: { registry, keys, publicUrl }, pos, note },
    { locationId, integration, settings, country },
  ) {
    // Imported here, since no other operation needs its tables.
    const { isSupportedCountry } = await import('libphonenumber-js/min');
    if (country !== undefined && !isSupportedCountry(country)) {
      throw new NotDone(400, 'country: must be an ISO 3166-1 code such as DE');
    }
    const rules = { registry, keys, publicUrl: publicUrl || undefined, allowedHosts: pos.allowedHosts };
    await putLocation(pool, rules, { locationId, integration, settings, country });
    note(integration);
    const tokens = await listTokens(pool, locationId);
    const isValid = (token: TokenRow): boolean => stateOfToken(token, integration, new Date()) === 'valid';
    return { locationId, integration, validTokens: tokens.filter(isValid).length };
  },
  print({ locationId, integration, validTokens }) {
    const next = validTokens > 0 ? '' : `. For its webhooks, run: expediter token issue --location ${locationId}`;
    return `${locationId} is served by ${integration}${next}`;
  },
  command: {
    name: 'location put',
    about:
      'configure a location; its previous settings are replaced as a whole, and orders held for it are tried at once',
    options: [
      { flags: '--location <id>', about: 'its id on the ordering platform', required: true },
      { flags: '--integration <name>', about: 'see: expediter provider list', required: true },
      {
        flags: '--settings <file>',
        about: 'a file of JSON, or - for standard input; see: expediter provider schema',
        required: true,
      },
      {
        flags: '--country <code>',
        about: 'such as DE, to read telephone numbers in national form; without it the stored country stays',
      },
    ],
    more: `
Settings are encrypted, and never printed. A URL in them with http or a private address is refused, unless
ALLOW_PRIVATE_HOSTS names its host (docs/deploy.md#where-pos-systems-may-be).
`,
    examples: [
      'expediter location put --location club-1 --integration standard --settings club-1.json',
      'expediter location put --location club-2 --integration standard --settings - < club-1.json',
    ],
    read: async ({ location, integration, settings, country }) => ({
      locationId: location,
      integration,
      settings: await readSettings(String(settings)),
      country,
    }),
  },
});

const show = operation({
  id: 'showLocation',
  role: 'viewer',
  of: 'location',
  api: {
    tag,
    route: 'GET /locations/:locationId',
    summary: 'One location with its tokens',
    description: 'Without its settings, and of each token only its id.',
    output: ShownLocation,
    answer: 'The location.',
  },
  params: LocationParams,
  reads: SETTINGS,
  async run({ pool, settings, service }, { locationId }) {
    const shown = await showLocation({ ...settings, pool, now: service?.now ?? (() => new Date()) }, locationId);
    if (shown === undefined || service !== undefined) return shown;
    const validTokens = shown.tokens.filter(({ state }) => state === 'valid').length;
    const fields = await settingsFields(pool, settings.open, locationId);
    return { ...shown, paused: shown.pausedAt !== null, validTokens, settings: fields };
  },
  print: (shown) => ('settings' in shown ? locationInWords(shown) : ''),
  command: {
    name: 'location show',
    about:
      'one location: integration, state, valid tokens, names of its settings without their values, and what operators did',
    argument,
    more: `
It also says whether its POS calls with an old token (docs/webhooks.md#an-old-token), and which command fixes that. If its
POS grants access for a limited time, it says when that was last renewed and how many days it lasts without renewal.
`,
    examples: ['expediter location show club-1'],
  },
});

const check = operation({
  id: 'checkLocation',
  role: 'operator',
  of: 'location',
  does: 'check',
  api: {
    tag,
    route: 'POST /locations/:locationId/check',
    summary: "Ask a location's POS whether its settings are right",
    description: 'Changes nothing at the POS, and takes up to 8 s. A paused location can be checked as well.',
    output: CheckedLocation,
    answer: 'The answer of the POS.',
  },
  params: LocationParams,
  reads: POS,
  async run({ pos, service, note }, { locationId }) {
    const checking = checkLocation(pos, locationId, CHECK_MS);
    const checked = await (service === undefined ? checking : unlessDrained(checking, service.closing));
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
    about: "ask a location's POS whether its settings work; nothing is changed there. Exits 1 if they do not",
    argument,
    more: `
If the POS says so, it also shows whether the tills take orders now. The page of each integration says what the check proves,
and what only the first order shows.
`,
    examples: ['expediter provider check club-1'],
  },
});

const connect = operation({
  id: 'connectLocation',
  role: 'admin',
  of: 'location',
  does: 'connect',
  params: LocationParams,
  reads: POS,
  async run({ pool, settings: { registry, keys, publicUrl }, pos }, { locationId }) {
    if (publicUrl === '') {
      throw new NotDone(
        400,
        'PUBLIC_URL is not set, so no POS can call this service. Example: https://expediter.example.com',
      );
    }
    const rules = { registry, keys, publicUrl };
    return { locationId, ...(await connectLocation({ ...pos, pool, rules }, locationId)) };
  },
  print: ({ done, todo }) =>
    [...done, ...(todo.length > 0 ? ['Left to do:'] : []), ...todo.map((step) => `- ${step}`)].join('\n'),
  command: {
    name: 'provider connect',
    about:
      "make a location's POS call our webhook, with a new token: registers it where the POS's API allows it, " +
      'and says what is left to do by hand. Earlier tokens stay valid until they are revoked',
    argument,
    more: `
Needs PUBLIC_URL. For HubRise and Square, with the application's id and secret in the settings and no token, it prints the
page where the restaurant agrees. Put the code from that page into the settings as authorizationCode and run the command
again: the token replaces the code in the settings. From then on the settings hold a token that your file lacks: before you
put the file again, add the code of a new authorisation.
`,
    examples: ['expediter provider connect club-1'],
  },
});

const pause = operation({
  id: 'pauseLocation',
  role: 'operator',
  of: 'location',
  does: 'pause',
  api: {
    tag,
    route: 'POST /locations/:locationId/pause',
    summary: 'Pause a location: its orders wait',
    description: 'No order is lost, and the pause does not count towards the deadline. Webhooks are still accepted.',
    output: PausedLocation,
    answer: 'The state of the location, also if it was the same before.',
  },
  params: LocationParams,
  run: async ({ pool }, { locationId }) =>
    (await pauseLocation(pool, locationId)) ? { locationId, paused: true } : undefined,
  print: (_, { locationId }) => `${locationId} is paused; its orders wait`,
  command: {
    name: 'location pause',
    about:
      'let orders for a location wait; the pause does not count towards their deadline, and webhooks are still accepted',
    argument,
    examples: ['expediter location pause club-1'],
  },
});

const resume = operation({
  id: 'resumeLocation',
  role: 'operator',
  of: 'location',
  does: 'resume',
  api: {
    tag,
    route: 'POST /locations/:locationId/resume',
    summary: 'Resume a paused location: its orders go on',
    description: 'They are tried at once. A pause by the POS ends as well (docs/order-life.md#a-paused-location).',
    output: PausedLocation,
    answer: 'The state of the location, also if it was the same before.',
  },
  params: LocationParams,
  wakes: true,
  run: async ({ pool }, { locationId }) =>
    (await resumeLocation(pool, locationId)) ? { locationId, paused: false } : undefined,
  print: (_, { locationId }) => `${locationId} takes orders`,
  command: {
    name: 'location resume',
    about: 'let the orders of a paused location go on, also if its POS paused it',
    argument,
    examples: ['expediter location resume club-1'],
  },
});

const remove = operation({
  id: 'removeLocation',
  role: 'admin',
  of: 'location',
  does: 'remove',
  params: LocationParams,
  async run({ pool }, { locationId }) {
    const removed = await removeLocation(pool, locationId);
    if (removed === undefined || 'refused' in removed) return removed;
    return { locationId, removed: true, ...removed };
  },
  print: ({ locationId, tokens }) =>
    `${locationId} is removed, with ${tokens} tokens; no token works after five seconds`,
  command: {
    name: 'location remove',
    about: 'remove a paused location with its settings and tokens; its orders and webhooks stay',
    argument,
    cannot: 'cannot be removed',
    more: `
It must be paused, and all its orders must have ended; otherwise this says what prevents it and exits 1.
Five seconds later its webhooks are answered 401. "order show" and "webhook show" still show its history.
Orders that the platform still signals for it are held until "location put" configures it again, with new tokens and with
the history of the same id. Access tokens that its POS granted may be shared with other locations, so they stay stored and
encrypted until 90 days after their last renewal: revoke them at the POS.
`,
    examples: ['expediter location pause club-2', 'expediter location remove club-2'],
  },
});

export const LOCATION_OPERATIONS: readonly Operation[] = [put, list, show, check, connect, pause, resume, remove];

async function unlessDrained<Result>(work: Promise<Result>, closing: AbortSignal): Promise<Result> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void =>
    stopped.reject(Object.assign(new Error('This process is stopping. Try again.'), { statusCode: 503 }));
  closing.addEventListener('abort', stop);
  if (closing.aborted) stop();
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    closing.removeEventListener('abort', stop);
  }
}

async function settingsFields(pool: Pool, open: OpenSettings, locationId: string): Promise<SettingsShown['settings']> {
  try {
    const found = await findLocation(pool, locationId);
    const opened = found && (await open(found));
    return { fields: Object.keys(opened?.settings ?? {}) };
  } catch (error) {
    if (error instanceof WrongLocation) return { fields: [], problem: error.message };
    throw error;
  }
}

/** Reads settings for a command. No message quotes them, since they hold credentials. */
async function readSettings(source: string): Promise<unknown> {
  if (/^\s*[{[]/.test(source)) {
    throw new NotDone(
      400,
      '--settings takes a file, or - for standard input, and never the settings: all users of a machine see its arguments.',
    );
  }
  let json: string;
  try {
    json = source === '-' ? await text(process.stdin) : await readFile(source, 'utf8');
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new NotDone(400, `--settings: the file cannot be read (${code}).`);
  }
  try {
    return JSON.parse(json);
  } catch {
    throw new NotDone(400, '--settings: this is not valid JSON. See: expediter provider schema <integration>');
  }
}
