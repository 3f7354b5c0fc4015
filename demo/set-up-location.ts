import pg from 'pg';
import { putLocation } from '../src/core/locations.ts';
import { parseSettingsKeys } from '../src/core/settings-key.ts';
import { issueToken } from '../src/core/webhook-tokens.ts';
import { registry } from '../src/providers/index.ts';

/** What `expediter location put` and `expediter token issue` do. @returns the path and query of the webhook's URL */
export async function setUpLocation(about: {
  databaseUrl: string;
  settingsKey: string;
  locationId: string;
  settings: unknown;
}): Promise<string> {
  const { locationId, settings } = about;
  const pool = new pg.Pool({ connectionString: about.databaseUrl, max: 1 });
  try {
    const keys = parseSettingsKeys(about.settingsKey);
    await putLocation(
      pool,
      { registry, keys, publicUrl: undefined },
      { locationId, integration: 'standard', settings },
    );
    const { token, integration } = await issueToken(pool, { locationId, label: 'demo' });
    return `/webhook/${integration}/${locationId}?token=${token}`;
  } finally {
    await pool.end();
  }
}
