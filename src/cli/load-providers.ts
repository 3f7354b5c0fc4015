import type { Registry } from '../core/domain/provider.ts';

/** Loads the providers as the service does. Most commands need none, and start in half the time without. */
export async function loadProviders(moduleNames: readonly string[]): Promise<Registry> {
  const providers = await import('../providers/index.ts');
  return providers.loadProviders(moduleNames);
}
