import type { Pool } from 'pg';
import type { AllowedHosts } from '../egress/allowed-hosts.ts';
import { guardedFetch } from '../egress/guarded-fetch.ts';
import { databaseClock } from '../postgres/database-clock.ts';
import type { LocationDeps } from './check-location.ts';
import { credentialStore } from './credential-store.ts';
import { settingsDecrypter, type SettingsRules } from './locations.ts';

/** Creates what a process other than the service, such as a CLI command, needs for calling POS systems. */
export async function locationDeps(
  pool: Pool,
  rules: SettingsRules,
  allowedHosts: AllowedHosts,
): Promise<LocationDeps> {
  const clock = databaseClock(pool);
  await clock.follow();
  return {
    pool,
    allowedHosts,
    decryptSettings: settingsDecrypter(rules),
    credentialsFor: credentialStore(pool, rules.keys),
    posFetch: guardedFetch(allowedHosts),
    now: clock.now,
  };
}
