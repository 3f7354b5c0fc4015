import type { Actor } from '../../core/operators/operator.ts';
import type { Claims, OidcSettings } from './oidc-client.ts';

const GOOGLE = 'https://accounts.google.com';

/** Who signed in at the issuer. */
export type OidcPerson = Actor & {
  kind: 'person';
  /** Verified by the issuer. */
  email: string | undefined;
  groups: string[];
  isAllowed: boolean;
};

/**
 * Reads who somebody is, and whether they may sign in at all. What they may do is given to their address and groups.
 * @param said what the issuer says, what counts most first
 */
export function readPerson(said: readonly Claims[], settings: OidcSettings): OidcPerson {
  const [{ iss, sub } = { iss: '', sub: '' }] = said;
  const first = (name: string): unknown => said.find((claims) => claims[name] !== undefined)?.[name];
  // An address counts with the word of the same answer that it is theirs.
  const told = said.find((claims) => claims['email'] !== undefined);
  const address = told?.['email_verified'] === true ? told['email'] : undefined;
  // Letters of other alphabets may become an ASCII one, and the address somebody else's.
  const email = isName(address) && /^[\x21-\x7e]+$/.test(address) ? address.toLowerCase() : undefined;
  const groups = [first(settings.groupsClaim)].flat().filter(isName);
  const username = first('preferred_username');
  return {
    kind: 'person',
    id: `${iss} ${sub}`,
    // A name that somebody may have chosen is not taken for an address.
    name: email ?? (isName(username) ? `${username} (${sub})` : sub),
    email,
    groups,
    isAllowed: isOfDomain(email, first('hd'), settings) || groups.some((group) => settings.groups.includes(group)),
  };
}

/** Whether it is a text that fits a line. */
function isName(text: unknown): text is string {
  return typeof text === 'string' && text !== '' && text.length <= 255 && !/\p{C}/u.test(text);
}

/**
 * At Google anybody may have an account with an address of any domain; only `hd` says that the domain's owner manages it:
 * https://developers.google.com/identity/openid-connect/openid-connect#validatinganidtoken
 */
function isOfDomain(email: string | undefined, hd: unknown, { issuer, domains }: OidcSettings): boolean {
  const domain = email?.split('@').at(-1);
  if (domain === undefined || !domains.some((allowed) => allowed.toLowerCase() === domain)) return false;
  return new URL(issuer).origin !== GOOGLE || (typeof hd === 'string' && hd.toLowerCase() === domain);
}
