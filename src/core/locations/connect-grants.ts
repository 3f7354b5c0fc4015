import { z } from 'zod';
import type { Pool } from 'pg';
import { describeError } from '../domain/classify-error.ts';
import { NeedsOperator } from '../domain/errors.ts';
import type { Log } from '../domain/log.ts';
import type { Authorisation } from '../domain/provider.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { askPos, type PosDeps } from './check-location.ts';
import { authorisationOf, mergeSettings, openLinked, USABLE, type ConnectLink } from './connect-links.ts';
import { getLocation, parseSettings, settingsDecrypter, withApplications, WrongLocation } from './locations.ts';
import type { SettingsRules } from './locations.ts';
import { seal, unseal } from './settings-key.ts';

/** Time limit for all calls to the vendor together, because a person waits. */
const LIMIT = { seconds: 20, sent: false };
/** A grant that its owner has not confirmed within this time is revoked. */
const WAITS_S = 600;

type Deps = PosDeps & { pool: Pool; rules: SettingsRules };
type Held = Pick<ConnectLink, 'linkId' | 'locationId' | 'integration' | 'sealedGrant'>;

/** What waits, encrypted, in the link's row. */
const Grant = z.object({
  /** The location's settings with the grant: later changes cannot move the grant to another host. */
  settings: z.record(z.string(), z.unknown()),
  changed: z.array(z.string()),
  account: z.string(),
  /** Of the sign-in. */
  state: z.string(),
});
export const placeOfWaiting = (linkId: string): string => `connect_links/${linkId}`;

/** The vendor granted access to an account that does not have this location. */
export class OtherAccount extends Error {
  override readonly name = 'OtherAccount';
}

/**
 * Exchanges the code of a finished sign-in for access, which waits in the link's row until its owner confirms it.
 * @throws WrongLocation if the settings cannot be used; NeedsOperator if the vendor refuses the code; TryAgain
 * @returns false if the link was used meanwhile, has expired, or has another grant
 */
export async function holdGrant(deps: Deps, link: ConnectLink, code: string, state: string): Promise<boolean> {
  const { merged, settings, provider } = await openLinked(deps.pool, deps.rules, link);
  const { exchange } = authorisationOf(provider);
  const { account, ...granted } = await askPos(deps, { ...link, provider, settings }, LIMIT, (each) =>
    exchange(each, code),
  );
  const changed = Object.keys(granted.settings);
  const waits = { settings: { ...merged, ...(granted.settings as object) }, changed, account, state };
  const sealedGrant = await seal(deps.rules.keys, waits, placeOfWaiting(link.linkId));
  const { rowCount } = await deps.pool.query(
    `UPDATE connect_links SET sealed = $2, granted_at = now()
     WHERE link_id = (SELECT c.link_id ${USABLE} AND c.sealed IS NULL AND c.link_id = $1::uuid FOR UPDATE)`,
    [link.linkId, sealedGrant],
  );
  if (rowCount !== 1) await endGrant(deps, { ...link, sealedGrant });
  return rowCount === 1;
}

/** @param state of the sign-in that must have got the grant @returns undefined if no grant waits. @throws WrongLocation */
export async function openGrant({ pool, rules }: Pick<Deps, 'pool' | 'rules'>, held: Held, state?: string) {
  if (held.sealedGrant === null) return undefined;
  const opened = await unseal(rules.keys, held.sealedGrant, placeOfWaiting(held.linkId)).catch((error: Error) => {
    throw new WrongLocation(`a grant cannot be decrypted: ${error.message}`);
  });
  const grant = Grant.parse(opened);
  // guard: confirmed-where-granted
  if (state !== undefined && state !== grant.state) return undefined;
  const changes: Record<string, unknown> = Object.fromEntries(
    grant.changed.map((name) => [name, grant.settings[name]]),
  );
  const usable = parseSettings(await withApplications(pool, rules, [grant.settings]), held.integration, grant.settings);
  return { account: grant.account, changes, ...usable };
}

/**
 * Stores the access that its owner has confirmed, if it reaches the location, and uses the link up.
 * @throws OtherAccount if it does not, and then it is revoked; WrongLocation; TryAgain
 * @returns false if the grant has waited too long
 */
export async function confirmGrant(
  deps: Deps,
  link: ConnectLink,
  changes: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const { pool, rules } = deps;
  const { provider, settings } = await openLinked(pool, rules, link, changes);
  // The owner may be signed in to another account at the vendor.
  // guard: own-account
  await askPos(deps, { ...link, provider, settings }, LIMIT, async (context) => provider.check?.(context)).catch(
    async (error: unknown) => {
      if (!(error instanceof NeedsOperator)) return;
      await endGrant(deps, link);
      throw new OtherAccount(error.message);
    },
  );
  return inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `UPDATE connect_links SET used_at = now(), sealed = NULL
       WHERE link_id = (SELECT c.link_id ${USABLE} AND c.link_id = $1::uuid AND c.sealed = $2
                          AND c.granted_at > now() - interval '${WAITS_S} s' FOR UPDATE)`,
      [link.linkId, link.sealedGrant],
    );
    if (rowCount !== 1) return false;
    // The settings may have changed during the check. From here on, their row is locked.
    await openLinked(client, rules, link, changes);
    await mergeSettings(client, rules, link, { changes, isConnected: true });
    return true;
  });
}

/** Revokes a waiting grant at the vendor, unless a location or another link has the same access. Then deletes it. */
export async function endGrant(deps: Deps, held: Held): Promise<void> {
  const grant = await openGrant(deps, held);
  if (grant === undefined) return;
  const authorisation = authorisationOf(grant.provider);
  // guard: revoke-unconfirmed-alone
  if (!(await accessesBut(deps, held, authorisation)).includes(authorisation.access(grant.settings))) {
    const { provider, settings } = grant;
    await askPos(deps, { ...held, provider, settings }, LIMIT, (each) => authorisation.revoke(each)).catch(
      (error: unknown) => {
        // What the vendor refuses to revoke is revoked already.
        if (!(error instanceof NeedsOperator)) throw error;
      },
    );
  }
  const row = [held.linkId, held.sealedGrant];
  await deps.pool.query('UPDATE connect_links SET sealed = NULL WHERE link_id = $1::uuid AND sealed = $2', row);
}

/** SQL of grants that wait. */
const HELD = `SELECT link_id AS "linkId", location_id AS "locationId", integration, sealed AS "sealedGrant"
  FROM connect_links WHERE sealed IS NOT NULL`;

/** Ends the grants that nobody confirmed in time, or whose link has ended. What fails is tried again at the next round. */
export async function endUnconfirmed(deps: Deps & { log: Pick<Log, 'warn'> }): Promise<void> {
  // A confirmation that began in time may take as long as its calls.
  const late = `granted_at < now() - interval '${WAITS_S + LIMIT.seconds} s'`;
  for (const held of (await deps.pool.query<Held>(`${HELD} AND (expires_at <= now() OR ${late})`)).rows) {
    await endGrant(deps, held).catch((error: unknown) => {
      const { linkId, locationId } = held;
      deps.log.warn({ linkId, locationId, problem: describeError(error) }, 'an unconfirmed grant is not revoked yet');
    });
  }
}

/** The accesses that locations have or that wait, without those of one grant or else of one location. */
export async function accessesBut(
  deps: Pick<Deps, 'pool' | 'rules'>,
  { integration, locationId, sealedGrant }: Pick<Held, 'locationId' | 'integration'> & Partial<Held>,
  { access }: Authorisation<unknown>,
): Promise<(string | undefined)[]> {
  const { rows } = await deps.pool.query<Held>(
    `SELECT NULL AS "linkId", location_id AS "locationId", integration, NULL AS "sealedGrant" FROM locations
     WHERE integration = $1 AND reconnect_needed_at IS NULL AND ($3::text IS NOT NULL OR location_id <> $2)
     UNION ALL ${HELD} AND integration = $1 AND sealed IS DISTINCT FROM $3`,
    [integration, locationId, sealedGrant ?? null],
  );
  const decrypt = settingsDecrypter(deps.rules);
  const accesses: (string | undefined)[] = [];
  for (const each of rows) {
    const reads =
      each.sealedGrant === null ? getLocation(deps.pool, each.locationId).then(decrypt) : openGrant(deps, each);
    const found = await reads.catch((error: unknown) => {
      if (!(error instanceof WrongLocation)) throw error;
      return undefined;
    });
    accesses.push(found && access(found.settings));
  }
  return accesses;
}
