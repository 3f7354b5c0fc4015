import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import type { Config } from '../../config/config.ts';
import type { Registry } from '../../core/domain/provider.ts';
import { guardedFetch } from '../../core/egress/guarded-fetch.ts';
import type { LocationDeps } from '../../core/locations/check-location.ts';
import { credentialStore } from '../../core/locations/credential-store.ts';
import { settingsDecrypter } from '../../core/locations/locations.ts';

export type Providers = Omit<LocationDeps, 'pool' | 'now'> & { registry: Registry };

declare module 'fastify' {
  interface FastifyInstance {
    providers: Providers;
  }
}

/** The integrations, and what every call to a POS needs. */
export const providers = fp(
  async (app: FastifyInstance, { config, registry }: { config: Config; registry: Registry }) => {
    const { SETTINGS_KEY: keys, ALLOW_PRIVATE_HOSTS: allowedHosts } = config;
    app.decorate('providers', {
      registry,
      decryptSettings: settingsDecrypter({ registry, keys, publicUrl: config.PUBLIC_URL }),
      credentialsFor: credentialStore(app.database.pool, keys),
      posFetch: guardedFetch(allowedHosts),
      allowedHosts,
    });
  },
  { name: 'providers', dependencies: ['database'] },
);
