import { readConfigOf } from '../config.ts';
import { examineKeySet } from './examine-key-set.ts';
import { reporterOf, type Finding } from './finding.ts';

const { warning } = reporterOf('push');
const CHECK = 'PUSH_JWKS_URL';

/** Checks that tokens of pushes can be verified. */
export async function examinePush(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { PUSH_AUTH, PUSH_JWKS_URL: url } = readConfigOf(env, 'PUSH_AUTH', CHECK);
  if (PUSH_AUTH === 'off') {
    return [
      warning(CHECK, 'PUSH_AUTH is "off": whoever reaches this machine can push', 'leave it unset in production'),
    ];
  }
  const toDo = 'look at PUSH_JWKS_URL and the way out of this network; until then every push is answered 401 or 503';
  return [await examineKeySet({ part: 'push', check: CHECK, url, algorithms: ['RS256'], toDo })];
}
