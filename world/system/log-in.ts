import { makeToken } from '../../src/core/domain/make-token.ts';
import { digest } from '../../src/core/operators/find-operator.ts';
import { OPERATOR_TOKEN, sendAsIs, type Door, type OperatorAnswer } from './ask-operator.ts';
import type { Fixtures } from './fixtures.ts';
import { fromElsewhere } from '../network/from-elsewhere.ts';

/** The header of a browser for requests by our own page. */
export const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };

/** Sends a login as the console's page does in a browser. */
export function sendLogin(
  door: Door,
  token: unknown = OPERATOR_TOKEN,
  headers: Record<string, string> = { ...OWN_PAGE, origin: typeof door === 'string' ? door : 'http://localhost' },
): Promise<OperatorAnswer> {
  return sendAsIs(door, '/console/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...fromElsewhere(), ...headers },
    body: JSON.stringify({ token }),
  });
}

/** @returns the `Cookie` of a session */
export async function logIn(door: Door, token: string = OPERATOR_TOKEN): Promise<string> {
  const { status, headers, text } = await sendLogin(door, token);
  if (status !== 204) throw new Error(`the login was answered ${status} ${text}`);
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** Gives roles to an address or a group, at all locations unless it says otherwise. */
export const giveRoles = (
  at: Pick<Fixtures, 'query'>,
  to: { email?: string; group?: string },
  roles: readonly string[],
  locations: readonly string[] | null = null,
  groups: readonly string[] = [],
): Promise<unknown> =>
  at.query(
    `INSERT INTO operator_grants (grant_id, email, group_name, roles, locations, location_groups)
     VALUES (gen_random_uuid(), $1, $2, $3, $4, $5)`,
    [to.email, to.group, roles, locations, groups],
  );

/** Makes a named token, of a viewer at all locations unless it says otherwise. @returns the token */
export async function nameToken(
  at: Pick<Fixtures, 'query'>,
  name: string,
  roles: readonly string[] = ['viewer'],
  locations: readonly string[] | null = null,
  groups: readonly string[] = [],
): Promise<string> {
  const token = makeToken('exo_');
  await at.query(
    `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations, location_groups)
     VALUES (gen_random_uuid(), $1, $2, $3, $4, $5)`,
    [digest(token), name, roles, locations, groups],
  );
  return token;
}
