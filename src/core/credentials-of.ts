import { credentialsKey } from './keep-credentials.ts';
import type { Credentials, Provider } from './provider.ts';

/**
 * Which row of `credentials` a location's grant is in. Only the provider knows what it stems from, and says so as soon
 * as it wants a token: so it is asked to, gets none, and cannot call anybody, as its time is up.
 * @returns the row's key; undefined where the provider wants none
 */
export async function credentialsOf(
  { integration, check, keepConnected }: Provider,
  settings: unknown,
): Promise<string | undefined> {
  let key: string | undefined;
  const credentials: Credentials = {
    accessToken(wish) {
      key = credentialsKey(integration, wish.seed);
      return Promise.reject(new Error('only its key is wanted'));
    },
  };
  const context = { settings, credentials, now: new Date(), signal: AbortSignal.abort() };
  for (const use of [keepConnected, check]) {
    if (key !== undefined) break;
    try {
      await use?.(context);
    } catch {
      // What it could not do without a token says nothing.
    }
  }
  return key;
}
