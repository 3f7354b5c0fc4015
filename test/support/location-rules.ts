import { z } from 'zod';
import type { Provider } from '../../src/core/domain/provider.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { allowedHosts } from '../../world/network/allowed-loopback.ts';

export const KEYS = parseSettingsKeys(`k1:${Buffer.alloc(32, 7).toString('base64')}`);

/** A provider that takes all orders and does no more. */
export const plainProvider = (integration: string, about: Partial<Provider> = {}): Provider => ({
  integration,
  settings: z.object({}),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
  ...about,
});

/** By what locations of these providers are put, and their settings opened. */
export const locationRules = (...providers: readonly Provider[]) => ({
  registry: new Map(providers.map((provider) => [provider.integration, provider])),
  keys: KEYS,
  publicUrl: undefined,
  allowedHosts,
});
