import { callPos, limitRate, NeedsOperator } from 'expediter-kit';
import type { PosAnswer, PosContext, PosRequest } from 'expediter-kit';
import { Refused, type Settings } from './payloads.ts';

/** "Limits": 60 requests a minute for each store. */
const withinLimits = limitRate([{ requests: 60, seconds: 60 }]);

/**
 * Calls Acme about the location's store.
 * @param request.path behind the store's own, beginning with a slash
 * @returns a 2xx, or a refusal of what was asked
 * @throws as callPos and limitRate do; NeedsOperator where Acme does not know the store
 */
export async function callAcme(
  { settings, signal, now, fetch }: PosContext<Settings>,
  { method, path = '', headers, json }: Pick<PosRequest, 'method' | 'headers'> & { path?: string; json?: unknown },
): Promise<PosAnswer> {
  const { baseUrl, storeId, apiKey } = settings;
  const answer = await withinLimits(storeId, now, () =>
    callPos({
      method,
      url: `${baseUrl}/v1/stores/${storeId}${path}`,
      headers: { 'content-type': 'application/json', 'x-api-key': apiKey, ...headers },
      ...(json !== undefined && { body: JSON.stringify(json) }),
      signal,
      fetch,
    }),
  );
  if (answer.status === 404) {
    throw new NeedsOperator('Acme knows no such store: are storeId and baseUrl right?', { httpStatus: 404 });
  }
  return answer;
}

/** Acme's own word for a refusal; never its message, which may quote the guest. */
export function codeIn({ json }: PosAnswer): string {
  return Refused.safeParse(json).data?.error.code ?? 'no code';
}
