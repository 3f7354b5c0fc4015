import { z } from 'zod';
import { table, time } from '../cli/print.ts';
import { Id } from '../core/domain/order.ts';
import { CheckedLocation, checkLocation } from '../core/locations/check-location.ts';
import { ListedLocations, listSeenLocations } from '../core/locations/list-locations.ts';
import {
  PausedLocation,
  WrongLocation,
  pauseLocation,
  resumeLocation,
  type LocationRow,
} from '../core/locations/locations.ts';
import { removeLocation } from '../core/locations/remove-location.ts';
import { ShownLocation, showLocation } from '../core/locations/show-location.ts';
import { RevokedToken, listTokens, revokeToken } from '../core/locations/webhook-tokens.ts';
import { SETTINGS, operation, type Operation } from './operation.ts';
import { EXAMPLE_ID, idOf } from './requests.ts';

const tag = 'Locations';
const argument = { flags: '<id>', about: 'its id on the ordering platform', field: 'locationId' };
/** Time for all calls to its POS together: an operator waits. */
const CHECK_MS = 8_000;

const LocationParams = z.strictObject({
  locationId: Id.meta({ description: 'Its id on the ordering platform, percent-encoded.', examples: ['club-1'] }),
});
const TokenParams = LocationParams.extend({ tokenId: idOf('token') });

const list = operation({
  id: 'listLocations',
  role: 'viewer',
  of: 'list',
  api: {
    tag,
    route: 'GET /locations',
    summary: 'All your locations',
    description: 'Nothing of their settings.',
    output: ListedLocations,
    answer: 'All of them.',
  },
  async run({ pool, within }) {
    const rows = await listSeenLocations(pool, within());
    return { locations: rows.map((row) => ({ ...row, paused: row.pausedAt !== null })) };
  },
  print: ({ locations }) =>
    table(
      locations.map((row) => ({
        location: row.locationId,
        integration: row.integration,
        paused: pausedInWords(row),
        updated: row.updatedAt,
      })),
      'no locations yet; see: expediter location put --help',
    ),
  command: {
    name: 'location list',
    about: 'all locations',
    examples: ['expediter location list', 'expediter location list --json'],
    rows: 'locations',
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
    description: 'Nothing of its settings, and of a token no more than its id.',
    output: ShownLocation,
    answer: 'The location.',
  },
  params: LocationParams,
  reads: SETTINGS,
  run: async ({ pool, settings, service }, { locationId }) =>
    service && showLocation({ ...settings, pool, now: service.now }, locationId),
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
    description: 'Changes nothing at the POS, and takes up to 8 s. Also of a paused location.',
    output: CheckedLocation,
    answer: 'What the POS says.',
  },
  params: LocationParams,
  reads: SETTINGS,
  async run({ pool, settings, service, note }, { locationId }) {
    if (service === undefined) return undefined;
    const { closing } = service;
    const stopped = Promise.withResolvers<never>();
    // A drain has no time for a POS.
    const stop = (): void => stopped.reject(Object.assign(new Error('stops; ask again'), { statusCode: 503 }));
    closing.addEventListener('abort', stop);
    if (closing.aborted) stop();
    try {
      const checking = checkLocation({ ...service, pool, open: settings.open }, locationId, CHECK_MS);
      const checked = await Promise.race([checking, stopped.promise]);
      note(checked.state);
      return checked;
    } catch (error) {
      if (error instanceof WrongLocation) return undefined;
      throw error;
    } finally {
      closing.removeEventListener('abort', stop);
    }
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
    summary: "Let a location's orders wait",
    description: 'Nothing is lost, and the time does not count towards their deadline. Webhooks are taken as ever.',
    output: PausedLocation,
    answer: 'It is so; also where it was already.',
  },
  params: LocationParams,
  run: async ({ pool }, { locationId }) =>
    (await pauseLocation(pool, locationId)) ? { locationId, paused: true } : undefined,
  print: (_, { locationId }) => `${locationId} is paused; its orders wait`,
  command: {
    name: 'location pause',
    about: 'let orders for a location wait; the time does not count towards their deadline',
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
    summary: "Let a paused location's orders go on",
    description: 'They are tried at once.',
    output: PausedLocation,
    answer: 'It is so; also where it was already.',
  },
  params: LocationParams,
  wakes: true,
  run: async ({ pool }, { locationId }) =>
    (await resumeLocation(pool, locationId)) ? { locationId, paused: false } : undefined,
  print: (_, { locationId }) => `${locationId} takes orders`,
  command: {
    name: 'location resume',
    about: 'let the orders of a paused location go on',
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
    `${locationId} is removed, with ${tokens} tokens; they open nothing from five seconds on`,
  command: {
    name: 'location remove',
    about: 'forget a paused location with its settings and tokens; its orders and webhooks stay',
    argument,
    cannot: 'cannot be removed',
    more: `
It has to be paused, and all its orders must have ended; otherwise this says what stands in the way and exits 1.
Five seconds later its webhooks are answered 401. "order show" and "webhook show" go on to show what was.
Orders that the platform still signals for it are held until it is configured anew, which "location put" does as for
any other: with new tokens, and with the history of the same id.
`,
    examples: ['expediter location pause club-1 && expediter location remove club-1'],
  },
});

const revoke = operation({
  id: 'revokeToken',
  role: 'admin',
  of: 'location',
  does: 'revoke',
  missing: 'the location has no such token',
  api: {
    tag,
    route: 'POST /locations/:locationId/tokens/:tokenId/revoke',
    summary: 'Shut a token out, within five seconds',
    description: 'For good; also where it was already.',
    output: RevokedToken,
    answer: 'It opens nothing any more.',
  },
  params: TokenParams,
  run: async ({ pool }, { locationId, tokenId }) =>
    (await revokeToken(pool, tokenId, locationId)) ? { tokenId, revoked: true as const } : undefined,
  print: ({ tokenId }) => `${tokenId} is revoked; it opens nothing from five seconds on`,
  command: {
    name: 'token revoke',
    about: 'shut a token out, within five seconds',
    argument: { flags: '<tokenId>', about: 'see: expediter token list', field: 'tokenId' },
    examples: [`expediter token revoke ${EXAMPLE_ID}`],
    async complete(pool, { tokenId }) {
      const known = (await listTokens(pool, undefined)).find((each) => each.tokenId === tokenId);
      return known === undefined
        ? 'no token has this id; see: expediter token list'
        : { tokenId, locationId: known.locationId };
    },
  },
});

export const LOCATION_OPERATIONS: readonly Operation[] = [list, show, check, pause, resume, remove];
export const TOKEN_OPERATIONS: readonly Operation[] = [revoke];

export function pausedInWords({ pausedAt, pausedUntil }: Pick<LocationRow, 'pausedAt' | 'pausedUntil'>): string {
  if (pausedAt === null) return 'no';
  const byPos = pausedUntil === null ? '' : `, by its POS until ${time(pausedUntil)}`;
  return `since ${time(pausedAt)}${byPos}`;
}
