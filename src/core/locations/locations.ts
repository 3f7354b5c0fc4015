import { PAUSED_AT, PAUSED_UNTIL, POS_PAUSED_UNTIL, said } from '../kitchens/pause-location.ts';
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { atMost } from '../domain/at-most.ts';
import { toCauseText } from '../domain/cause-text.ts';
import { Id } from '../domain/order.ts';
import type { LocationCause } from '../domain/location-cause.ts';
import { issueInWords } from '../domain/issue-in-words.ts';
import { describeCause } from '../domain/explain-cause.ts';
import { retryWrite } from '../postgres/transactions.ts';
import type { Provider, Registry } from '../domain/provider.ts';
import { shapeIssues, type ShapeIssue } from '../domain/shape-issues.ts';
import { type AllowedHosts, refuseUrl } from '../egress/allowed-hosts.ts';
import { keyOfGrant } from './credential-store.ts';
import { SealedElsewhere, keyIdOf, seal, unseal, type SettingsKeys } from './settings-key.ts';

export type Location = {
  locationId: string;
  integration: string;
  provider: Provider;
  /** The settings as the provider's schema returns them. */
  settings: unknown;
};

/** Identifies the POS account of a location's settings, by a hash because the account may contain credentials. */
export function posAccount({ integration, provider, settings }: Location): string {
  return hash('sha256', JSON.stringify([integration, provider.account?.(settings) ?? '']));
}

/** False if a person has to telephone: the POS has no call to cancel an order, or these settings do not allow it. */
export function canCancel({ provider, settings }: Usable): boolean {
  return provider.cancelOrder !== undefined && provider.canCancel?.(settings) !== false;
}

export const LocationRow = z.object({
  locationId: z.string(),
  integration: z.string(),
  name: z.string().nullable(),
  groups: z.array(z.string()).meta({ description: 'Such as its brand and its region.' }),
  country: z.string().nullable().meta({ description: 'ISO 3166-1 alpha-2, for telephone numbers in national form.' }),
  timeZone: z.string().nullable().meta({ description: 'An IANA name.' }),
  address: z.string().nullable().meta({ description: 'For people.' }),
  backOfficeUrl: z.string().nullable().meta({ description: "The page of its POS for the restaurant's staff." }),
  pausedAt: z.date().nullable(),
  pausedUntil: z.date().nullable().meta({
    description: 'When the pause ends and orders resume automatically. Null if an operator has to resume it.',
  }),
  pausedReason: z.string().nullable().meta({ description: 'As the operator typed it.' }),
  pausedBy: z.string().nullable().meta({ description: 'The operator who paused it. Null if only its POS did.' }),
  reconnectNeededAt: z.date().nullable().meta({
    description:
      'Since when its restaurant has to grant us access again. Its orders wait. Null if it does not have to.',
  }),
  updatedAt: z.date(),
});
export type LocationRow = z.infer<typeof LocationRow>;

export const LOCATION_ROW = `l.location_id AS "locationId", l.integration, l.name, l.groups, l.country,
  l.time_zone AS "timeZone", l.address, l.back_office_url AS "backOfficeUrl", l.updated_at AS "updatedAt",
  ${PAUSED_AT} AS "pausedAt", ${PAUSED_UNTIL} AS "pausedUntil", ${said('paused_reason')} AS "pausedReason",
  ${said('paused_by')} AS "pausedBy", l.reconnect_needed_at AS "reconnectNeededAt"`;

/** The location cannot be used. The message names the fault and the correct form, but no value. */
export class WrongLocation extends Error {
  override readonly name = 'WrongLocation';
  declare readonly cause?: LocationCause;
  readonly issues: readonly ShapeIssue[] | undefined;

  /** @param about.issues the wrong fields of the location besides its settings */
  constructor(message: string, { cause, issues }: { cause?: LocationCause; issues?: readonly ShapeIssue[] } = {}) {
    super(message, { cause });
    this.issues = issues;
  }
}

/** Decrypts and validates a location's settings. @throws WrongLocation if they cannot be used */
export type DecryptSettings = (
  location: Pick<StoredLocation, 'locationId' | 'integration' | keyof SealedSettings>,
) => Promise<Usable>;

type Usable = { provider: Provider; settings: unknown };

export type SettingsRules = {
  registry: Registry;
  keys: SettingsKeys;
  /** The public base URL. Some webhooks can only be verified with the URL that the POS calls. */
  publicUrl: string | undefined;
  /** The applications that settings may refer to: see `withApplications`. By default none. */
  applications?: Applications;
};

/** Vendor applications by name. Their fields are undefined if no key decrypts them. */
type Applications = ReadonlyMap<string, { integration: string; fields: Fields | undefined }>;
type Fields = Readonly<Record<string, unknown>>;

/** Maximum number of locations whose decrypted settings are cached: some 50 MB. */
const MOST_OPENED = 50_000;

/** Decrypts and parses settings, and caches them until they change, because every webhook and attempt needs them. */
export function settingsDecrypter(rules: SettingsRules): DecryptSettings {
  type Opened = { from: string; by: string | null; integration: string; usable: Usable };
  const opened = new LRUCache<string, Opened>(atMost(MOST_OPENED));
  const open = (sealed: string, place: string): Promise<unknown> =>
    unseal(rules.keys, sealed, place).catch((error: Error) => {
      throw new WrongLocation(`settings cannot be decrypted: ${error.message}`, {
        cause:
          error instanceof SealedElsewhere
            ? { code: 'settings_of_another' }
            : { code: 'settings_sealed', keyId: toCauseText(keyIdOf(sealed)) },
      });
    });
  return async ({ locationId, integration, sealedSettings, sealedApplication }) => {
    // guard: opened-for-its-location
    const known = opened.get(locationId);
    // guard: opened-with-its-application
    if (known?.from === sealedSettings && known.by === sealedApplication && known.integration === integration) {
      return known.usable;
    }
    const settings = await open(sealedSettings, placeOfSettings(locationId));
    const name = applicationOf(rules.registry.get(integration), settings);
    const fields =
      name && sealedApplication ? ((await open(sealedApplication, placeOfApplication(name))) as Fields) : undefined;
    const applications: Applications = new Map(name && fields ? [[name, { integration, fields }]] : []);
    const usable = parseSettings({ ...rules, applications }, integration, settings);
    opened.set(locationId, { from: sealedSettings, by: sealedApplication, integration, usable });
    return usable;
  };
}

export function placeOfSettings(locationId: string): string {
  return `locations/${locationId}`;
}

/** Decrypts a location's settings. @throws like `unseal` */
export async function unsealSettings({ keys }: { keys: SettingsKeys }, locationId: string, sealed: string) {
  return (await unseal(keys, sealed, placeOfSettings(locationId))) as Record<string, unknown>;
}

export function placeOfApplication(name: string): string {
  return `applications/${name}`;
}

/** Adds the applications to rules that some settings name, so that a caller can parse them. By default adds all. */
export async function withApplications<Rules extends SettingsRules>(
  client: Pool | PoolClient,
  rules: Rules,
  settings?: readonly unknown[],
  lock: '' | 'FOR KEY SHARE' = '',
): Promise<Rules> {
  const names = settings?.map((each) => (each as { application?: unknown } | null | undefined)?.application);
  const { rows } = await client.query<{ name: string; integration: string; sealed: string }>(
    `SELECT name, integration, settings AS sealed FROM applications WHERE $1::text[] IS NULL OR name = ANY ($1) ${lock}`,
    [names?.filter((name) => Id.safeParse(name).success) ?? null],
  );
  const entries = rows.map(async ({ name, integration, sealed }) => {
    const fields = await unseal(rules.keys, sealed, placeOfApplication(name)).catch(() => undefined);
    return [name, { integration, fields: fields as Fields | undefined }] as const;
  });
  return { ...rules, applications: new Map(await Promise.all(entries)) };
}

/** The application that settings name. Undefined if they name none, or if their integration has no applications. */
export function applicationOf(provider: Provider | undefined, settings: unknown): string | undefined {
  const { application } = (provider?.application && (settings as { application?: unknown } | null)) ?? {};
  // What is not a name names no application.
  return application === undefined || typeof application === 'string' ? application : '';
}

/** Settings with the fields of the application that they name. @throws WrongLocation */
function withSupplied(provider: Provider, settings: unknown, applications: Applications = new Map()): unknown {
  const name = applicationOf(provider, settings);
  if (name === undefined) return settings;
  const { application: _name, ...own } = settings as Fields;
  const known = applications.get(name);
  // guard: application-of-its-integration
  if (known?.integration !== provider.integration) {
    throw wrongSetting('application', `names no application of ${provider.integration}`);
  }
  if (known.fields === undefined) throw wrongSetting('application', 'cannot be decrypted: store it again');
  // guard: application-alone
  const twice = Object.keys(provider.application?.shape ?? {}).find((field) => Object.hasOwn(own, field));
  if (twice !== undefined) throw wrongSetting(twice, 'is part of the application: remove it, or remove application');
  return { ...own, ...known.fields };
}

export function wrongSetting(path: string, text: string): WrongLocation {
  const issue = { path: toCauseText(path), received: 'string', says: toCauseText(text) } as const;
  return new WrongLocation(`settings: ${issueInWords(issue)}`, { cause: { code: 'wrong_settings', issues: [issue] } });
}

/** Parses settings, together with the fields of the application that they name. @throws WrongLocation */
export function parseSettings(
  { registry, publicUrl, applications }: SettingsRules,
  integration: string,
  settings: unknown,
  schemaOf = (provider: Provider) => provider.settings,
): Usable {
  const provider = registry.get(integration);
  if (provider === undefined) {
    throw new WrongLocation(`no integration is called "${integration}"; there are ${[...registry.keys()].join(', ')}`, {
      cause: { code: 'unknown_integration', integration: toCauseText(integration) },
    });
  }
  const parsed = schemaOf(provider).safeParse(withSupplied(provider, settings, applications), { reportInput: true });
  if (!parsed.success) {
    const issues = shapeIssues(parsed.error);
    throw new WrongLocation(issues.map((issue) => issueInWords(inSettings(issue))).join('; '), {
      cause: { code: 'wrong_settings', issues },
    });
  }
  if (publicUrl === undefined && provider.needsPublicUrl?.(parsed.data)) {
    throw new WrongLocation(
      'PUBLIC_URL is unset, and this POS signs the URL that it calls. Example: https://expediter.example.com',
      { cause: { code: 'no_public_url' } },
    );
  }
  return { provider, settings: parsed.data };
}

/** An issue of settings, with its path in the location. */
export function inSettings(issue: ShapeIssue): ShapeIssue {
  return { ...issue, path: toCauseText(issue.path === '' ? 'settings' : `settings.${issue.path}`) };
}

/** The provider's schema for settings that are about to be stored. It may be stricter than that for stored settings. */
export const newSettingsOf = (provider: Provider): Provider['settings'] => provider.newSettings ?? provider.settings;

/** The key of the grant that settings use; undefined if these settings need no grant that is renewed. */
export function grantKeyOf(integration: string, provider: Provider, settings: unknown): string | undefined {
  const seed = provider.grantSeed?.(settings);
  return seed && keyOfGrant(integration, seed);
}

/**
 * Refuses settings that name a host which may not be called, so that an operator sees the error at once. Stored
 * settings are not checked when they are read, because webhooks need them. The URL that the POS calls is not checked,
 * because we never call it.
 * @throws WrongLocation
 */
export function refuseHosts(settings: unknown, { webhookAuth }: Provider, allowed: AllowedHosts): void {
  for (const [path, value] of leavesOf(settings)) {
    const url = path[0] === webhookAuth?.urlSetting ? undefined : toHttpUrl(value);
    const reason = url && refuseUrl(url, allowed);
    if (reason !== undefined)
      throw wrongSetting(path.join('.'), `is not allowed: ${describeCause({ code: 'pos_host_refused', reason })}`);
  }
}

/** The values in settings that are neither objects nor lists. */
export function leavesOf(value: unknown, path: string[] = []): [path: string[], value: unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([name, each]) => leavesOf(each, [...path, name]));
}

/** Parsed before its scheme is read, because `URL` removes control characters around and inside the scheme. */
export function toHttpUrl(value: unknown): URL | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Replaces settings, unless they changed since they were read.
 * @returns whether the new settings are stored
 * @throws WrongLocation if the settings do not match the integration's schema
 */
export async function replaceSettings(
  pool: Pool,
  rules: SettingsRules,
  location: { locationId: string; integration: string; settings: unknown },
  sealedBefore: string,
): Promise<boolean> {
  const known = await withApplications(pool, rules, [location.settings]);
  const { provider, settings } = parseSettings(known, location.integration, location.settings);
  const grantKey = grantKeyOf(location.integration, provider, settings) ?? null;
  const sealed = await seal(rules.keys, location.settings, placeOfSettings(location.locationId));
  const { rowCount } = await retryWrite(() =>
    // If a commit succeeds and its answer is lost, the repeated write finds its own settings ($3) and succeeds too.
    pool.query(
      `UPDATE locations l
       SET settings = $3, grant_sha256 = decode($4::text, 'hex'), updated_at = now(),
           ${reconnectedBy('$3', `decode($4::text, 'hex')`)}
       WHERE location_id = $1 AND settings IN ($2, $3)`,
      [location.locationId, sealedBefore, sealed, grantKey],
    ),
  );
  return rowCount === 1;
}

/**
 * SQL that notes, for a location `l`, when its settings changed, and whether they give us access again: other
 * credentials, or, if these settings need no grant that is renewed, any other settings.
 */
export const reconnectedBy = (settings: string, grant: string): string => {
  const isOther = `l.settings <> ${settings} AND (${grant} IS NULL OR l.grant_sha256 IS DISTINCT FROM ${grant})`;
  return `settings_changed_at = CASE WHEN l.settings = ${settings} THEN l.settings_changed_at ELSE now() END,
    reconnect_needed_at = CASE WHEN NOT (${isOther}) THEN l.reconnect_needed_at END,
    access_granted_at = CASE WHEN ${isOther} THEN now() ELSE l.access_granted_at END`;
};

export type StoredLocation = {
  locationId: string;
  integration: string;
  paused: boolean;
  /** When a pause by its POS ends. Null if an operator paused it. */
  posPausedUntil: Date | null;
  /** True if its restaurant has to grant us access again. */
  needsReconnect: boolean;
  /** The minutes that an order takes longer now, because the kitchen is busy. Null if it is not busy, or if unknown. */
  extraMinutes: number | null;
  country: string | null;
} & SealedSettings;

/** Encrypted settings, and those of the application that they name. */
export type SealedSettings = { sealedSettings: string; sealedApplication: string | null };

/** SQL of the sealed settings of an application. @param name SQL of its name, by default that of a location `l` */
export function selectApplication(name = 'l.application'): string {
  return `(SELECT a.settings FROM applications a WHERE a.name = ${name})`;
}

/** SQL of a `StoredLocation`, from a location `l`. */
export const STORED_LOCATION = `l.location_id AS "locationId", l.integration, l.settings AS "sealedSettings",
  ${selectApplication()} AS "sealedApplication", l.country,
  ${PAUSED_AT} IS NOT NULL AS paused, ${POS_PAUSED_UNTIL} AS "posPausedUntil",
  l.reconnect_needed_at IS NOT NULL AS "needsReconnect",
  CASE WHEN l.busy_until > now() THEN l.busy_minutes WHEN l.pos_busy_until > now() THEN l.pos_busy_minutes END
    AS "extraMinutes"`;

export async function findLocation(pool: Pool | PoolClient, locationId: string): Promise<StoredLocation | undefined> {
  const { rows } = await pool.query<StoredLocation>({
    name: 'find-location',
    text: `SELECT ${STORED_LOCATION} FROM locations l WHERE location_id = $1`,
    values: [locationId],
  });
  return rows[0];
}

/** @throws WrongLocation if there is no such location */
export async function getLocation(pool: Pool | PoolClient, locationId: string): Promise<StoredLocation> {
  const found = await findLocation(pool, locationId);
  if (found === undefined) {
    throw new WrongLocation(`no location is called "${locationId}"`, { cause: { code: 'no_location' } });
  }
  return found;
}

export async function listLocations(pool: Pool): Promise<LocationRow[]> {
  const { rows } = await pool.query<LocationRow>(`SELECT ${LOCATION_ROW} FROM locations l ORDER BY location_id`);
  return rows;
}

/** The locations of a group. Empty if there is no such group. */
export async function membersOf(pool: Pool, group: string): Promise<string[]> {
  const { rows } = await pool.query<{ locationId: string }>(
    'SELECT location_id AS "locationId" FROM locations WHERE groups @> ARRAY[$1::text] ORDER BY location_id',
    [group],
  );
  return rows.map(({ locationId }) => locationId);
}
