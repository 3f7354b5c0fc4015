import { PubSub } from '@google-cloud/pubsub';
import type pg from 'pg';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { registry } from '../../src/providers/index.ts';
import { ALLOW_PRIVATE_HOSTS, allowedHosts } from '../../world/network/allowed-loopback.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPubsub } from '../../world/pubsub/start-pubsub.ts';

/** A platform and a Pub/Sub without faults. */
export type QuietWorld = {
  platform: OrderingPlatform;
  /** The environment of the processes, whose pushes need no token. */
  env: Record<string, string>;
  /** Adds a location. @returns its path for webhooks, with a token */
  open(pool: pg.Pool, location: { locationId: string; integration: string; settings: object }): Promise<string>;
  stop(): Promise<unknown>;
};

const PROJECT = 'quiet';
const SETTINGS_KEY = `quiet:${Buffer.alloc(32, 7).toString('base64')}`;

/** @param publicUrl of the processes, if they have one */
export async function startQuietWorld(databaseUrl: string, publicUrl?: string): Promise<QuietWorld> {
  const [pubsub, platform] = await Promise.all([startPubsub(), startOrderingPlatform()]);
  const client = new PubSub({ projectId: PROJECT, apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic('order-status');
  await client.close();
  const rules = { registry, keys: parseSettingsKeys(SETTINGS_KEY), publicUrl, allowedHosts };
  return {
    platform,
    env: {
      DATABASE_URL: databaseUrl,
      HOST: '127.0.0.1',
      ORDER_API_URL: platform.url,
      GOOGLE_CLOUD_PROJECT: PROJECT,
      PUBSUB_EMULATOR_HOST: pubsub.host,
      PUSH_AUTH: 'off',
      SETTINGS_KEY,
      ALLOW_PRIVATE_HOSTS,
      DRAIN_DELAY_MS: '0',
      ...(publicUrl !== undefined && { PUBLIC_URL: publicUrl }),
    },
    async open(pool, location) {
      await putLocation(pool, rules, location);
      const { token } = await issueToken(pool, location);
      return `/webhook/${location.integration}/${location.locationId}?token=${token}`;
    },
    stop: () => Promise.all([pubsub.stop(), platform.stop()]),
  };
}
