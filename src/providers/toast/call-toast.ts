import type { PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callWithToken } from '../call-with-token.ts';
import { limitRate } from '../limit-rate.ts';
import { tokenOf } from './obtain-token.ts';
import { RATE_LIMIT_RESET } from './payloads.ts';
import type { Settings } from './payloads.ts';

/**
 * Seconds for one request. "The Toast orders API has a response time of up to 30 seconds"; the rest is for the way.
 * https://doc.toasttab.com/doc/devguide/apiHandlingRequestTimeouts.html, read 2026-11-23
 */
export const WITHIN_S = 32;

/** Limits per restaurant, in fixed windows: https://doc.toasttab.com/doc/devguide/apiRateLimiting.html */
const withinRate = limitRate([
  { requests: 20, seconds: 1 },
  { requests: 10_000, seconds: 900 },
]);

/** What limits the whole account, as a 429 says in `X-Toast-RateLimit-By`. Its figures are not documented. */
const withinAccount = limitRate([]);

/**
 * Makes one request as the client and for the restaurant of the settings.
 * @param path the path after `baseUrl`
 * @throws as `callPos` and `Credentials` do; TryAgain with `sent: false` while the restaurant's limit is reached, or the account's
 */
export function callToast(
  context: PosContext<Settings>,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<PosAnswer> {
  const { settings, now, signal, credentials } = context;
  const { baseUrl, clientId, restaurantGuid } = settings;
  const account = `${baseUrl} ${clientId}`;
  let limitsAccount = false;
  const fetch: typeof context.fetch = async (...request) => {
    const response = await context.fetch(...request);
    limitsAccount = response.headers.get('x-toast-ratelimit-by') === 'ACCOUNT';
    return response;
  };
  return callWithToken(credentials, tokenOf(context), async (accessToken) => {
    await withinAccount(account, now, () => Promise.resolve());
    return withinRate(`${baseUrl} ${restaurantGuid}`, now, () =>
      callPos({
        method,
        url: `${baseUrl}${path}`,
        headers: {
          authorization: `Bearer ${accessToken}`,
          'toast-restaurant-external-id': restaurantGuid,
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        resetHeader: RATE_LIMIT_RESET,
        signal,
        withinMs: WITHIN_S * 1_000,
        fetch,
      }),
    ).catch((error: unknown) => {
      if (limitsAccount) return withinAccount(account, now, () => Promise.reject(error));
      throw error;
    });
  });
}
