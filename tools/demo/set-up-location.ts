import pg from 'pg';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { webhookUrl } from '../../src/core/domain/paths.ts';
import type { Registry } from '../../src/core/domain/provider.ts';
import { registry as ours } from '../../src/providers/index.ts';
import { allowedHosts } from '../../world/network/allowed-loopback.ts';
import { PLACES } from './places.ts';

/** Does what `expediter location put` and `expediter token issue` do. @returns the webhook's URL */
export async function setUpLocation(about: {
  databaseUrl: string;
  settingsKey: string;
  publicUrl: string;
  locationId: string;
  integration: string;
  settings: unknown;
  /** The providers; by default ours, without the providers of PROVIDER_MODULES. */
  registry?: Registry;
}): Promise<string> {
  const { publicUrl, locationId, integration, settings, registry = ours } = about;
  const pool = new pg.Pool({ connectionString: about.databaseUrl, max: 1 });
  try {
    const keys = parseSettingsKeys(about.settingsKey);
    const rules = { registry, keys, publicUrl, allowedHosts };
    await putLocation(pool, rules, { locationId, integration, settings, ...PLACES[locationId] });
    const { token } = await issueToken(pool, { locationId, label: 'demo' });
    return webhookUrl(publicUrl, { integration, locationId, token });
  } finally {
    await pool.end();
  }
}
