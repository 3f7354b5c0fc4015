import { algorithmsOf } from '../http/algorithms-of.ts';
import { askHttp, hostOf, kindOf } from './ask-http.ts';
import { reporterOf, type Finding, type Part } from './finding.ts';

/** A key set that is fetched from a URL, and what it has to verify. */
export type KeySet = { part: Part; check: string; url: string; algorithms: readonly string[]; toDo: string };

/** Checks that a key set can be fetched, and has a key for one of the algorithms. */
export async function examineKeySet({ part, check, url, algorithms, toDo }: KeySet): Promise<Finding> {
  const { ok, failed } = reporterOf(part);
  const host = hostOf(url);
  const answer = await askHttp(url);
  if (typeof answer === 'string') return failed(check, `${host}: ${answer}`, toDo);
  const { keys } = (answer.json ?? {}) as { keys?: unknown };
  if (answer.status !== 200 || !Array.isArray(keys)) {
    return failed(check, `${host} answers ${kindOf(answer)}, not a key set`, toDo);
  }
  const usable = keys.filter((key) => algorithms.some((algorithm) => isFor(algorithm, key))).length;
  const words = `${host} answers; keys for ${algorithms.join(', ')}`;
  if (usable === 0) return failed(check, `${words}: none of ${keys.length}`, toDo);
  return ok(check, `${words}: ${usable}`);
}

function isFor(algorithm: string, key: unknown): boolean {
  const jwk = (key ?? {}) as Record<string, unknown>;
  const { use, alg } = jwk;
  return (
    algorithmsOf(jwk)?.includes(algorithm) === true &&
    (use === undefined || use === 'sig') &&
    (alg === undefined || alg === algorithm)
  );
}
