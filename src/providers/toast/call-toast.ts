import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { callPos, limitRate, type PosAnswer, quoteRefusal } from '../call-pos.ts';
import { LoginAnswer, RATE_LIMIT_RESET, type Settings } from './payloads.ts';
import { callWithBearer, callWithToken } from '../oauth.ts';

/** Maximum logins per hour: "Do not request a new authentication token more than twice in a one-hour period." */
const LOGINS = 2;
const HOUR_MS = 3_600_000;

/** The times at which Toast answered a login, by client. The map stays small: its clients come from the settings. */
const answered = new Map<string, readonly number[]>();

/** The settings that an access token depends on. All restaurants of a client share its token. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { baseUrl, clientId, clientSecret } = context.settings;
  return {
    seed: { baseUrl, clientId, clientSecret },
    obtain: (_refreshToken, signal) => obtainToken({ ...context, signal }),
  };
}

/**
 * Logs in. Toast blocks a client that logs in too often, so a client waits for an operator after a refused login, and
 * after two logins in an hour.
 * https://doc.toasttab.com/doc/devguide/authentication.html,
 * https://doc.toasttab.com/doc/devguide/apiAuthenticationRateLimit.html
 */
async function obtainToken({ settings, now, signal, fetch }: PosContext<Settings>): Promise<Grant> {
  const { baseUrl, clientId, clientSecret } = settings;
  const client = JSON.stringify([baseUrl, clientId, clientSecret]);
  const recent = (answered.get(client) ?? []).filter((at) => at > now.getTime() - HOUR_MS);
  if (recent.length >= LOGINS) {
    throw new NeedsOperator(
      'Toast allows two logins an hour, and both are used: check clientId and clientSecret, and that Toast has not blocked them',
    );
  }
  const count = (): void => void answered.set(client, [...recent, now.getTime()]);

  const answer = await callPos({
    method: 'POST',
    url: `${baseUrl}/authentication/v1/authentication/login`,
    route: '/authentication/v1/authentication/login',
    headers: { accept: 'application/json' },
    json: { clientId, clientSecret, userAccessType: 'TOAST_MACHINE_CLIENT' },
    resetHeader: RATE_LIMIT_RESET,
    signal,
    fetch,
  })
    .catch((error: unknown) => {
      // An error without a status means that the request did not reach Toast.
      if (error instanceof NeedsOperator && error.httpStatus !== undefined) count();
      throw error;
    })
    .catch(
      quoteRefusal([401, 403], (status) => `Toast refuses the login (${status}): check clientId and clientSecret`),
    );
  count();

  const { status: httpStatus } = answer;
  if (httpStatus >= 300) {
    throw new NeedsOperator(`Toast answered the login with ${httpStatus}: check baseUrl`, { httpStatus });
  }
  const granted = LoginAnswer.safeParse(answer.json);
  if (!granted.success) throw new TryAgain("Toast's answer to the login has no token", { sent: false, httpStatus });
  return granted.data.token;
}

/**
 * Seconds for one request: "The Toast orders API has a response time of up to 30 seconds", and two for the network.
 * https://doc.toasttab.com/doc/devguide/apiHandlingRequestTimeouts.html, read 2026-11-23
 */
export const WITHIN_S = 32;

/** Explains a refusal. Toast does not document its status for an unknown restaurant, so any status may mean that. */
export function refusalOf({ status: httpStatus }: PosAnswer, what: string): NeedsOperator {
  return new NeedsOperator(`Toast refuses to show ${what} (${httpStatus}): check restaurantGuid and baseUrl`, {
    httpStatus,
  });
}

/** Limits per restaurant, in fixed windows: https://doc.toasttab.com/doc/devguide/apiRateLimiting.html */
const withinRate = limitRate([
  { requests: 20, seconds: 1 },
  { requests: 10_000, seconds: 900 },
]);

/** The limit of the whole account, which `X-Toast-RateLimit-By` in a 429 reports. Its size is not documented. */
const withinAccount = limitRate([]);

/**
 * Makes one request with the client's token, for the restaurant in the settings.
 * @param path the path after `baseUrl`
 * @throws as `callPos` and `Credentials` do; TryAgain `sent: false` at the limit of the restaurant or the account
 */
export function callToast(
  context: PosContext<Settings>,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<PosAnswer> {
  const { settings, now, credentials } = context;
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
      callWithBearer({ ...context, fetch }, accessToken, {
        method,
        path,
        headers: { 'toast-restaurant-external-id': restaurantGuid },
        json: body,
        resetHeader: RATE_LIMIT_RESET,
        withinMs: WITHIN_S * 1_000,
      }),
    ).catch((error: unknown) => {
      if (limitsAccount) return withinAccount(account, now, () => Promise.reject(error));
      throw error;
    });
  });
}
