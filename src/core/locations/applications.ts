import { isDeepStrictEqual } from 'node:util';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Provider } from '../domain/provider.ts';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { describeSettings, ShownSetting } from './describe-settings.ts';
import {
  WrongLocation,
  listLocations,
  parseSettings,
  placeOfApplication,
  placeOfSettings,
  refuseHosts,
  withApplications,
  type SettingsRules,
} from './locations.ts';
import { etagOf, patchLocation, readConfigured, retryPlacements } from './put-location.ts';
import { seal, unseal } from './settings-key.ts';

export const ShownApplication = z
  .object({
    name: z.string(),
    integration: z.string(),
    settings: z.record(z.string(), ShownSetting).meta({ description: 'Values, and fingerprints of secrets.' }),
    locations: z.array(z.string()).meta({ description: 'The locations that refer to it.' }),
    updatedAt: z.date(),
  })
  .meta({ id: 'ShownApplication' });

export async function listApplications(pool: Pool, rules: SettingsRules): Promise<z.infer<typeof ShownApplication>[]> {
  const { applications } = await withApplications(pool, rules);
  const { rows } = await pool.query<Omit<z.infer<typeof ShownApplication>, 'settings'>>(
    `SELECT name, integration, updated_at AS "updatedAt",
            ARRAY(SELECT location_id FROM locations WHERE application = a.name ORDER BY location_id) AS locations
     FROM applications a ORDER BY name`,
  );
  return rows.map((row) => {
    const about = { locationId: placeOfApplication(row.name), settings: applications?.get(row.name)?.fields };
    return { ...row, settings: describeSettings(rules.keys, rules.registry.get(row.integration), about) };
  });
}

type Rules = SettingsRules & { allowedHosts: AllowedHosts };

/**
 * Creates or replaces an application. Its locations use it at their next request, and their held orders are tried at
 * once.
 * @returns the changed settings, and its locations
 * @throws WrongLocation if the settings do not match the integration's schema, or lead to a host that may not be called
 */
export async function putApplication(
  pool: Pool,
  rules: Rules,
  { name, integration, settings: given }: { name: string; integration: string; settings: unknown },
  onlyNew = false,
): Promise<{ created: boolean; changed: string[]; locations: string[] } | { refused: string }> {
  // An application has no webhook, so PUBLIC_URL is not needed.
  const { provider, settings } = parseSettings({ ...rules, publicUrl: '' }, integration, given, schemaOf);
  refuseHosts(settings, provider, rules.allowedHosts);
  const sealed = await seal(rules.keys, settings, placeOfApplication(name));
  return inTransaction(pool, async (client) => {
    const before = (await withApplications(client, rules, [{ application: name }])).applications?.get(name);
    const { rowCount } = await client.query(
      `INSERT INTO applications AS a (name, integration, settings) VALUES ($1, $2, $3)
       ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, updated_at = now()
       WHERE a.integration = excluded.integration AND NOT $4::boolean`,
      [name, integration, sealed, onlyNew],
    );
    if (rowCount === 0) return { refused: `There is another application called "${name}". Choose another name.` };
    // A new `updated_at` removes the settings from each process's cache of webhook tokens.
    const { rows } = await client.query<{ locationId: string }>(
      `UPDATE locations SET updated_at = now(), settings_changed_at = now() WHERE application = $1
       RETURNING location_id AS "locationId"`,
      [name],
    );
    const locations = rows.map(({ locationId }) => locationId);
    await retryPlacements(client, ...locations);
    const [old, fields] = [before?.fields ?? {}, settings as Record<string, unknown>];
    const names = [...new Set([...Object.keys(old), ...Object.keys(fields)])];
    const changed = names.filter((each) => !isDeepStrictEqual(old[each], fields[each]));
    return { created: before === undefined, changed, locations };
  });
}

function schemaOf({ application, integration }: Provider): NonNullable<Provider['application']> {
  if (application === undefined) throw new WrongLocation(`${integration} has no applications`);
  return application;
}

/** Removes an application, unless locations refer to it. @returns undefined if there is no such application */
export async function removeApplication(
  pool: Pool,
  name: string,
): Promise<{ name: string; removed: true } | { refused: string } | undefined> {
  return inTransaction(pool, async (client) => {
    const found = await client.query('SELECT FROM applications WHERE name = $1 FOR UPDATE', [name]);
    if (found.rowCount === 0) return undefined;
    const { rowCount } = await client.query('SELECT FROM locations WHERE application = $1', [name]);
    // guard: application-in-use
    if (rowCount !== 0) return { refused: `Locations use it: ${rowCount}. See: expediter application list` };
    await client.query('DELETE FROM applications WHERE name = $1', [name]);
    return { name, removed: true };
  });
}

export const AdoptedApplication = ShownApplication.pick({ name: true, integration: true, locations: true });
type Adopted = z.infer<typeof AdoptedApplication>;

/**
 * Moves the fields of applications out of the settings of locations. Locations with equal fields get one application. A
 * location that changes meanwhile, or whose settings cannot be used, stays as it is. Safe to repeat.
 */
export async function adoptApplications(pool: Pool, given: Rules, dryRun: boolean): Promise<Adopted[]> {
  const { keys, registry, applications = new Map() } = await withApplications(pool, given);
  const keyOf = (integration: string, fields: object): string =>
    JSON.stringify([integration, Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))]);
  const names = new Map(
    [...applications].map(([name, { integration, fields = { name } }]) => [keyOf(integration, fields), name]),
  );
  const adopted = new Map<string, Adopted>();
  const ifWrong = (error: unknown): undefined => {
    if (!(error instanceof WrongLocation)) throw error;
  };
  for (const { locationId, integration } of await listLocations(pool)) {
    const { application: schema } = registry.get(integration) ?? {};
    const row = schema && (await readConfigured(pool, locationId));
    const settings = row && (await unseal(keys, row.sealedSettings, placeOfSettings(locationId)).catch(() => ({})));
    const own = Object.entries(settings ?? {}).filter(([field]) => Object.hasOwn(schema?.shape ?? {}, field));
    const fields = own.length > 0 ? schema?.safeParse(Object.fromEntries(own)).data : undefined;
    if (row === undefined || fields === undefined) continue;
    const key = keyOf(integration, fields);
    let name = names.get(key) ?? integration;
    for (let nth = 2; !names.has(key) && [...names.values()].includes(name); nth += 1) name = `${integration}-${nth}`;
    names.set(key, name);
    const group: Adopted = adopted.get(name) ?? { name, integration, locations: [] };
    const isNew = !applications.has(name) && !adopted.has(name);
    adopted.set(name, group);
    if (!dryRun) {
      if (isNew) {
        const put = await putApplication(pool, given, { name, integration, settings: fields }, true).catch(ifWrong);
        if (put !== undefined && 'refused' in put) throw new WrongLocation(put.refused);
      }
      const change = { application: name, ...Object.fromEntries(own.map(([field]) => [field, null])) };
      const options = { ifMatch: etagOf(row) };
      const done = await patchLocation(pool, given, locationId, { settings: change }, options).catch(ifWrong);
      if (done === undefined || 'refused' in done) continue;
    }
    group.locations.push(locationId);
  }
  return [...adopted.values()];
}
