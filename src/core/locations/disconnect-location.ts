import type { Pool } from 'pg';
import { inTransaction } from '../postgres/transactions.ts';
import { askPos, type PosDeps } from './check-location.ts';
import { accessesBut } from './connect-grants.ts';
import { authorisationOf, END_LINKS, mergeSettings } from './connect-links.ts';
import { getLocation, settingsDecrypter, type SettingsRules } from './locations.ts';

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
  const { provider, settings } = await settingsDecrypter(rules)(location);
  const authorisation = authorisationOf(provider);
  const access = authorisation.access(settings);
  // guard: revoke-for-one
  const isShared = access !== undefined && (await accessesBut(deps, location, authorisation)).includes(access);
  const revokes = access !== undefined && !isShared && !location.needsReconnect;
  if (revokes) {
    const limit = { seconds: REVOKE_S, sent: false };
    await askPos(deps, { integration, provider, settings }, limit, (context) => authorisation.revoke(context));
  }
  await inTransaction(pool, async (client) => {
    const changes = Object.fromEntries(authorisation.grants.map((name) => [name, undefined]));
    await mergeSettings(client, rules, { locationId, integration }, { changes, isConnected: false });
    await client.query(END_LINKS, [locationId]);
  });
  return revokes;
}
