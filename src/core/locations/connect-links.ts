import { randomBytes, randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { digest, makeToken, mayBeToken } from '../domain/make-token.ts';
import { NeedsOperator } from '../domain/errors.ts';
import type { Authorisation } from '../domain/provider.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { askPos, type PosDeps } from './check-location.ts';
import {
  getLocation,
  grantKeyOf,
  parseSettings,
  placeOfSettings,
  settingsDecrypter,
  withApplications,
  WrongLocation,
  type SettingsRules,
} from './locations.ts';
import { retryPlacements } from './put-location.ts';
import { seal, unseal } from './settings-key.ts';

const LIVES_H = 72;
/** Time limit in seconds for all calls to the vendor together, because a person waits. */
const GRANT_S = 20;

export type ConnectLink = {
  linkId: string;
  locationId: string;
  integration: string;
  /** The location's name, for people. */
  name: string | null;
  expiresAt: Date;
};

/** SQL of the links that can be used: each once, before it expires, and while its location has the same integration. */
const USABLE = `FROM connect_links c JOIN locations l USING (location_id)
  -- guard: links-work-once
  WHERE c.used_at IS NULL
    AND c.expires_at > now() AND c.integration = l.integration`;

/**
 * Makes a link with which the restaurant's owner grants us access at the vendor, and ends the location's earlier links,
 * one of which may have gone to the wrong person. The token is returned only here.
 * @throws WrongLocation if there is no such location, or its settings cannot be used
 * @throws NeedsOperator if its integration has no such page, or its settings do not lead there
 */
export async function makeConnectLink(
  pool: Pool,
  rules: SettingsRules,
  locationId: string,
): Promise<{ linkId: string; token: string; expiresAt: Date }> {
  const location = await getLocation(pool, locationId);
  const { provider, settings } = await settingsDecrypter(rules)(location);
  authorisationOf(provider).page(settings, { redirectUri: 'https://callback.invalid', state: '' });
  const [linkId, token] = [randomUUID(), makeToken('exc_')];
  const { rows } = await pool.query<{ expiresAt: Date }>(
    `WITH earlier AS (DELETE FROM connect_links WHERE location_id = $3 AND used_at IS NULL)
     INSERT INTO connect_links (link_id, sha256, location_id, integration, expires_at)
     VALUES ($1::uuid, $2, $3, $4, now() + interval '${LIVES_H} h') RETURNING expires_at AS "expiresAt"`,
    [linkId, Buffer.from(digest(token), 'base64'), locationId, location.integration],
  );
  if (rows[0] === undefined) throw new Error('a connect link was not stored');
  return { linkId, token, expiresAt: rows[0].expiresAt };
}

/** Finds a link that can be used, by its token. */
export async function findConnectLink(pool: Pool, token: string): Promise<ConnectLink | undefined> {
  if (!mayBeToken('exc_', token)) return undefined;
  return readLink(pool, 'c.sha256 = $1', Buffer.from(digest(token), 'base64'));
}

/** Finds a link that can be used, by its id. */
export async function reopenConnectLink(pool: Pool, linkId: string): Promise<ConnectLink | undefined> {
  return readLink(pool, 'c.link_id = $1::uuid', linkId);
}

async function readLink(pool: Pool, which: string, value: unknown): Promise<ConnectLink | undefined> {
  const { rows } = await pool.query<ConnectLink>(
    `SELECT c.link_id AS "linkId", c.location_id AS "locationId", c.integration, l.name, c.expires_at AS "expiresAt"
     ${USABLE} AND ${which}`,
    [value],
  );
  return rows[0];
}

export function makeState(): string {
  return randomBytes(32).toString('base64url');
}

export function authorisationOf({
  authorisation,
  integration,
}: {
  authorisation?: Authorisation<unknown>;
  integration: string;
}): Authorisation<unknown> {
  if (authorisation !== undefined) return authorisation;
  throw new NeedsOperator(`${integration} has no page where a restaurant can grant access`);
}

/** The vendor granted access to an account that does not have this location. */
export class OtherAccount extends Error {
  override readonly name = 'OtherAccount';
}

/**
 * Exchanges the code of a finished sign-in for access, checks that the access reaches this location, then stores it and
 * uses the link up. If this throws, nothing is stored, and the link can still be used.
 * @throws OtherAccount; WrongLocation if the settings cannot be used; NeedsOperator if the vendor refuses the code;
 *   TryAgain if it cannot be reached
 * @returns a message for the operator; undefined if the link was used meanwhile, or has expired
 */
export async function grantByLink(
  deps: PosDeps & { pool: Pool; rules: SettingsRules },
  { linkId, locationId, integration }: ConnectLink,
  code: string,
): Promise<string | undefined> {
  const { pool, rules } = deps;
  const location = await getLocation(pool, locationId);
  const { provider, settings } = await settingsDecrypter(rules)(location);
  const { exchange } = authorisationOf(provider);
  const limit = { seconds: GRANT_S, sent: false };
  const granted = await askPos(deps, { integration, provider, settings }, limit, (context) => exchange(context, code));
  const changes = granted.settings as Record<string, unknown>;
  const merged = { ...(await openSettings(rules, locationId, location.sealedSettings)), ...changes };
  const usable = parseSettings(await withApplications(pool, rules, [merged]), integration, merged).settings;
  // The owner may be signed in to another account at the vendor.
  // guard: own-account
  await askPos(deps, { integration, provider, settings: usable }, limit, async (pos) => provider.check?.(pos)).catch(
    (error: unknown) => {
      if (error instanceof NeedsOperator) throw new OtherAccount(error.message);
    },
  );
  return inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `UPDATE connect_links SET used_at = now() WHERE link_id = (SELECT c.link_id ${USABLE} AND c.link_id = $1::uuid FOR UPDATE)`,
      [linkId],
    );
    if (rowCount !== 1) return undefined;
    await mergeSettings(client, rules, { locationId, integration }, { changes, isConnected: true });
    return granted.did;
  });
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
  const merged = { ...(await openSettings(rules, locationId, rows[0].sealed)), ...changes };
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

async function openSettings(
  { keys }: SettingsRules,
  locationId: string,
  sealed: string,
): Promise<Record<string, unknown>> {
  return (await unseal(keys, sealed, placeOfSettings(locationId))) as Record<string, unknown>;
}
