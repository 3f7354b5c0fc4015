import { NeedsOperator, TryAgain, tryAgainWith } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callPos, limitRate, type PosAnswer } from '../call-pos.ts';
import { Refusal, type Settings } from './payloads.ts';

const MINUTE_MS = 60_000;

// https://www.hubrise.com/developers/api/general-concepts#rate-limiting: per connection, that is per token, in windows
// that begin at a round minute, hour and day.
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
  /** True for a list of orders or customers: HubRise allows fewer of those. */
  heavy?: boolean;
  /** True if a 404 means that HubRise has no such thing. */
  mayLack?: boolean;
};

/**
 * Calls HubRise with the connection's token.
 * @throws as `callPos` does; NeedsOperator without a token, and on any other 404: the token belongs to no location, or `baseUrl` is wrong
 */
export async function callHubrise(
  { settings, signal, now, fetch }: Pick<PosContext<Settings>, 'settings' | 'signal' | 'now' | 'fetch'>,
  { method, path, body, heavy = false, mayLack = false }: HubriseRequest,
): Promise<PosAnswer> {
  const { accessToken, baseUrl } = settings;
  if (accessToken === undefined) {
    throw new NeedsOperator('no accessToken yet: expediter provider connect says how HubRise grants one', {
      cause: { code: 'reconnect_needed' },
    });
  }
  const request = async (): Promise<PosAnswer> => {
    const headers = { 'x-access-token': accessToken, accept: 'application/json', 'content-type': 'application/json' };
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    try {
      return await callPos({ method, url: `${baseUrl}${path}`, headers, signal, fetch, ...content });
    } catch (error) {
      throw error instanceof TryAgain && error.httpStatus === 429 ? untilNextWindow(error, now) : error;
    }
  };
  const limited = () => anyRequest(accessToken, now, request);
  const answer = await (heavy ? heavyRequest(accessToken, now, limited) : limited());
  if (answer.status === 404 && !mayLack) {
    const question = 'is accessToken of a location (not of an account), and baseUrl right?';
    throw new NeedsOperator(`HubRise answered 404: ${question}`, { httpStatus: 404 });
  }
  return answer;
}

/** Sets the wait until the current minute ends, the shortest window. HubRise documents no Retry-After. */
function untilNextWindow(error: TryAgain, now: Date): TryAgain {
  const retryAfterMs = error.retryAfterMs ?? MINUTE_MS - (now.getTime() % MINUTE_MS);
  return tryAgainWith(error, { sent: false, retryAfterMs });
}

/** The most fields named. An operator knows then where to look. */
const FIELDS_MAX = 10;

/** Names the status, HubRise's error type and the fields. Never its messages: they quote values. */
export function nameRefusal({ status, json }: Pick<PosAnswer, 'status' | 'json'>): string {
  const { error_type: type = '', errors = [] } = Refusal.safeParse(json).data ?? {};
  const fields = errors.map(({ field }) => field).filter((field) => /^[\w.[\]]{1,60}$/.test(field));
  return [
    status,
    ...(/^[a-z_]{1,60}$/.test(type) ? [type] : []),
    ...(fields.length > 0 ? [`(${fields.slice(0, FIELDS_MAX).join(', ')})`] : []),
  ].join(' ');
}
