import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { digest, makeToken, mayBeToken } from '../domain/make-token.ts';
import { NeedsOperator } from '../domain/errors.ts';
import type { Authorisation, Provider } from '../domain/provider.ts';
import {
  getLocation,
  grantKeyOf,
  leavesOf,
  parseSettings,
  placeOfSettings,
  unsealSettings,
  toHttpUrl,
  withApplications,
  WrongLocation,
  type SettingsRules,
} from './locations.ts';
import { retryPlacements } from './put-location.ts';
import { seal } from './settings-key.ts';

const LIVES_H = 72;
export type ConnectLink = {
  linkId: string;
  locationId: string;
  integration: string;
  name: string | null;
  expiresAt: Date;
  /** Where the location's settings may lead, besides the vendor's own hosts. */
  origins: readonly string[];
  /** The encrypted grant that its owner has not confirmed yet. */
  sealedGrant: string | null;
};

/** SQL of the links that can be used: each once, before it expires, and while its location has the same integration. */
export const USABLE = `FROM connect_links c JOIN locations l USING (location_id)
  -- guard: links-work-once
  WHERE c.used_at IS NULL
    AND c.expires_at > now() AND c.integration = l.integration`;

/** SQL that ends the open links of the location `$1`. Their rows stay, because a grant that must be revoked may wait there. */
export const END_LINKS = `UPDATE connect_links SET expires_at = now()
  WHERE location_id = $1 AND used_at IS NULL AND expires_at > now()`;

/**
 * Makes a link with which the restaurant's owner grants us access at the vendor, and ends the location's earlier links,
 * one of which may have gone to the wrong person. The token is returned only here.
 * @param mayLeadElsewhere whether the settings may lead to a host that is not the vendor's
 * @throws WrongLocation if there is no such location, or its settings cannot be used
 * @throws NeedsOperator if its integration has no such page, or its settings do not lead there
 */
export async function makeConnectLink(
  pool: Pool,
  rules: SettingsRules,
  locationId: string,
  mayLeadElsewhere: boolean,
): Promise<{ linkId: string; token: string; expiresAt: Date }> {
  const { integration } = await getLocation(pool, locationId);
  const { origins } = await openLinked(pool, rules, { locationId, integration });
  // guard: owner-at-vendor
  if (!mayLeadElsewhere && origins.length > 0) {
    throw new NeedsOperator(
      `the settings lead to ${origins.join(', ')}, which is not the vendor's: remove that URL from the settings, or let ` +
        'an integrator of all locations make the link',
    );
  }
  const [linkId, token] = [randomUUID(), makeToken('exc_')];
  const { rows } = await pool.query<{ expiresAt: Date }>(
    `WITH earlier AS (${END_LINKS})
     INSERT INTO connect_links (link_id, sha256, location_id, integration, expires_at, origins)
     VALUES ($2::uuid, $3, $1, $4, now() + interval '${LIVES_H} h', $5) RETURNING expires_at AS "expiresAt"`,
    [locationId, linkId, Buffer.from(digest(token), 'base64'), integration, origins],
  );
  if (rows[0] === undefined) throw new Error('a connect link was not stored');
  return { linkId, token, expiresAt: rows[0].expiresAt };
}

export async function findConnectLink(pool: Pool, token: string): Promise<ConnectLink | undefined> {
  if (!mayBeToken('exc_', token)) return undefined;
  return readLink(pool, 'c.sha256 = $1', Buffer.from(digest(token), 'base64'));
}

export async function reopenConnectLink(pool: Pool, linkId: string): Promise<ConnectLink | undefined> {
  return readLink(pool, 'c.link_id = $1::uuid', linkId);
}

async function readLink(pool: Pool, which: string, value: unknown): Promise<ConnectLink | undefined> {
  const { rows } = await pool.query<ConnectLink>(
    `SELECT c.link_id AS "linkId", c.location_id AS "locationId", c.integration, l.name, c.expires_at AS "expiresAt",
       coalesce(c.origins, '{}') AS origins, c.sealed AS "sealedGrant"
     ${USABLE} AND ${which}`,
    [value],
  );
  return rows[0];
}

/**
 * Reads the settings of a link's location, with changes.
 * @returns also the origins that they and the vendor's page lead to, besides the vendor's own hosts
 * @throws WrongLocation if they lead elsewhere than when the link was made; NeedsOperator if they do not lead to the page
 */
export async function openLinked(
  pool: Pool | PoolClient,
  rules: SettingsRules,
  link: Pick<ConnectLink, 'locationId' | 'integration'> & Partial<ConnectLink>,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<{ merged: Record<string, unknown>; provider: Provider; settings: unknown; origins: string[] }> {
  const { sealedSettings } = await getLocation(pool, link.locationId);
  const merged = { ...(await unsealSettings(rules, link.locationId, sealedSettings)), ...changes };
  const { provider, settings } = parseSettings(await withApplications(pool, rules, [merged]), link.integration, merged);
  const { page, hosts } = authorisationOf(provider);
  const called = leavesOf(settings).filter(([path]) => path[0] !== provider.webhookAuth?.urlSetting);
  const leads = [
    page(settings, { redirectUri: 'https://callback.invalid', state: '' }),
    ...called.map(([, each]) => each),
  ];
  const urls = leads.flatMap((each) => toHttpUrl(each) ?? []);
  const foreign = urls.filter(({ protocol, host }) => protocol !== 'https:' || !hosts.includes(host));
  const origins = [...new Set(foreign.map(({ origin }) => origin))];
  // guard: owner-stays-at-vendor
  if (link.origins !== undefined && !origins.every((each) => link.origins?.includes(each))) {
    throw new WrongLocation('the settings lead to another host than when the link was made: make a new link');
  }
  return { merged, provider, settings, origins };
}

export function makeState(): string {
  return randomBytes(32).toString('base64url');
}

export function authorisationOf({ authorisation }: Provider): Authorisation<unknown> {
  if (authorisation !== undefined) return authorisation;
  throw new NeedsOperator('this POS has no page where a restaurant can grant access');
}

/**
 * Merges changes into a location's present settings, notes whether it has access, and lets its orders be tried at once.
 * @throws WrongLocation if the location is gone or has another integration, or the settings cannot be used
 */
export async function mergeSettings(
  client: PoolClient,
  rules: SettingsRules,
  { locationId, integration }: { locationId: string; integration: string },
  { changes, isConnected }: { changes: Readonly<Record<string, unknown>>; isConnected: boolean },
): Promise<void> {
  const { rows } = await client.query<{ sealed: string }>(
    'SELECT settings AS sealed FROM locations WHERE location_id = $1 AND integration = $2 FOR UPDATE',
    [locationId, integration],
  );
  if (rows[0] === undefined)
    throw new WrongLocation(`no location is called "${locationId}"`, { cause: { code: 'no_location' } });
  const merged = { ...(await unsealSettings(rules, locationId, rows[0].sealed)), ...changes };
  const { provider, settings } = parseSettings(await withApplications(client, rules, [merged]), integration, merged);
  const sealed = await seal(rules.keys, merged, placeOfSettings(locationId));
  await client.query(
    `UPDATE locations
     SET settings = $2, grant_sha256 = decode($3::text, 'hex'), updated_at = now(), settings_changed_at = now(),
         access_granted_at = CASE WHEN $4::boolean THEN now() ELSE access_granted_at END,
         reconnect_needed_at = CASE WHEN $4::boolean THEN NULL ELSE coalesce(reconnect_needed_at, now()) END
     WHERE location_id = $1`,
    [locationId, sealed, grantKeyOf(integration, provider, settings) ?? null, isConnected],
  );
  await retryPlacements(client, locationId);
}
