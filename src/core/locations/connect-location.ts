import type { Pool } from 'pg';
import { z } from 'zod';
import type { Now } from '../postgres/database-clock.ts';
import { perhapsTaken } from '../domain/classify-error.ts';
import { askPos } from './check-location.ts';
import { credentialStore } from './credential-store.ts';
import {
  WrongLocation,
  getLocation,
  listLocations,
  replaceSettings,
  settingsDecrypter,
  unsealSettings,
  type SettingsRules,
} from './locations.ts';
import type { Connection } from '../domain/provider.ts';
import { issueToken, revokeToken } from './webhook-tokens.ts';
import { webhookUrl } from '../domain/paths.ts';

/** What is done, and what is left to do by hand. A step may contain the new token. */
export const ConnectedLocation = z.object({
  locationId: z.string(),
  tokenId: z.string(),
  done: z.array(z.string()),
  todo: z.array(z.string()),
});

/** For all calls together that connect one location. */
const LIMIT = { seconds: 60, sent: true };
const LABEL = 'provider connect';

/**
 * Makes a location's POS call its webhook with a new token. Earlier tokens stay valid. Settings that the POS returns
 * are merged into the location's settings. The new token is revoked if nothing uses it (`Connection.unused`).
 * @param about.isSeen false if nobody sees `todo`. Then a URL in it is used by nothing
 * @throws WrongLocation, and what the provider throws. Then the new token is revoked only if the POS cannot have it
 */
export async function connectLocation(
  deps: { pool: Pool; rules: SettingsRules & { publicUrl: string }; posFetch: typeof fetch; now: Now },
  locationId: string,
  { isSeen = true }: { isSeen?: boolean } = {},
): Promise<Pick<Connection, 'done' | 'todo'> & { tokenId: string }> {
  const { pool, rules, posFetch, now } = deps;
  const location = await getLocation(pool, locationId);
  const { integration, sealedSettings } = location;
  const { provider, settings } = await settingsDecrypter(rules)(location);
  const locations = (await listLocations(pool)).filter((each) => each.integration === integration).length;
  const { tokenId, token } = await issueToken(pool, { locationId, label: LABEL });
  const url = webhookUrl(rules.publicUrl, { integration, locationId, token });
  const { connect } = provider;
  if (connect === undefined) {
    if (!isSeen) await revokeToken(pool, tokenId);
    return { tokenId, done: [], todo: [`Make the POS post its webhooks to ${url}`] };
  }
  let connection: Connection;
  try {
    const pos = { now, posFetch, credentialsFor: credentialStore(pool, rules.keys) };
    connection = await askPos(pos, { integration, provider, settings }, LIMIT, (context) =>
      connect.call(provider, { ...context, webhookUrl: url, locations }),
    );
  } catch (error) {
    // If the POS may have registered the URL despite the error, its webhooks will use this token.
    if (!perhapsTaken(error)) await revokeToken(pool, tokenId);
    throw error;
  }
  if (connection.settings !== undefined) {
    const before = await unsealSettings(rules, locationId, sealedSettings);
    const merged = { locationId, integration, settings: { ...before, ...connection.settings } };
    const isStored = await replaceSettings(pool, rules, merged, sealedSettings);
    if (!isStored) {
      throw new WrongLocation(
        "the settings of the location were changed meanwhile, so the POS's new settings were not stored. Connect the location again",
      );
    }
  }
  const isLost = !isSeen && connection.todo.some((step) => step.includes(token));
  if (connection.unused === true || isLost) await revokeToken(pool, tokenId);
  return { tokenId, done: connection.done, todo: connection.todo };
}
