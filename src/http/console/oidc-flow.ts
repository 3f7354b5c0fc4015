import type { CookieSerializeOptions } from '@fastify/cookie';
import { z } from 'zod';
import type { Actor } from '../../core/operators/operator.ts';
import type { Claims, OidcSettings } from './oidc-client.ts';
import { seal, type SettingsKeys, unseal } from '../../core/locations/settings-key.ts';

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

/** Seconds that somebody has to sign in at the issuer. */
export const FLOW_S = 600;

const Flow = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Milliseconds, by Postgres's clock. */
  startedAt: z.number(),
  /** Where on the console to go then. */
  to: z.string(),
  /** The id of the session that it opens, so that it opens no second one. */
  opens: z.uuid(),
  /** The session that the browser had, and that the new one replaces. */
  replaces: z.uuid().optional(),
  /** The actor who signs in again: nobody else may, and only as somebody who is there. */
  again: z.string().optional(),
});
/** A sign-in under way. It is in the browser's cookie alone, so that any process can finish it. */
export type Flow = z.infer<typeof Flow>;

/** Binds what is sealed to its use: nothing else that SETTINGS_KEY sealed opens as a sign-in. */
const PLACE = 'console/sign-in';

export function sealFlow(keys: SettingsKeys, flow: Flow): Promise<string> {
  return seal(keys, flow, PLACE);
}

/** @returns undefined of one that is not ours, or is over */
export async function openFlow(keys: SettingsKeys, cookie: string | undefined, now: Date): Promise<Flow | undefined> {
  if (cookie === undefined) return undefined;
  const opened = await unseal(keys, cookie, PLACE).catch(() => undefined);
  const { data } = Flow.safeParse(opened);
  return data !== undefined && now.getTime() - data.startedAt < FLOW_S * 1000 ? data : undefined;
}

/** Lax, where the session's is Strict: the issuer sends the browser back from another site. */
export function flowCookie(consoleUrl: string): { name: string; attributes: CookieSerializeOptions } {
  const secure = consoleUrl.startsWith('https:');
  const name = secure ? '__Host-expediter_sign_in' : 'expediter_sign_in';
  return { name, attributes: { path: '/', httpOnly: true, sameSite: 'lax', secure } };
}

const TO_MAX = 1_000;

/** The page of the console that somebody wants to go to; its first one where that is no page of it. */
export function consolePath(to: string | undefined): string {
  // A URL parser reads backslashes as slashes, and leaves out line ends.
  if (to === undefined || !/^\/console(?![^/?#])[\x21-\x5b\x5d-\x7e]*$/.test(to)) return '/console/';
  const { pathname, search, hash } = new URL(to, 'https://console.invalid');
  const path = `${pathname}${search}${hash}`;
  return /^\/console(?![^/])/.test(pathname) && path.length <= TO_MAX ? path : '/console/';
}
