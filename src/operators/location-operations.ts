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
  type DecryptSettings,
} from '../core/locations/locations.ts';
import { removeLocation } from '../core/locations/remove-location.ts';
import { ListedLocations, ShownLocation, listSeenLocations, showLocation } from '../core/locations/show-location.ts';
import { listTokens, stateOfToken, type TokenRow } from '../core/locations/webhook-tokens.ts';
import { describeCheck } from '../diagnostics/print-checks.ts';
import { locationInWords, locationsTable, type SettingsShown } from './location-text.ts';
import { NotDone, POS, SETTINGS, operation, type Operation } from './operation.ts';
import { LocationParams } from './requests.ts';

const tag = 'Locations';
const argument = { flags: '<id>', about: "the location's id on the platform", field: 'locationId' };
/** Limit for all calls to the POS together. It is short, because an operator waits for the result. */
const CHECK_MS = 8_000;

const list = operation({
  id: 'listLocations',
  role: 'viewer',
  of: 'list',
  api: {
    tag,
    route: 'GET /locations',
    summary: 'All locations that you may see',
    description: 'The settings are left out.',
    output: ListedLocations,
    answer: 'The locations.',
  },
  async run({ pool, within }) {
    const rows = await listSeenLocations(pool, within());
    return { locations: rows.map((row) => ({ ...row, paused: row.pausedAt !== null })) };
  },
  print: ({ locations }) => locationsTable(locations),
  command: {
    name: 'location list',
    about: 'list all locations',
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
    // Imported here, because no other operation needs this library's tables.
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
    about: 'configure a location. All its previous settings are replaced, and its held orders are tried immediately',
    options: [
      { flags: '--location <id>', about: "the location's id on the platform", required: true },
      { flags: '--integration <name>', about: 'see: expediter provider list', required: true },
      {
        flags: '--settings <file>',
        about: 'a JSON file, or - for standard input; see: expediter provider schema',
        required: true,
      },
      {
        flags: '--country <code>',
        about: 'the country of telephone numbers in national form, such as DE. By default the stored country stays',
      },
    ],
    more: `
Settings are stored encrypted, and never printed. A URL in the settings with http or a private address is refused,
unless ALLOW_PRIVATE_HOSTS names its host (docs/deploy.md#where-pos-systems-may-be).
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
    description: 'The settings are left out, and a token is shown by its id only.',
    output: ShownLocation,
    answer: 'The location.',
  },
  params: LocationParams,
  reads: SETTINGS,
  async run({ pool, settings, service }, { locationId }) {
    const shown = await showLocation({ ...settings, pool, now: service?.now ?? (() => new Date()) }, locationId);
    if (shown === undefined || service !== undefined) return shown;
    const validTokens = shown.tokens.filter(({ state }) => state === 'valid').length;
    const fields = await settingsFields(pool, settings.decryptSettings, locationId);
    return { ...shown, paused: shown.pausedAt !== null, validTokens, settings: fields };
  },
  print: (shown) => ('settings' in shown ? locationInWords(shown) : ''),
  command: {
    name: 'location show',
    about:
      'show one location: integration, state, valid tokens, names of its settings without values, operator actions',
    argument,
    more: `
It also says whether the POS uses an old token (docs/webhooks.md#an-old-token), and which command fixes that. If the POS
grants access for a limited time, it says when the access was last renewed, and in how many days it ends otherwise.
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
    summary: "Check with a location's POS whether its settings work",
    description: 'The check changes nothing at the POS, and takes up to 8 s. A paused location can be checked too.',
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
    about: "check with a location's POS whether its settings work. Changes nothing there. Exits 1 if they do not work",
    argument,
    more: `
This also shows whether the tills take orders now, if the POS reports that.
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
      "connect a location's POS to our webhook with a new token. Registers the webhook if the POS's API allows it, " +
      'and says what is left to do by hand. Earlier tokens stay valid until they are revoked',
    argument,
    more: `
This needs PUBLIC_URL. For HubRise and Square: if the settings have the application's id and secret but no token, this
prints the URL of the page where the restaurant agrees. Put the code from that page into the settings as
authorizationCode, and run the command again. This replaces the code in the stored settings by a token, which your file
does not have. Before you put the file again, add the code of a new authorisation to it.
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
    description: 'No order is lost: the pause does not count towards the deadline. Webhooks are still accepted.',
    output: PausedLocation,
    answer: 'The state of the location, even if it did not change.',
  },
  params: LocationParams,
  run: async ({ pool }, { locationId }) =>
    (await pauseLocation(pool, locationId)) ? { locationId, paused: true } : undefined,
  print: (_, { locationId }) => `${locationId} is paused; its orders wait`,
  command: {
    name: 'location pause',
    about:
      'pause a location: its orders wait. The pause does not count towards their deadline. Webhooks are still accepted',
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
    summary: 'Resume a paused location: its orders continue',
    description:
      'The waiting orders are tried immediately. If the POS paused the location, this also ends that pause ' +
      '(docs/order-life.md#a-paused-location).',
    output: PausedLocation,
    answer: 'The state of the location, even if it did not change.',
  },
  params: LocationParams,
  wakes: true,
  run: async ({ pool }, { locationId }) =>
    (await resumeLocation(pool, locationId)) ? { locationId, paused: false } : undefined,
  print: (_, { locationId }) => `${locationId} takes orders`,
  command: {
    name: 'location resume',
    about: 'resume a location that an operator or its POS paused. Its orders continue',
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
    about: 'remove a paused location with its settings and tokens. Its orders and webhooks stay stored',
    argument,
    cannot: 'cannot be removed',
    more: `
The location must be paused, and all its orders must have ended. Otherwise this prints the reason and exits 1.
After five seconds its webhooks are answered 401. "order show" and "webhook show" still show its history.
New orders of the platform for this location are held until "location put" configures it again. The location then has
its old history again, but needs new tokens. Access tokens that the POS granted may be shared with other locations, so
they stay stored, encrypted, until 90 days after their last renewal. Revoke them at the POS.
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

async function settingsFields(
  pool: Pool,
  decryptSettings: DecryptSettings,
  locationId: string,
): Promise<SettingsShown['settings']> {
  try {
    const found = await findLocation(pool, locationId);
    const opened = found && (await decryptSettings(found));
    return { fields: Object.keys(opened?.settings ?? {}) };
  } catch (error) {
    if (error instanceof WrongLocation) return { fields: [], problem: error.message };
    throw error;
  }
}

/** Reads settings for a command. No error message quotes them, because they contain credentials. */
async function readSettings(source: string): Promise<unknown> {
  if (/^\s*[{[]/.test(source)) {
    throw new NotDone(
      400,
      '--settings takes a file, or - for standard input. Never type settings: other users of the machine see arguments.',
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
