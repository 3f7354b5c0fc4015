import type { Provider } from '../domain/provider.ts';
import { listWebhooks } from './list-webhooks.ts';
import { readWebhook } from './stored-webhook.ts';
import { retranslate, type RetranslateDeps } from './retranslate.ts';

/** How many of a location's newest dropped webhooks are tried. */
const TRIED = 10;
/** What settings can cure. */
const OF_SETTINGS = /^(signature_wrong|password_wrong|key_unknown|signed_url_unknown|not_authentic)$/;

/**
 * Tries settings that are not stored yet on the newest webhooks that were dropped because their sender was not proven.
 * @returns true if there are such webhooks, and all would be dropped again
 */
export async function staysRefused(
  deps: RetranslateDeps,
  at: { locationId: string; integration: string },
  usable: { provider: Provider; settings: unknown },
): Promise<boolean> {
  const filter = { ...at, locations: [at.locationId], outcome: 'dropped', replayable: 'open' } as const;
  const { webhooks } = await listWebhooks(deps.pool, filter, { oldestFirst: false, limit: TRIED });
  let tried = 0;
  for (const key of webhooks.filter(({ cause }) => OF_SETTINGS.test(cause?.code ?? ''))) {
    const stored = await readWebhook(deps, key);
    if (stored === undefined || stored.gone) continue;
    const again = await retranslate({ ...deps, decryptSettings: async () => usable }, stored, { isChosen: true });
    if ('refused' in again) continue;
    if (!OF_SETTINGS.test(again.dropped?.cause.code ?? '')) return false;
    tried += 1;
  }
  return tried > 0;
}
