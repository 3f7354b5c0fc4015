import { isRecord } from '../domain/json-text.ts';
import { Contact } from '../contacts/contact.ts';
import { issueInWords } from '../domain/issue-in-words.ts';
import type { ShapeIssue } from '../domain/shape-issues.ts';
import { isTooShort, toE164 } from '../domain/to-e164.ts';
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { Id, describeIssues } from '../domain/order.ts';
import { Typed } from '../domain/typed.ts';
import { readRolesAt } from '../operators/find-operator.ts';
import { OWN_IDS, type MayPlace, type Role } from '../operators/operator.ts';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';
import { inTransaction, LOCK_CREATE_LOCATION, withClient } from '../postgres/transactions.ts';
import { maySee, shownOrigin } from './describe-settings.ts';
import {
  WrongLocation,
  applicationOf,
  grantKeyOf,
  newSettingsOf,
  parseSettings,
  placeOfSettings,
  reconnectedBy,
  refuseHosts,
  withApplications,
  type SettingsRules,
} from './locations.ts';
import { seal, unseal } from './settings-key.ts';
import { openAgain } from '../kitchens/settle-kitchens.ts';
import { findUnfinished } from './unfinished-orders.ts';
import { judgeTarget, movesIn, refuseMove, refuseWhiteSpace, type SettingsChange } from './where-settings-lead.ts';

/** What operators say of a location besides its POS. */
export const LocationDetails = z.object({
  name: Typed(200)
    .nullable()
    .meta({ description: 'Its name, for people.', examples: ['Trattoria Nord'] }),
  timeZone: z
    .string()
    .refine(isTimeZone, { error: ({ input }) => `is not an IANA time zone such as ${zoneLike(String(input))}` })
    .nullable()
    .meta({ description: 'Its IANA time zone, such as Europe/Berlin.', examples: ['Europe/Berlin'] }),
  country: z
    .string()
    .toUpperCase()
    .nullable()
    .meta({
      description: 'The country of telephone numbers in national form, by ISO 3166-1 alpha-2, such as DE.',
      examples: ['DE'],
    }),
  contacts: z.array(Contact).max(10).meta({ description: 'Who can be reached at the restaurant.' }),
  groups: z
    .array(Id)
    .max(20)
    .transform((groups) => [...new Set(groups)].toSorted())
    .meta({ description: 'Such as its brand and its region. Roles and lists can be limited to a group.' }),
  address: Typed(300)
    .nullable()
    .meta({ description: 'Its address, for people.', examples: ['Hafenstr. 1, 20457 Hamburg'] }),
  backOfficeUrl: z
    .url({ protocol: /^https$/, error: 'is not an https URL' })
    .max(500)
    .refine((url) => !/^https:\/\/[^/]*@/.test(URL.parse(url)?.href ?? ''), {
      error: 'must have no user and no password',
    })
    .nullable()
    .meta({
      description: "The page of its POS for the restaurant's staff.",
      examples: ['https://pos.example.com/nord'],
    }),
});
export type LocationDetails = z.infer<typeof LocationDetails>;
const { name, timeZone, country, contacts, groups, address, backOfficeUrl } = LocationDetails.shape;
/** The same, of a location that is replaced: what is left out is removed. */
export const ReplacedDetails = z.object({
  name: name.default(null),
  timeZone: timeZone.default(null),
  country: country.default(null),
  contacts: contacts.default([]),
  groups: groups.default([]),
  address: address.default(null),
  backOfficeUrl: backOfficeUrl.default(null),
});

function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]*$/.test(name)) return false;
  try {
    return Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** A time zone with the city that somebody wrote in place of its name; any, if there is none. */
function zoneLike(city: string): string {
  const ending = `/${city.trim().replaceAll(/\s+/g, '_').toLowerCase()}`;
  return Intl.supportedValuesOf('timeZone').find((zone) => zone.toLowerCase().endsWith(ending)) ?? 'Europe/Berlin';
}

type Settings = Readonly<Record<string, unknown>>;
type Configured = LocationDetails & { integration: string; settings: Settings };

/** One changed field, with texts for people. A contact and a secret is `set`; of a secret URL there is the origin. */
export const LocationChange = z.object({
  field: z.string().meta({ examples: ['settings.secret'] }),
  before: z.string().nullable(),
  after: z.string().nullable(),
});
export type LocationChange = z.infer<typeof LocationChange>;

export const ChangedLocation = z
  .object({
    locationId: z.string(),
    integration: z.string(),
    created: z.boolean().meta({ description: 'True if the location did not exist before.' }),
    changes: z.array(LocationChange),
    etag: z.string().nullable().describe('Of the location as it is now. Null if a dry run would create it.'),
    warnings: z.array(z.string()).meta({
      description: 'What is unusual, for people. A dry run also says if dropped webhooks would be dropped again.',
    }),
    validTokens: z.int().meta({ description: 'Webhook tokens that are valid for the integration.' }),
  })
  .meta({ id: 'ChangedLocation' });

export type PutLocation = Omit<z.infer<typeof ChangedLocation>, 'locationId' | 'integration' | 'validTokens'>;

type Options = {
  ifMatch?: string | undefined;
  /** The `If-None-Match` of the request: the location must not exist. */
  ifNoneMatch?: string | undefined;
  /** Changes nothing, and returns what would change. */
  dryRun?: boolean | undefined;
  /**
   * Whether the caller may create a location with these groups (`before` is undefined), or change its groups. Called
   * while the location is locked. `given` are the roles that others have at the groups that are added to a location.
   */
  mayPlace?: MayPlace | undefined;
  /** Whether the caller may let contacts answer for orders of a location with these groups. Called like `mayPlace`. */
  mayTell?: ((groups: readonly string[]) => boolean) | undefined;
  /** False for an integrator of some locations, who reaches neither other restaurants nor their orders and webhooks. */
  isUnscoped?: boolean | undefined;
  /** Whether stored secrets may be sent to another host. Its owner could read them. */
  mayMove?: boolean | undefined;
  /** Changes the integration although its POS has orders that have not ended. */
  anyway?: boolean | undefined;
  /** Whether a refusal names these orders. */
  namesOrders?: boolean | undefined;
  /** Gets changed settings that are valid, before they are stored. */
  onValid?: ((change: SettingsChange) => void) | undefined;
};
export type PutRefused = {
  refused: string;
  statusCode: 403 | 409 | 412;
  cause?: { code: 'role_missing'; roles: Role[] };
};

type Rules = SettingsRules & { allowedHosts: AllowedHosts };

/**
 * Creates or replaces a location. Details that are left out are removed. Its unfinished placements are retried at once,
 * unless they wait for an operator.
 * @throws WrongLocation if the settings do not match the integration's schema, or lead to a host that may not be called
 */
export async function putLocation(
  pool: Pool,
  rules: Rules,
  location: { locationId: string; integration: string; settings: unknown } & Partial<LocationDetails>,
  options: Options = {},
): Promise<PutLocation | PutRefused> {
  const { locationId, integration, settings, ...details } = location;
  const wanted = {
    ...ReplacedDetails.parse({}),
    ...details,
    integration,
    settings: settings as Configured['settings'],
  };
  const put = await write(pool, rules, locationId, { decide: () => wanted, isPatch: false, settings }, options);
  if (put === undefined) throw new Error('a location was not stored');
  return put;
}

/**
 * Changes the given fields of a location. Settings are merged by JSON Merge Patch, RFC 7396: null removes a field. With
 * another integration, they are replaced.
 * @returns undefined if there is no such location
 * @throws WrongLocation like `putLocation`
 */
export async function patchLocation(
  pool: Pool,
  rules: Rules,
  locationId: string,
  { settings, ...patch }: Partial<Configured>,
  options: Options = {},
): Promise<PutLocation | PutRefused | undefined> {
  const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
  const decide = (before: Configured | undefined): Configured | undefined => {
    if (before === undefined) return undefined;
    const merged: Configured = { ...before, ...given };
    if (merged.integration !== before.integration) return { ...merged, settings: settings ?? {} };
    return { ...merged, settings: mergePatch(before.settings, settings ?? {}) as Configured['settings'] };
  };
  return write(pool, rules, locationId, { decide, isPatch: true, settings }, options);
}

/** Settings have a few levels. A patch with thousands of them would overflow the stack. */
const DEPTH_MAX = 20;

function mergePatch(target: unknown, patch: unknown, depth = 0): unknown {
  if (!isRecord(patch)) return patch;
  if (depth > DEPTH_MAX) throw new WrongLocation(`settings: has more than ${DEPTH_MAX} levels`);
  const merged = new Map(isRecord(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value, depth + 1));
  }
  return Object.fromEntries(merged);
}

/** The columns that an operator sets, as they are stored. */
export type ConfiguredRow = LocationDetails & {
  integration: string;
  sealedSettings: string;
  grantKey: string | null;
  isPaused: boolean;
};
/** SQL of a `ConfiguredRow`, from a location `l`. */
const CONFIGURED_ROW = `l.integration, l.settings AS "sealedSettings", l.name, l.time_zone AS "timeZone", l.country,
  l.contacts, l.groups, l.address, l.back_office_url AS "backOfficeUrl", encode(l.grant_sha256, 'hex') AS "grantKey", l.paused_at IS NOT NULL AS "isPaused"`;

/** The entity tag of a location, as in the header ETag: it changes with everything that an operator can set. */
export function etagOf(row: Omit<ConfiguredRow, 'grantKey' | 'isPaused'>): string {
  const { integration, sealedSettings, name, timeZone, country, contacts, groups, address, backOfficeUrl } = row;
  // Without the newer details, it is the tag that the previous version computes.
  const newer = address === null && backOfficeUrl === null ? [] : [address, backOfficeUrl];
  const text = JSON.stringify([integration, sealedSettings, name, timeZone, country, contacts, groups, ...newer]);
  return `"${hash('sha256', text, 'base64url').slice(0, 22)}"`;
}

/** Whether an `If-Match` allows a change: https://www.rfc-editor.org/rfc/rfc9110#name-if-match */
export function matches(ifMatch: string | undefined, row: ConfiguredRow | undefined): boolean {
  if (ifMatch === undefined) return true;
  if (row === undefined) return false;
  return ifMatch.trim() === '*' || ifMatch.split(',').some((each) => each.trim() === etagOf(row));
}

export const CHANGED_MEANWHILE =
  'The location has changed since you read it. Read it again, then send the change with its new ETag.';

const ANYWAY =
  'With another integration, the webhooks about them are still accepted, but nothing polls or cancels them. Wait, or ' +
  'repeat this with --anyway (?anyway=true)';

const EXISTS = 'A location with this id exists already. Choose another id, or leave out If-None-Match to replace it.';

export async function readConfigured(
  client: Pool | PoolClient,
  locationId: string,
  lock: '' | 'FOR UPDATE' = '',
): Promise<ConfiguredRow | undefined> {
  const { rows } = await client.query<ConfiguredRow>(
    `SELECT ${CONFIGURED_ROW} FROM locations l WHERE location_id = $1 ${lock}`,
    [locationId],
  );
  return rows[0];
}

type Change = {
  decide: (before: Configured | undefined) => Configured | undefined;
  isPatch: boolean;
  settings: unknown;
};

/**
 * @param change.decide returns what is wanted, from what is stored; undefined to change nothing
 * @param change.settings as they are given
 * @param change.isPatch true if unchanged settings are not validated again: an earlier schema may have accepted them
 */
async function write(
  pool: Pool,
  given: Rules,
  locationId: string,
  { decide, isPatch, settings }: Change,
  { ifMatch, ifNoneMatch, dryRun = false, mayPlace = () => true, mayTell = () => true, ...caller }: Options,
): Promise<PutLocation | PutRefused | undefined> {
  const { isUnscoped = true, mayMove = true, anyway = false, namesOrders = true } = caller;
  const id = Id.safeParse(locationId);
  if (!id.success) throw new WrongLocation(`location: ${describeIssues(id.error)}`);
  // A URL means a folder by them, so no client of the API could ask for the location.
  if (/^\.\.?$/.test(locationId)) throw new WrongLocation(`location: "${locationId}" cannot be an id`);
  const work = async (client: PoolClient): Promise<PutLocation | PutRefused | undefined> => {
    let row = await readConfigured(client, locationId, dryRun ? '' : 'FOR UPDATE');
    if (row === undefined && !dryRun) {
      // There is no row to lock, and another request may create the location at the same time.
      // guard: created-once
      await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, $2))', [locationId, LOCK_CREATE_LOCATION]);
      row = await readConfigured(client, locationId, 'FOR UPDATE');
    }
    const before = row && { ...row, settings: await openSettings(given, locationId, row, isPatch) };
    // The lock keeps the application until the location that refers to it is stored.
    // guard: application-kept
    const rules = await withApplications(client, given, [before?.settings, settings], dryRun ? '' : 'FOR KEY SHARE');
    const decided = decide(before);
    if (decided === undefined) return undefined;
    const wanted = { ...decided, contacts: withPhones(decided, before?.contacts) };
    const added = wanted.groups.filter((group) => before?.groups.includes(group) === false);
    const roles = added.length === 0 ? [] : await readRolesAt(client, added);
    // guard: groups-within-scope
    if (!mayPlace(before?.groups, wanted.groups, roles)) return row === undefined ? NOT_INTEGRATOR : NOT_OF_GROUPS;
    // guard: history-of-another
    if (row === undefined && !isUnscoped && (await hasHistory(client, locationId))) return NOT_INTEGRATOR;
    const isNew = (contact: Contact): boolean => !before?.contacts.some((each) => isDeepStrictEqual(each, contact));
    const isTold = wanted.contacts.some((contact) => contact.via !== undefined && isNew(contact));
    // guard: operator-enters-contacts
    if (isTold && !mayTell((before ?? wanted).groups)) return NOT_OPERATOR;
    if (!matches(ifMatch, row)) return { refused: CHANGED_MEANWHILE, statusCode: 412 };
    if (ifNoneMatch !== undefined && row !== undefined) return { refused: EXISTS, statusCode: 412 };
    const leaves = before !== undefined && before.integration !== wanted.integration && !anyway;
    const open = leaves && (await findUnfinished(client, locationId, { namesOrders, sentBy: before.integration }));
    // guard: pos-has-orders
    if (open) return { refused: `${open}. ${ANYWAY}`, statusCode: 409 };
    const stays =
      before?.integration === wanted.integration && isDeepStrictEqual(before.settings, wanted.settings)
        ? row
        : undefined;
    if (wanted.timeZone === null && wanted.contacts.some(({ quiet }) => quiet !== undefined)) {
      throw wrongField('timeZone', 'null', 'is required, because a contact has quiet hours');
    }
    // Before the changes are listed, because what is not valid may be large.
    const valid = stays !== undefined && isPatch ? undefined : validate(rules, before, wanted, !isUnscoped);
    // guard: secrets-stay-at-host
    if (valid !== undefined && isPatch && !mayMove) refuseMove(rules, valid, (settings ?? {}) as Settings);
    if (valid !== undefined) caller.onValid?.(valid);
    const warnings =
      valid === undefined ? [] : [...movesIn(rules, valid), ...(await judgeTarget(client, rules, valid, locationId))];
    const changes = changesBetween(rules, before, wanted);
    const done = { created: row === undefined, changes, warnings };
    if (dryRun) return { ...done, etag: row === undefined ? null : etagOf(row) };
    const sealedSettings =
      stays?.sealedSettings ?? (await seal(rules.keys, wanted.settings, placeOfSettings(locationId)));
    if (changes.length > 0 || row === undefined) {
      await client.query(PUT, [
        locationId,
        wanted.integration,
        sealedSettings,
        wanted.country,
        valid === undefined ? row?.grantKey : grantKeyOf(wanted.integration, valid.provider, valid.used),
        wanted.name,
        wanted.timeZone,
        JSON.stringify(wanted.contacts),
        wanted.groups,
        wanted.address,
        wanted.backOfficeUrl,
        applicationOf(rules.registry.get(wanted.integration), wanted.settings) ?? null,
      ]);
      if (row === undefined) await openAgain(client, locationId);
    }
    await retryPlacements(client, locationId);
    return { ...done, etag: etagOf({ ...wanted, sealedSettings }) };
  };
  // It is thrown outside, because a transaction closes its connection after an error that is not about a statement.
  const done = await (dryRun ? withClient : inTransaction)(pool, async (client) =>
    work(client).catch((error: unknown) => {
      if (error instanceof WrongLocation) return error;
      throw error;
    }),
  );
  if (done instanceof WrongLocation) throw done;
  return done;
}

/** The contacts, with their telephone numbers in E.164. @param before stored numbers are not judged again @throws WrongLocation */
function withPhones({ contacts, country }: LocationDetails, before: readonly Contact[] = []): Contact[] {
  return contacts.map((contact, nth) => {
    const { phone: typed } = contact;
    if (typed === undefined || before.some(({ phone }) => phone === typed)) return contact;
    const path = `contacts.${nth}.phone`;
    const within = country ?? undefined;
    if (isTooShort(typed, within)) throw wrongField(path, 'string', SHORT_PHONE);
    const phone = E164.test(typed) ? typed : toE164(typed, within);
    if (phone === undefined) throw wrongField(path, 'string', country ? NO_PHONE : NO_PHONE + OR_COUNTRY);
    return { ...contact, phone };
  });
}
const E164 = /^\+[1-9]\d{6,14}$/;
const NO_PHONE = "cannot be read as a telephone number. Write it with + and the country's number, such as +4930123456";
const OR_COUNTRY = ', or give the country of the location';
const SHORT_PHONE = 'has too few digits for a telephone number. Write the whole number, such as +4930123456';

function wrongField(path: string, received: ShapeIssue['received'], says: string): WrongLocation {
  const issue = { path, received, says };
  return new WrongLocation(issueInWords(issue), { issues: [issue] });
}

/** Lets the unfinished placements of locations be tried at once, unless they wait for an operator. */
export async function retryPlacements(client: PoolClient, ...locationIds: string[]): Promise<void> {
  await client.query(
    `UPDATE placements SET next_attempt_at = now()
     WHERE location_id = ANY ($1::text[]) AND finished_at IS NULL AND next_attempt_at <> 'infinity'`,
    [locationIds],
  );
}

/** In the words for a location that the caller may not see, so that the answer does not tell whether it exists. */
const NOT_INTEGRATOR = lacking('integrator', `You need the role integrator for this request. ${OWN_IDS}`);
const NOT_OF_GROUPS = lacking(
  'integrator',
  'You can change only groups where you are integrator. To add one, you need every role that others have there, at the location too.',
);
/** Contacts with `via` answer for orders, which an integrator may not even see. */
const NOT_OPERATOR = lacking(
  'operator',
  'contacts: only somebody with the role operator at this location can add or change a contact with `via`, because ' +
    'it can answer for orders. Leave out `via`, or ask an operator to add the contact.',
);

function lacking(role: Role, refused: string): PutRefused {
  return { refused, statusCode: 403, cause: { code: 'role_missing', roles: [role] } };
}

async function hasHistory(client: PoolClient, locationId: string): Promise<boolean> {
  const { rows } = await client.query<{ has: boolean }>(
    `SELECT EXISTS (SELECT FROM placements WHERE location_id = $1) OR EXISTS (SELECT FROM webhooks WHERE location_id = $1)
            OR EXISTS (SELECT FROM past_orders WHERE location_id = $1)
            OR EXISTS (SELECT FROM tombstone_locations WHERE location_id = $1) AS has`,
    [locationId],
  );
  return rows[0]?.has === true;
}

/** @throws WrongLocation */
function validate(rules: Rules, before: Configured | undefined, wanted: Configured, isScoped: boolean): SettingsChange {
  const { integration, settings: after } = wanted;
  const known = rules.registry.get(integration);
  // Also before they are read, because a form judges an address before the other settings are filled in.
  if (known !== undefined) refuseHosts(after, known, rules.allowedHosts);
  const { provider, settings: used } = parseSettings(rules, integration, after, newSettingsOf);
  refuseHosts(used, provider, rules.allowedHosts);
  const old = before?.integration === integration ? before.settings : {};
  const change = { provider, used, before: old, after, isScoped };
  // guard: no-white-space
  refuseWhiteSpace(change);
  return change;
}

const PUT = `
  WITH former AS (
    INSERT INTO former_settings (location_id, integration, settings, application)
    SELECT location_id, integration, settings, application FROM locations WHERE location_id = $1 AND integration <> $2
    ON CONFLICT (location_id) DO UPDATE SET integration = excluded.integration, settings = excluded.settings,
                                            application = excluded.application, left_at = now()
  )
  INSERT INTO locations AS l (location_id, integration, settings, country, grant_sha256, name, time_zone, contacts, groups,
                              address, back_office_url, application)
  VALUES ($1, $2, $3, $4, decode($5::text, 'hex'), $6, $7, $8, $9, $10, $11, $12)
  ON CONFLICT (location_id) DO UPDATE
    SET integration = excluded.integration, settings = excluded.settings, updated_at = now(),
        country = excluded.country, grant_sha256 = excluded.grant_sha256, name = excluded.name,
        time_zone = excluded.time_zone, contacts = excluded.contacts, groups = excluded.groups,
        address = excluded.address, back_office_url = excluded.back_office_url, application = excluded.application,
        ${reconnectedBy('excluded.settings', 'excluded.grant_sha256')},
        -- What the previous POS reported ends now, because the new POS cannot end it.
        pos_busy_until = CASE WHEN l.integration = excluded.integration THEN l.pos_busy_until END,
        pos_paused_until = CASE WHEN l.integration <> excluded.integration AND l.pos_paused_at IS NOT NULL
                                THEN now() ELSE l.pos_paused_until END`;

/** Decrypts stored settings. Settings that no key decrypts count as none, so that they can be replaced. */
async function openSettings(
  { keys }: SettingsRules,
  locationId: string,
  { sealedSettings }: ConfiguredRow,
  isPatch: boolean,
): Promise<Configured['settings']> {
  const settings = await unseal(keys, sealedSettings, placeOfSettings(locationId)).catch((error: Error) => {
    if (isPatch) throw new WrongLocation(`settings cannot be decrypted: ${error.message}`);
    return {};
  });
  return isRecord(settings) ? settings : {};
}

type ShownField = { value: unknown; text: string; isMap?: boolean };

/** Lists the changed fields. Only values that the provider's schema allows to show are in the list. */
function changesBetween(
  { registry }: SettingsRules,
  before: Configured | undefined,
  after: Configured,
): LocationChange[] {
  const shownOf = (of: Configured | undefined): Record<string, ShownField> => {
    if (of === undefined) return {};
    const { integration, settings, contacts, ...details } = of;
    const provider = registry.get(integration);
    return Object.fromEntries([
      ['integration', { value: integration, text: integration }],
      ...['name', 'timeZone', 'country', 'groups', 'address', 'backOfficeUrl'].map((name) => {
        const value = details[name as keyof typeof details] as unknown;
        return [name, { value, text: textOf(value) }];
      }),
      ['contacts', { value: contacts, text: 'set' }],
      ...Object.entries(settings)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => {
          const isSeen = maySee(provider, name, value);
          const text = isSeen ? textOf(value) : (shownOrigin(value) ?? 'set');
          return [`settings.${name}`, { value, text, isMap: isSeen && isRecord(value) }];
        }),
    ]) as Record<string, ShownField>;
  };
  const [was, is] = [shownOf(before), shownOf(after)];
  return [...new Set([...Object.keys(is), ...Object.keys(was)])].flatMap((field) =>
    changesOf(field, was[field], is[field]),
  );
}

/** Most keys of a map that are listed one by one. */
const KEYS_MAX = 20;

function changesOf(field: string, old: ShownField | undefined, now: ShownField | undefined): LocationChange[] {
  const isNone = (value: unknown): boolean => value === undefined || value === null || isDeepStrictEqual(value, []);
  const words = (each: ShownField | undefined): string | null =>
    each === undefined || isNone(each.value) ? null : each.text;
  if (isDeepStrictEqual(old?.value, now?.value) || (isNone(old?.value) && isNone(now?.value))) return [];
  // Of a map, the keys that changed are listed.
  const maps = [old, now].map((each) => new Map(each?.isMap === true ? Object.entries(each.value as object) : []));
  const keys = new Set(maps.flatMap((map) => [...map.keys()]));
  const changes = [...keys].flatMap((key) => {
    const [one, other] = maps.map((map) => map.get(key) as unknown);
    return changesOf(`${field}.${key}`, { value: one, text: textOf(one) }, { value: other, text: textOf(other) });
  });
  const areMaps = [old, now].every((each) => each === undefined || each.isMap === true);
  if (areMaps && changes.length > 0 && changes.length <= KEYS_MAX) return changes;
  return [{ field, before: words(old), after: words(now) }];
}

const TEXT_MAX = 200;

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
