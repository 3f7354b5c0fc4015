import pg from 'pg';
import type { CertifyDeps } from '../../../src/certify/certify.ts';
import { guardedFetch } from '../../../src/core/egress/guarded-fetch.ts';
import { databaseClock } from '../../../src/core/postgres/database-clock.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import { settingsOpener } from '../../../src/core/locations/locations.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import type { Registry } from '../../../src/core/domain/provider.ts';
import { registry as ownProviders } from '../../../src/providers/index.ts';
import { allowedHosts } from '../../support/allowed-loopback.ts';
import type { System } from '../../support/start-system.ts';

/**
 * What `expediter certify` makes of a system's environment. Its pool is the caller's to end.
 * @param others providers beside our own
 */
export async function certifyDeps(
  system: System,
  others: Registry = new Map(),
): Promise<CertifyDeps & { pool: pg.Pool }> {
  const pool = new pg.Pool({ connectionString: system.env['DATABASE_URL'], max: 20 });
  const clock = databaseClock(pool);
  await clock.follow();
  const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
  const publicUrl = system.env['PUBLIC_URL'] ?? system.urls[0] ?? '';
  return {
    pool,
    keys,
    publicUrl,
    allowedHosts,
    open: settingsOpener({ registry: new Map([...ownProviders, ...others]), keys, publicUrl }),
    credentialsFor: credentialStore(pool, keys),
    posFetch: guardedFetch(allowedHosts),
    now: clock.now,
  };
}
