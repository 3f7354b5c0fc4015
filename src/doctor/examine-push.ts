import { readConfigOf } from '../config.ts';
import { askHttp, hostOf, kindOf } from './ask-http.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('push');
const CHECK = 'PUSH_JWKS_URL';

/** Checks that tokens of pushes can be verified. */
export async function examinePush(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { PUSH_AUTH, PUSH_JWKS_URL } = readConfigOf(env, 'PUSH_AUTH', 'PUSH_JWKS_URL');
  if (PUSH_AUTH === 'off') {
    return [
      warning(CHECK, 'PUSH_AUTH is "off": whoever reaches this machine can push', 'leave it unset in production'),
    ];
  }
  const host = hostOf(PUSH_JWKS_URL);
  const answer = await askHttp(PUSH_JWKS_URL);
  const toDo = 'look at PUSH_JWKS_URL and the way out of this network; until then every push is answered 401 or 503';
  if (typeof answer === 'string') return [failed(CHECK, `${host}: ${answer}`, toDo)];
  const { keys } = (answer.json ?? {}) as { keys?: unknown };
  if (answer.status !== 200 || !Array.isArray(keys)) {
    return [failed(CHECK, `${host} answers ${kindOf(answer)}, not a key set`, toDo)];
  }
  const usable = keys.filter(isForSignatures).length;
  if (usable === 0) return [failed(CHECK, `${host} answers; keys for RS256: none of ${keys.length}`, toDo)];
  return [ok(CHECK, `${host} answers; keys for RS256: ${usable}`)];
}

function isForSignatures(key: unknown): boolean {
  const { kty, use, alg } = (key ?? {}) as { kty?: unknown; use?: unknown; alg?: unknown };
  return kty === 'RSA' && (use === undefined || use === 'sig') && (alg === undefined || alg === 'RS256');
}
