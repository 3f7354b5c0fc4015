import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { issueToken } from '../../../src/core/locations/webhook-tokens.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { registry } from '../../../src/providers/index.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';

/** A sender of webhooks, with its credentials. */
export type Sender = { locationId: string; token: string; secret: string };

export type BenchDatabase = { databaseUrl: string; senders: Sender[] };

export const SETTINGS_KEY = `bench:${Buffer.alloc(32, 7).toString('base64')}`;

/**
 * Makes a new, migrated database with locations of the integration `standard`, each with a secret and a token.
 * @param about.pos the POS URLs for orders and cancels, if orders will be placed
 * @param about.prepare gets the database before its migration
 */
export async function prepareBenchDatabase(
  serverUrl: string,
  about: {
    name: string;
    locations: number;
    pos?: { ordersUrl: string; cancelUrl: string };
    prepare?: (databaseUrl: string) => Promise<void>;
  },
): Promise<BenchDatabase> {
  const server = new pg.Client(serverUrl);
  await server.connect();
  await server.query(`DROP DATABASE IF EXISTS ${about.name} WITH (FORCE)`);
  await server.query(`CREATE DATABASE ${about.name}`);
  await server.end();
  const url = new URL(serverUrl);
  url.pathname = `/${about.name}`;
  const databaseUrl = url.href;
  await about.prepare?.(databaseUrl);
  await migrate(databaseUrl);

  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 });
  await ensureWebhookPartitions(pool);
  const keys = parseSettingsKeys(SETTINGS_KEY);
  const senders = await Promise.all(
    Array.from({ length: about.locations }, async (_, nth): Promise<Sender> => {
      const locationId = `club-${nth + 1}`;
      const secret = `whsec_${randomBytes(32).toString('base64')}`;
      const settings = { ...(about.pos ?? { ordersUrl: 'http://127.0.0.1:9/orders' }), secret };
      await putLocation(
        pool,
        { registry, keys, publicUrl: undefined, allowedHosts },
        { locationId, integration: 'standard', settings },
      );
      const { token } = await issueToken(pool, { locationId });
      return { locationId, token, secret };
    }),
  );
  await pool.end();
  return { databaseUrl, senders };
}
