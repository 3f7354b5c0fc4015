import { NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos, limitRate, type PosAnswer, routeOf } from '../call-pos.ts';
import { Refusal, type Settings } from './payloads.ts';

const MINUTE_MS = 60_000;

// The limits hold per connection, that is per token. Their windows begin at a full minute, hour and day:
// https://www.hubrise.com/developers/api/general-concepts#rate-limiting
const anyRequest = limitRate([
  { requests: 500, seconds: 60 },
  { requests: 2500, seconds: 3600 },
  { requests: 10_000, seconds: 86_400 },
]);
const heavyRequest = limitRate([{ requests: 10, seconds: 60 }]);

export type HubriseRequest = {
  method: 'GET' | 'POST' | 'PATCH';
  /** The path after `baseUrl`. */
  path: string;
  body?: object;
  /** True for a list of orders or customers, which has a lower rate limit. */
  heavy?: boolean;
  /** True if a 404 means that the requested object does not exist. */
  allow404?: boolean;
};

/**
 * Calls HubRise with the connection's token.
 * @throws as `callPos` does; NeedsOperator if there is no token, or on a 404 without `allow404`: then `baseUrl` is
 *   wrong, or the token belongs to no location
 */
export async function callHubrise(
  { settings, signal, now, fetch }: Pick<PosContext<Settings>, 'settings' | 'signal' | 'now' | 'fetch'>,
  { method, path, body, heavy = false, allow404 = false }: HubriseRequest,
): Promise<PosAnswer> {
  const { accessToken, baseUrl } = settings;
  if (accessToken === undefined) {
    throw new NeedsOperator('accessToken is missing: run expediter provider connect, which says how to get one', {
      cause: { code: 'reconnect_needed' },
    });
  }
  const request = async (): Promise<PosAnswer> => {
    const headers = { 'x-access-token': accessToken, accept: 'application/json', 'content-type': 'application/json' };
    try {
      return await callPos({ method, url: baseUrl + path, route: routeOf(path), headers, json: body, signal, fetch });
    } catch (error) {
      throw error instanceof TryAgain && error.httpStatus === 429 ? untilNextWindow(error, now) : error;
    }
  };
  const limited = () => anyRequest(accessToken, now, request);
  const answer = await (heavy ? heavyRequest(accessToken, now, limited) : limited());
  if (answer.status === 404 && !allow404) {
    const advice = 'check baseUrl, and that accessToken belongs to a location, not to an account';
    throw new NeedsOperator(`HubRise answered 404: ${advice}`, { httpStatus: 404 });
  }
  return answer;
}

/** Sets the wait to the end of the minute, the shortest window, because HubRise documents no Retry-After. */
function untilNextWindow(error: TryAgain, now: Date): TryAgain {
  const retryAfterMs = error.retryAfterMs ?? MINUTE_MS - (now.getTime() % MINUTE_MS);
  return tryAgainWith(error, { sent: false, retryAfterMs });
}

/** Explains a refusal that only an operator can end. @param setting the setting that may be wrong */
export function refusalOf(answer: PosAnswer, what: string, setting?: string): NeedsOperator {
  const advice = setting === undefined ? '' : `: check ${setting}`;
  return new NeedsOperator(`HubRise refused ${what} with ${nameRefusal(answer)}${advice}`, {
    httpStatus: answer.status,
  });
}

/** Maximum number of fields named in an error. */
const FIELDS_MAX = 10;

/** Names the status, HubRise's error type and the fields. Leaves out the messages, because they quote values. */
export function nameRefusal({ status, json }: Pick<PosAnswer, 'status' | 'json'>): string {
  const { error_type: type = '', errors = [] } = Refusal.safeParse(json).data ?? {};
  const fields = errors.map(({ field }) => field).filter((field) => /^[\w.[\]]{1,60}$/.test(field));
  return [
    status,
    ...(/^[a-z_]{1,60}$/.test(type) ? [type] : []),
    ...(fields.length > 0 ? [`(${fields.slice(0, FIELDS_MAX).join(', ')})`] : []),
  ].join(' ');
}
