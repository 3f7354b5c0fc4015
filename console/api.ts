import { call } from './call.ts';
import { forget, isUnauthorized } from './sign-in.ts';

export { Refused } from './call.ts';

/** Where the operator API is for whoever has a session. */
export const API = '/console/api';

/**
 * Asks the operator API.
 * @param path below the API, its ids percent-encoded
 * @throws Refused; a 401 also ends the session on screen
 */
export async function ask<Answer>(...[method, path, options]: Parameters<typeof call>): Promise<Answer> {
  try {
    return await call<Answer>(method, API + path, options);
  } catch (error) {
    if (isUnauthorized(error)) forget();
    throw error;
  }
}

/** A query string of what is set, with its `?`; empty when nothing is. */
export function query(parameters: Record<string, string | number | boolean | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  return set.length === 0
    ? ''
    : `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()}`;
}
