import { Refused, call } from './call.ts';
import { signInAgain } from './sign-in-again.ts';
import { endSession, findSession, isUnauthorized } from './sign-in.ts';

export { Refused } from './call.ts';
export { query } from './query.ts';

/** The path of the operator API for requests with the session cookie. */
export const API = '/console/api';

/**
 * Calls the operator API. If it requires a newer sign-in, asks the operator to sign in again, then repeats the call.
 * @param path the part after `/console/api`, with percent-encoded ids
 * @throws Refused; a 401 also shows the login, and a missing role reloads the session
 */
export async function ask<Answer>(...[method, path, options]: Parameters<typeof call>): Promise<Answer> {
  try {
    return await call<Answer>(method, API + path, options);
  } catch (error) {
    if (isUnauthorized(error)) endSession();
    const reason = error instanceof Refused ? error.reason : null;
    if (reason?.code === 'sign_in_again' && (await signInAgain(reason.proof === true)))
      return ask(method, path, options);
    // The operator's roles have changed since the session was loaded.
    if (reason?.code === 'role_missing') await findSession().catch(() => {});
    throw error;
  }
}
