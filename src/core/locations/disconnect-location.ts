import type { Pool } from 'pg';
import { inTransaction } from '../postgres/transactions.ts';
import { askPos, type PosDeps } from './check-location.ts';
import { authorisationOf, mergeSettings } from './connect-links.ts';
import { getLocation, listLocations, settingsDecrypter, WrongLocation, type SettingsRules } from './locations.ts';

/** Time limit in seconds for all calls to the vendor together. */
const REVOKE_S = 20;

/**
 * Ends our access to a location's POS: revokes it at the vendor, removes it from the settings, and ends the location's
 * connect links. Its orders are held until the restaurant grants access again. If another location shares the access, it
 * is not revoked at the vendor, because that location would lose it too.
 * @returns whether the access was revoked at the vendor
 * @throws WrongLocation; NeedsOperator, TryAgain if the vendor did not revoke it. Then nothing has changed
 */
export async function disconnectLocation(
  deps: PosDeps & { pool: Pool; rules: SettingsRules },
  locationId: string,
): Promise<boolean> {
  const { pool, rules } = deps;
  const location = await getLocation(pool, locationId);
  const { integration } = location;
  const decrypt = settingsDecrypter(rules);
  const { provider, settings } = await decrypt(location);
  const authorisation = authorisationOf(provider);
  const access = authorisation.access(settings);
  // guard: revoke-for-one
  const isShared = access !== undefined && (await accessesOfOthers()).includes(access);
  const revokes = access !== undefined && !isShared && !location.needsReconnect;
  if (revokes) {
    const limit = { seconds: REVOKE_S, sent: false };
    await askPos(deps, { integration, provider, settings }, limit, (context) => authorisation.revoke(context));
  }
  await inTransaction(pool, async (client) => {
    const changes = Object.fromEntries(authorisation.grants.map((name) => [name, undefined]));
    await mergeSettings(client, rules, { locationId, integration }, { changes, isConnected: false });
    await client.query('DELETE FROM connect_links WHERE location_id = $1 AND used_at IS NULL', [locationId]);
  });
  return revokes;

  async function accessesOfOthers(): Promise<(string | undefined)[]> {
    const others = (await listLocations(pool)).filter(
      (each) => each.integration === integration && each.locationId !== locationId && each.reconnectNeededAt === null,
    );
    const accesses: (string | undefined)[] = [];
    for (const other of others) {
      const stored = await getLocation(pool, other.locationId);
      const opened = await decrypt(stored).catch((error: unknown) => {
        if (error instanceof WrongLocation) return undefined;
        throw error;
      });
      accesses.push(opened && authorisation.access(opened.settings));
    }
    return accesses;
  }
}
