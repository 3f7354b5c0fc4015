import type { Config } from '../server/config.ts';
import type { SettingsRules } from '../core/locations/locations.ts';
import { loadProviders } from './load-providers.ts';

/** What a command reads that puts a location, or calls its POS. */
export const LOCATION_VARIABLES = [
  'DATABASE_URL',
  'SETTINGS_KEY',
  'PUBLIC_URL',
  'PROVIDER_MODULES',
  'ALLOW_PRIVATE_HOSTS',
] as const;

/** The rules by which a command reads settings, the same as the service's. */
export async function settingsRules(
  env: Pick<Config, 'SETTINGS_KEY' | 'PUBLIC_URL' | 'PROVIDER_MODULES'>,
): Promise<SettingsRules> {
  return { registry: await loadProviders(env.PROVIDER_MODULES), keys: env.SETTINGS_KEY, publicUrl: env.PUBLIC_URL };
}
