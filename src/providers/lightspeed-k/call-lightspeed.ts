import type { ZodType } from 'zod';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Credentials, Grant, PosContext } from '../../core/domain/provider.ts';
import { callWithBearer, callWithToken, oauthGrant } from '../oauth.ts';
import { Refusal, type Settings, TokenGranted, TokenRefused } from './payloads.ts';
import { limitRate, type PosAnswer } from '../call-pos.ts';

/** Seconds after which an unused refresh token expires. */
const REFRESH_S = 14 * 86_400;

const RECONNECT =
  'reconnect needed: let the restaurant authorise the API client again, and put the new refreshToken into the settings';

/**
 * The settings that an access token depends on. A new authorisation brings a new refresh token, and so a new grant. A
 * new secret or token URL of the same client keeps the grant, because only the stored grant has a valid refresh token.
 */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientSecret, tokenUrl = '' } = context.settings;
  return {
    seed: grantSeed(context.settings),
    proof: { clientSecret, tokenUrl },
    obtain: (lastRefreshToken, signal) =>
      obtainToken({ ...context, signal }, lastRefreshToken ?? context.settings.refreshToken),
  };
}

export function grantSeed({ baseUrl, clientId, refreshToken }: Settings): Record<string, string> {
  return { baseUrl, clientId, refreshToken };
}

/**
 * Exchanges a single-use refresh token: https://api-portal.lsk.lightspeed.app/guides/tutorials/authentication-tutorial
 * @param context.signal the signal of `obtain`, not of one order: an aborted request would use up the refresh token
 * @throws NeedsOperator `reconnect needed` if the refresh token is used or over 14 days old
 */
async function obtainToken(context: PosContext<Settings>, refreshToken: string): Promise<Grant> {
  const { baseUrl, tokenUrl = `${baseUrl}/oauth/token`, clientId, clientSecret } = context.settings;
  const { access_token, expires_in, refresh_token } = await oauthGrant(context, {
    pos: 'Lightspeed',
    url: tokenUrl,
    basic: [clientId, clientSecret],
    form: { grant_type: 'refresh_token', refresh_token: refreshToken },
    // If the answer cannot be read, the next attempt shows whether this attempt used up the refresh token.
    granted: TokenGranted,
    refused,
  });
  return { accessToken: access_token, expiresIn: expires_in, refreshToken: refresh_token, lastsS: REFRESH_S };
}

function refused(httpStatus: number, json?: unknown): string | NeedsOperator {
  const { error = '' } = TokenRefused.safeParse(json).data ?? {};
  if (error === 'invalid_grant') {
    return new NeedsOperator(RECONNECT, { httpStatus, cause: { code: 'reconnect_needed', httpStatus } });
  }
  // Lightspeed does not document a 401 here. In OAuth it may mean a wrong client or a wrong refresh token.
  if (httpStatus === 401) {
    return `Lightspeed refused the request for a token with 401: either clientId and clientSecret are wrong, or ${RECONNECT}`;
  }
  const named = /^[a-z_]{1,40}$/.test(error) ? `, ${error}` : '';
  return `Lightspeed grants no token (${httpStatus}${named}): check clientId, clientSecret, baseUrl and tokenUrl`;
}

/** Lightspeed publishes no request limits for the K-Series, so requests wait only after a 429. */
const withinLimits = limitRate([]);

const FIELDS_MAX = 10;

/**
 * Calls the API for the location.
 * @param path the path after `baseUrl`
 * @throws as `callPos` and `Credentials` do
 */
export function callLightspeed(
  context: PosContext<Settings>,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object,
): Promise<PosAnswer> {
  const { settings, credentials, now } = context;
  const { baseUrl, businessLocationId } = settings;
  return withinLimits(`${baseUrl} ${businessLocationId}`, now, () =>
    callWithToken(credentials, tokenOf(context), (accessToken) =>
      callWithBearer(context, accessToken, { method, path, json: body }),
    ),
  );
}

/** The fields that a 400 names, each with the code of the broken rule, but never the value that we sent. */
export function fieldsRefused(json: unknown): { field: string; code: string | undefined }[] {
  const { errors = [] } = Refusal.safeParse(json).data ?? {};
  return errors
    .flatMap(({ field = '', code }) => (isName(field) ? [{ field, code: isName(code) ? code : undefined }] : []))
    .slice(0, FIELDS_MAX);
}

export function listFields(fields: ReturnType<typeof fieldsRefused>): string {
  const listed = fields.map(({ field, code }) => (code === undefined ? field : `${field} (${code})`));
  return listed.length === 0 ? '' : ` for ${listed.join(', ')}`;
}

/**
 * Explains a 4xx to a request that is not about an order.
 * @param what the request, for the message, as in "the webhook"
 * @param settings the settings that may be wrong
 */
export function refusalOf({ status: httpStatus, json }: PosAnswer, what: string, settings: string): NeedsOperator {
  const named = listFields(fieldsRefused(json));
  return new NeedsOperator(`Lightspeed refused ${what} with ${httpStatus}${named}: check ${settings}`, {
    httpStatus,
  });
}

/**
 * Reads an answer that is not about an order.
 * @param what the asked thing, for the message, as in "the list of locations"
 * @param settings the settings that may be wrong
 * @throws NeedsOperator
 */
export function readAnswer<Shape>(shape: ZodType<Shape>, answer: PosAnswer, what: string, settings: string): Shape {
  if (answer.status >= 300) throw refusalOf(answer, what, settings);
  const result = shape.safeParse(answer.json);
  if (!result.success) throw new NeedsOperator(`Lightspeed's answer about ${what} cannot be read: check baseUrl`);
  return result.data;
}

function isName(word: string | undefined): word is string {
  return word !== undefined && /^[A-Za-z][\w.[\]]{0,60}$/.test(word);
}
