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

/**
 * Makes one request as the client and for the restaurant of the settings.
 * @param path the path after `baseUrl`
 * @throws as `callPos` and `Credentials` do; TryAgain with `sent: false` while the restaurant's limit is reached
 */
export function callToast(
  context: PosContext<Settings>,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<PosAnswer> {
  const { settings, now, signal, credentials, fetch } = context;
  const { baseUrl, restaurantGuid } = settings;
  return callWithToken(credentials, tokenOf(context), (accessToken) =>
    withinRate(`${baseUrl} ${restaurantGuid}`, now, () =>
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
    ),
  );
}
