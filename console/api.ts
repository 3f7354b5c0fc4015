import { call } from './call.ts';
import { endSession, isUnauthorized } from './sign-in.ts';

export { Refused } from './call.ts';

/** The path of the operator API for a session. */
export const API = '/console/api';

/**
 * Calls the operator API.
 * @param path below the API, with percent-encoded ids
 * @throws Refused; a 401 also ends the session on screen
 */
export async function ask<Answer>(...[method, path, options]: Parameters<typeof call>): Promise<Answer> {
  try {
    return await call<Answer>(method, API + path, options);
  } catch (error) {
    if (isUnauthorized(error)) endSession();
    throw error;
  }
}

/** Makes a query string of the parameters that are set, with its `?`; empty if none is. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return set.length === 0
    ? ''
    : `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()}`;
}
