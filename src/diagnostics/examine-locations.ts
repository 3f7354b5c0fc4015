import type { Pool } from 'pg';
import { WrongEnvironment, readConfigOf } from '../config/config.ts';
import { inTurns } from '../core/domain/in-turns.ts';
import { helpWith } from '../core/domain/explain-cause.ts';
import { describeIssues } from '../core/domain/order.ts';
import { inOneLine } from '../core/domain/remedy.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { adoptApplications } from '../core/locations/applications.ts';
import { checkLocation, type CheckedLocation, type LocationDeps } from '../core/locations/check-location.ts';
import { keysInUse } from '../core/locations/settings-key.ts';
import { locationDeps } from '../core/locations/location-deps.ts';
import { getLocation, listLocations, newSettingsOf, type LocationRow } from '../core/locations/locations.ts';
import { listTokens, stateOfToken, type TokenRow } from '../core/locations/webhook-tokens.ts';
import { loadProviders } from '../providers/index.ts';
import { failed, ok, skipped, warning, type Check } from './check.ts';

const KEYS = 'SETTINGS_KEY';
const AT_A_TIME = 8;
const CHECK_MS = 5_000;
/** Time for all locations. A location that was not checked within this time is reported as skipped. */
const GIVE_UP_MS = 20_000;
const EXPIRES_SOON_MS = 14 * 86_400_000;

/** Checks that every location reaches its POS, and that its POS can reach us. */
export async function examineLocations(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
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
  const rules = { registry, keys: SETTINGS_KEY, publicUrl: PUBLIC_URL };
  const deps = await locationDeps(pool, rules, allowedHosts);
  const locations = await listLocations(pool);
  const tokens = await listTokens(pool, undefined);
  if (locations.length === 0) return [warning('any', 'there are no locations', 'expediter location put --help')];

  const checks = await inTurns(AT_A_TIME, locations, async (location) => {
    const { locationId } = location;
    if (performance.now() >= giveUpAt)
      return [skipped(locationId, 'there was no time left. Run: expediter doctor --only locations')];
    const own = tokens.filter((token) => token.locationId === locationId);
    return [
      judgeReach(await checkLocation(deps, locationId, CHECK_MS), pausedInWords(location)),
      ...(await outdated(deps, location)),
      assessTokens(location, own, deps.now()),
    ];
  });
  const own = (await adoptApplications(pool, { ...rules, allowedHosts }, true)).flatMap((each) => each.locations);
  const says = `has the platform's id and secret in the settings of ${own.join(', ')}: the next major version refuses that`;
  return [...checks.flat(), ...(own.length > 0 ? [warning('any', says, 'expediter application adopt')] : [])];
}

/**
 * Judges the result of a location's check.
 * @param paused describes the location's pause, if any. A paused location gets no orders, so a failure is a warning
 */
export function judgeReach(checked: CheckedLocation, paused?: string): Check {
  const { locationId } = checked;
  if (checked.state === 'ok') {
    const now = checked.now === undefined ? '' : `; ${checked.now}`;
    return ok(locationId, `reaches its POS${paused === undefined ? '' : `, and is ${paused}`}${now}`);
  }
  if (checked.state === 'unchecked') return ok(locationId, `was not tried: ${checked.detail}`);
  if (paused === undefined) return failed(locationId, checked.problem, checked.toDo);
  return warning(locationId, `is ${paused}: ${checked.problem}`, checked.toDo);
}

function pausedInWords({ pausedAt, pausedUntil, pausedBy }: LocationRow): string | undefined {
  if (pausedAt === null) return undefined;
  if (pausedUntil === null) return 'paused';
  return `paused${pausedBy === null ? ' by its POS' : ''} until ${pausedUntil.toISOString()}`;
}

/** Warns about settings that were stored before a requirement was added. The service still accepts them. */
async function outdated({ pool, decryptSettings }: LocationDeps, { locationId, integration }: LocationRow) {
  const opened = await decryptSettings(await getLocation(pool, locationId)).catch(() => undefined);
  const error = opened && newSettingsOf(opened.provider).safeParse(opened.settings).error;
  if (error === undefined) return [];
  const cause = { code: 'wrong_settings', issues: shapeIssues(error) };
  const toDo = inOneLine(helpWith(cause, { locationId, integration }));
  return [warning(locationId, `its settings would be refused today: ${describeIssues(error)}`, toDo)];
}

function assessTokens({ locationId, integration }: LocationRow, tokens: readonly TokenRow[], now: Date): Check {
  const issue = `expediter token issue --location ${locationId}, and give its URL to the POS`;
  const valid = tokens.filter((token) => stateOfToken(token, integration, now) === 'valid');
  if (valid.length === 0) return failed(locationId, 'has no valid token: its webhooks are answered 401', issue);
  const lasts = valid.some(({ expiresAt }) => expiresAt === null || +expiresAt - +now > EXPIRES_SOON_MS);
  if (lasts) return ok(locationId, `valid tokens: ${valid.length}`);
  const last = new Date(Math.max(...valid.map(({ expiresAt }) => Number(expiresAt))));
  return warning(locationId, `its last token expires on ${last.toISOString().slice(0, 10)}`, issue);
}

/** Checks which keys of SETTINGS_KEY are still needed, and which needed keys are missing. */
export async function examineKeys(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const { SETTINGS_KEY } = readConfigOf(env, 'SETTINGS_KEY');
  const [first = '', ...older] = SETTINGS_KEY.keys();
  const used = await keysInUse(pool);
  const textsUnder = (id: string): number => used.get(id) ?? 0;
  const missing = [...used.keys()].filter((id) => !SETTINGS_KEY.has(id));
  return [
    ok(KEYS, `texts encrypted with the first key "${first}": ${textsUnder(first)}`),
    ...older.map((id) =>
      textsUnder(id) === 0
        ? warning(
            KEYS,
            `nothing is encrypted with the older key "${id}"`,
            'remove the key when every process has the first key',
          )
        : warning(
            KEYS,
            `texts encrypted with the older key "${id}": ${textsUnder(id)}`,
            'run expediter rekey, then remove the key',
          ),
    ),
    ...missing.map((id) =>
      failed(
        KEYS,
        `texts encrypted with the missing key "${id}": ${textsUnder(id)}`,
        'add the key, then run expediter rekey',
      ),
    ),
  ];
}
