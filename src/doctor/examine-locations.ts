import type { Pool } from 'pg';
import { WrongEnvironment, readConfigOf } from '../config.ts';
import { guardedFetch } from '../core/egress/guarded-fetch.ts';
import { checkLocation } from '../core/locations/check-location.ts';
import { describeIssues } from '../core/domain/order.ts';
import { databaseClock } from '../core/postgres/database-clock.ts';
import { credentialStore } from '../core/locations/credential-store.ts';
import {
  getLocation,
  listLocations,
  newSettingsOf,
  settingsOpener,
  type LocationRow,
} from '../core/locations/locations.ts';
import { listTokens, stateOfToken, type TokenRow } from '../core/locations/webhook-tokens.ts';
import { loadProviders } from '../providers/index.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed, skipped } = reporterOf('locations');

const AT_A_TIME = 8;
const CHECK_MS = 5_000;
/** Time for all locations. Those left then are reported as skipped. */
const GIVE_UP_MS = 20_000;
const EXPIRES_SOON_MS = 14 * 86_400_000;

/** Checks that every location reaches its POS, and that its POS can reach us. */
export async function examineLocations(env: NodeJS.ProcessEnv, pool: Pool): Promise<Finding[]> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  const {
    SETTINGS_KEY,
    PUBLIC_URL,
    PROVIDER_MODULES,
    ALLOW_PRIVATE_HOSTS: allowedHosts,
  } = readConfigOf(env, 'SETTINGS_KEY', 'PUBLIC_URL', 'PROVIDER_MODULES', 'ALLOW_PRIVATE_HOSTS');
  const registry = await loadProviders(PROVIDER_MODULES).catch(() => {
    throw new WrongEnvironment('\n  PROVIDER_MODULES: cannot be loaded. Example: @my-club/expediter-provider-acme');
  });
  const open = settingsOpener({ registry, keys: SETTINGS_KEY, publicUrl: PUBLIC_URL });
  const clock = databaseClock(pool);
  await clock.follow();
  const credentialsFor = credentialStore(pool, SETTINGS_KEY);
  const posFetch = guardedFetch(allowedHosts);
  const deps = { pool, open, credentialsFor, posFetch, allowedHosts, now: clock.now };
  const locations = await listLocations(pool);
  const tokens = await listTokens(pool, undefined);
  if (locations.length === 0) return [warning('any', 'there are none', 'expediter location put --help')];

  const findings: Finding[][] = [];
  const next = locations.entries();
  const work = async (): Promise<void> => {
    for (const [index, location] of next) {
      const own = tokens.filter((token) => token.locationId === location.locationId);
      findings[index] =
        performance.now() < giveUpAt
          ? [
              await reached(deps, location),
              ...(await outdated(deps, location)),
              assessTokens(location, own, clock.now()),
            ]
          : [skipped(location.locationId, 'no time was left for it: expediter doctor --only locations')];
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return findings.flat();
}

async function reached(deps: Parameters<typeof checkLocation>[0], location: LocationRow): Promise<Finding> {
  const { locationId, pausedAt } = location;
  const paused = pausedInWords(location);
  const checked = await checkLocation(deps, locationId, CHECK_MS);
  if (checked.state === 'ok') {
    const now = checked.now === undefined ? '' : `; ${checked.now}`;
    return ok(locationId, `reaches its POS${pausedAt === null ? '' : `, and is ${paused}`}${now}`);
  }
  if (checked.state === 'unchecked') return ok(locationId, `was not tried: ${checked.why}`);
  // Nothing is sent to a paused location.
  return pausedAt === null
    ? failed(locationId, checked.problem, checked.toDo)
    : warning(locationId, `is ${paused}: ${checked.problem}`, checked.toDo);
}

const pausedInWords = ({ pausedUntil }: LocationRow): string =>
  pausedUntil === null ? 'paused' : `paused by its POS until ${pausedUntil.toISOString()}`;

/** Settings from before something more was demanded of them. They go on, so somebody has to be told. */
async function outdated({ pool, open }: Parameters<typeof checkLocation>[0], { locationId }: LocationRow) {
  const opened = await open(await getLocation(pool, locationId)).catch(() => undefined);
  const error = opened && newSettingsOf(opened.provider).safeParse(opened.settings).error;
  const toDo = `put them anew: expediter location put --location ${locationId}`;
  return error ? [warning(locationId, `its settings would not be taken today: ${describeIssues(error)}`, toDo)] : [];
}

function assessTokens({ locationId, integration }: LocationRow, tokens: readonly TokenRow[], now: Date): Finding {
  const issue = `expediter token issue --location ${locationId}, and give its URL to the POS`;
  const valid = tokens.filter((token) => stateOfToken(token, integration, now) === 'valid');
  if (valid.length === 0) return failed(locationId, 'has no valid token: its webhooks are answered 401', issue);
  const lasts = valid.some(({ expiresAt }) => expiresAt === null || +expiresAt - +now > EXPIRES_SOON_MS);
  if (lasts) return ok(locationId, `valid tokens: ${valid.length}`);
  const last = new Date(Math.max(...valid.map(({ expiresAt }) => Number(expiresAt))));
  return warning(locationId, `its last token expires on ${last.toISOString().slice(0, 10)}`, issue);
}
