import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos } from '../call-pos.ts';
import type { PosAnswer } from '../call-pos.ts';
import { callWithToken } from '../call-with-token.ts';
import { limitRate } from '../limit-rate.ts';
import { tokenOf } from './obtain-token.ts';
import { Refusal } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** Limits by 429 alone: Lightspeed publishes no figures for the K-Series. */
const withinLimits = limitRate([]);

/** The most fields named. An operator knows then where to look. */
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
  const { settings, credentials, signal, now, fetch } = context;
  const { baseUrl, businessLocationId } = settings;
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  return withinLimits(`${baseUrl} ${businessLocationId}`, now, () =>
    callWithToken(credentials, tokenOf(context), (accessToken) =>
      callPos({
        method,
        url: `${baseUrl}${path}`,
        headers: {
          authorization: `Bearer ${accessToken}`,
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...json,
        signal,
        fetch,
      }),
    ),
  );
}

/** The fields that a 400 complains about, each with the rule it breaks, and never with the value sent. */
export function fieldsRefused(json: unknown): { field: string; code: string | undefined }[] {
  const { errors = [] } = Refusal.safeParse(json).data ?? {};
  return errors
    .flatMap(({ field = '', code }) => (isName(field) ? [{ field, code: isName(code) ? code : undefined }] : []))
    .slice(0, FIELDS_MAX);
}

/** Lists the fields for an error message. An empty string if there are none. */
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
  return new NeedsOperator(`Lightspeed refused ${what} with ${httpStatus}${named}: are ${settings} right?`, {
    httpStatus,
  });
}

function isName(word: string | undefined): word is string {
  return word !== undefined && /^[A-Za-z][\w.[\]]{0,60}$/.test(word);
}
