import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { PoolClient } from 'pg';
import { labelOf } from '../domain/label-of.ts';
import type { Provider } from '../domain/provider.ts';
import { LOCK_TARGET } from '../postgres/transactions.ts';
import { aboutSetting, maySee } from './describe-settings.ts';
import { leavesOf, parseSettings, placeOfSettings, toHttpUrl, wrongSetting, type SettingsRules } from './locations.ts';
import { unseal } from './settings-key.ts';

type Settings = Readonly<Record<string, unknown>>;
/** Settings to be stored, and `used`: as the provider's schema returns them. `isScoped`: by an integrator of some locations. */
export type SettingsChange = {
  provider: Provider;
  used: unknown;
  before: Settings;
  after: Settings;
  isScoped: boolean;
};

/** The URLs that we call and the targets in used settings, by their path as JSON. */
function placesIn(provider: Provider, used: unknown): Map<string, { host: unknown; whole: unknown; isOfOne: boolean }> {
  const places: ReturnType<typeof placesIn> = new Map();
  // As JSON, because a schema may return objects such as URLs.
  for (const [path, value] of leavesOf(JSON.parse(JSON.stringify(used ?? {})))) {
    const { isUrl, target } = aboutSetting(provider, path);
    const url = toHttpUrl(value);
    if (path[0] === provider.webhookAuth?.urlSetting || !(url || isUrl || target)) continue;
    // A URL that cannot be read equals no other.
    const [host, whole] = url ? [url.origin, url.href] : isUrl ? [Symbol('host'), Symbol('url')] : ['', value];
    places.set(JSON.stringify(path), { host, whole, isOfOne: target === true });
  }
  return places;
}

const nameOf = (key: string): string => (JSON.parse(key) as string[]).join('.');

function usedSettings(rules: SettingsRules, { integration }: Provider, stored: unknown): unknown {
  try {
    return parseSettings(rules, integration, stored).settings;
  } catch {
    return undefined;
  }
}

/**
 * Refuses a patch, `given`, that may send stored secrets to another host or, if `isScoped`, use them for another restaurant.
 * @throws WrongLocation that names the secrets to give again
 */
export function refuseMove(rules: SettingsRules, change: SettingsChange, given: Settings): void {
  const { provider, used, before, after, isScoped } = change;
  const isKept = (name: string): boolean => Object.hasOwn(before, name) && !isDeepStrictEqual(after[name], given[name]);
  // A URL that stays is called at its own host.
  const kept = Object.keys(after).filter(
    (name) => isKept(name) && !maySee(provider, name, before[name]) && toHttpUrl(after[name]) === undefined,
  );
  // Stored settings that cannot be used lead nowhere, so that everything counts as moved.
  const [was, is] = [placesIn(provider, usedSettings(rules, provider, before)), placesIn(provider, used)];
  // guard: secrets-stay-at-target
  const part = isScoped ? 'whole' : 'host';
  const moved = [...is.keys(), ...(isScoped ? was.keys() : [])].find(
    (key) => (was.get(key)?.[part] ?? '') !== (is.get(key)?.[part] ?? ''),
  );
  if (moved === undefined || kept.length === 0) return;
  const what = 'may lead to another host or restaurant, so give again what it may get';
  throw wrongSetting(nameOf(moved), `${what}: ${kept.join(', ')}`);
}

/** What to ask first: URLs that lead to another host, or to another path of it, than before. A path may be a secret. */
export function movesIn(rules: SettingsRules, { provider, used, before }: SettingsChange): string[] {
  const was = placesIn(provider, usedSettings(rules, provider, before));
  return [...placesIn(provider, used)].flatMap(([key, { host: now, whole }]) => {
    const { host, whole: old } = was.get(key) ?? {};
    if (typeof host !== 'string' || typeof now !== 'string' || host + now === '' || old === whole) return [];
    if (host === now) return `${labelOf(nameOf(key))} leads to another path of ${host} than before. Is that right?`;
    return `${labelOf(nameOf(key))} leads elsewhere than before: to ${now} instead of ${host}. Is that right?`;
  });
}

/** `URL` and schemas ignore white space, so that a check and a use could read two values. @throws WrongLocation */
export function refuseWhiteSpace({ provider, after }: SettingsChange): void {
  const found = Object.entries(after).flatMap(([name, held]) => {
    const isSeen = maySee(provider, name, held);
    return leavesOf(held, [name]).filter(([path, value]) => {
      if (typeof value !== 'string' || !/^[\p{C}\p{Z}]|[\p{C}\p{Z}]$/u.test(value)) return false;
      const { isUrl, target } = aboutSetting(provider, path);
      return !isSeen || isUrl || target !== undefined;
    });
  })[0];
  if (found !== undefined) throw wrongSetting(found[0].join('.'), 'begins or ends with white space: remove it');
}

/**
 * Refuses a target that another location has. An integrator of all locations only gets warnings, because several brands
 * may have one restaurant.
 * @throws WrongLocation
 */
export async function judgeTarget(
  client: PoolClient,
  rules: SettingsRules,
  { provider, used, before, isScoped }: SettingsChange,
  locationId: string,
): Promise<string[]> {
  const targetsOf = (settings: unknown) => [...placesIn(provider, settings)].filter(([, { isOfOne }]) => isOfOne);
  const targetOf = (stored: unknown): string => {
    const targets = targetsOf(usedSettings(rules, provider, stored) ?? stored);
    // A POS may ignore the case of an id.
    const ids = targets.map(([key, { whole }]) => `${key} ${String(whole).normalize('NFKC').trim().toLowerCase()}`);
    return ids.length === 0 ? '' : hash('sha256', [provider.integration, ...ids.toSorted()].join('\n'));
  };
  const target = targetOf(used);
  if (target === '' || target === targetOf(before)) return [];
  // guard: one-at-a-target
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', [target, LOCK_TARGET]);
  const { rows } = await client.query<{ id: string; called: string; version: string; sealed: string | null }>(
    `SELECT location_id AS id, coalesce(name, location_id) AS called, xmin::text AS version, CASE WHEN target_sha256 IS NULL THEN settings END AS sealed FROM locations
     WHERE integration = $1 AND location_id <> $2 AND (target_sha256 IS NULL OR target_sha256 = decode($3, 'hex'))`,
    [provider.integration, locationId, target],
  );
  const sharing: string[] = [];
  const noted: [id: string, version: string, target: string][] = [];
  for (const { id, called, version, sealed } of rows) {
    const settings = sealed && (await unseal(rules.keys, sealed, placeOfSettings(id)).catch(() => null));
    // Settings that cannot be decrypted may have any target.
    const other = settings ? targetOf(settings) : target;
    if (other === target) sharing.push(called);
    if (settings) noted.push([id, version, other]);
  }
  await client.query(
    NOTE_TARGETS,
    [0, 1, 2].map((nth) => noted.map((each) => each[nth])),
  );
  const name = nameOf(targetsOf(used)[0]?.[0] ?? '[]');
  // guard: target-of-another
  if (isScoped && sharing.length > 0)
    throw wrongSetting(name, 'is that of another location: ask an integrator of all locations to store it');
  return sharing.map((called) => `The location ${called} has the same ${name}.`);
}

/** SQL that notes targets, except of locations that are changed meanwhile. */
const NOTE_TARGETS = `
  UPDATE locations l SET target_sha256 = decode(n.target, 'hex')
  FROM unnest($1::text[], $2::text[], $3::text[]) AS n(id, version, target)
  WHERE l.location_id = n.id AND l.xmin::text = n.version
    AND l.location_id IN (SELECT location_id FROM locations WHERE location_id = ANY ($1) FOR UPDATE SKIP LOCKED)`;
