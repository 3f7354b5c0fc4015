import { callPos, callWithToken, limitRate, NeedsOperator, routeOf } from 'expediter-kit';
import type { PosAnswer, PosContext, PosRequest } from 'expediter-kit';
import { tokenOf } from './obtain-token.ts';
import { Refused, type Settings } from './payloads.ts';

/** "Limits": 60 requests a minute for each store. */
const withinLimits = limitRate([{ requests: 60, seconds: 60 }]);

/**
 * Calls Acme about the location's store.
 * @param request.path the end of the URL, after the store's id. It begins with a slash. Undefined for the store itself
 * @returns a 2xx, or a 4xx that refuses the request
 * @throws as callPos, limitRate and Credentials do; NeedsOperator if Acme does not know the store
 */
export async function callAcme(
  context: PosContext<Settings>,
  { method, path = '', headers, json }: Pick<PosRequest, 'method' | 'headers'> & { path?: string; json?: unknown },
): Promise<PosAnswer> {
  const { settings, credentials, signal, now, fetch } = context;
  const { baseUrl, storeId } = settings;
  const answer = await withinLimits(storeId, now, () =>
    callWithToken(credentials, tokenOf(context), (accessToken) =>
      callPos({
        method,
        url: `${baseUrl}/v1/stores/${storeId}${path}`,
        route: `/v1/stores/{storeId}${routeOf(path)}`,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${accessToken}`, ...headers },
        ...(json !== undefined && { body: JSON.stringify(json) }),
        signal,
        fetch,
      }),
    ),
  );
  if (answer.status === 404 && codeIn(answer) !== 'unknown_order') {
    throw new NeedsOperator('Acme does not know this store: check storeId and baseUrl', { httpStatus: 404 });
  }
  return answer;
}

/** Returns the code of a refusal, but not its message, which may quote the guest. */
export function codeIn({ json }: PosAnswer): string {
  return Refused.safeParse(json).data?.error.code ?? 'no code';
}
