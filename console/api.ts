import { Refused, call } from './call.ts';
import { signInAgain } from './sign-in-again.ts';
import { endSession, findSession, isUnauthorized } from './sign-in.ts';

export { Refused } from './call.ts';

/** The path of the operator API for a session. */
export const API = '/console/api';

/**
 * Calls the operator API. Where it takes a newer sign-in, whoever is signed in is asked for that, and then it goes on.
 * @param path below the API, with percent-encoded ids
 * @throws Refused; a 401 also ends the session on screen, and a role that is missing has it read anew
 */
export async function ask<Answer>(...[method, path, options]: Parameters<typeof call>): Promise<Answer> {
  try {
    return await call<Answer>(method, API + path, options);
  } catch (error) {
    if (isUnauthorized(error)) endSession();
    const reason = error instanceof Refused ? error.reason : null;
    if (reason?.code === 'sign_in_again' && (await signInAgain(reason.proof === true)))
      return ask(method, path, options);
    // What they may has changed since the page was shown.
    if (reason?.code === 'role_missing') await findSession().catch(() => {});
    throw error;
  }
}

/** Makes a query string of the parameters that are set, with its `?`; empty if none is. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return set.length === 0
    ? ''
    : `?${new URLSearchParams(set.map(([name, value]): [string, string] => [name, String(value)])).toString()}`;
}
