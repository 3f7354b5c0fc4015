import { isLoopback, readConfigOf } from '../config.ts';
import { PUBLIC_ALGORITHMS } from '../http/follow/follow-token.ts';
import { examineKeySet } from './examine-key-set.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning } = reporterOf('follow');
const CHECK = 'FOLLOW_TOKEN_JWKS_URL';
const KEYS = 'FOLLOW_TOKEN_KEYS';

/** Checks that tokens of those who follow an order can be verified. */
export async function examineFollow(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { FOLLOW_TOKEN_JWKS_URL: url, FOLLOW_TOKEN_KEYS: keys } = readConfigOf(env, CHECK, KEYS);
  if (keys !== undefined) return [ok(KEYS, `keys: ${keys.length}`)];
  if (url === undefined) return [ok(CHECK, `unset, and ${KEYS} too: there is no /follow`)];
  const { protocol, hostname } = new URL(url);
  const toDo = `look at ${CHECK} and the way out of this network; until then /follow answers 401 or 503`;
  const found = await examineKeySet({ part: 'follow', check: CHECK, url, algorithms: PUBLIC_ALGORITHMS, toDo });
  if (protocol === 'https:' || isLoopback(hostname)) return [found];
  const plain = 'it is not https: whoever is in between can follow every order with a key of his own';
  return [found, warning(CHECK, plain, 'have the platform serve it by https')];
}
