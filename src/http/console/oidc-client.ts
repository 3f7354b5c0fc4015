import type { Configuration, CustomFetch } from 'openid-client';
import type { CookieSerializeOptions } from '@fastify/cookie';
import { z } from 'zod';
import { isLoopback } from '../../core/egress/allowed-hosts.ts';
import { SESSION_S } from '../../core/operators/operator-sessions.ts';
import { boundedFetch } from '../../core/egress/bounded-fetch.ts';
import type { Actor } from '../../core/operators/operator.ts';
import { seal, type SettingsKeys, unseal } from '../../core/locations/settings-key.ts';

/** Where people sign in, and what of their claims counts. */
export type OidcSettings = {
  issuer: string;
  clientId: string;
  /** Undefined for a public client: PKCE alone protects the code then. */
  clientSecret: string | undefined;
  /** Where the console is, to which the issuer sends people back. */
  consoleUrl: string;
  scopes: string;
  groupsClaim: string;
  /** Who may sign in: addresses of these domains, or members of these groups. */
  domains: readonly string[];
  groups: readonly string[];
};

type Claims = Readonly<Record<string, unknown>> & { iss: string; sub: string };

type OidcClient = {
  /** Where the browser is sent to sign in. @throws IssuerAway */
  startUrl(about: { state: string; nonce: string; verifier: string; again: boolean }): Promise<URL>;
  /**
   * Exchanges the code in the callback's query for what the issuer says of the person: signed by it, for this client, now,
   * and in answer to this sign-in.
   * @returns the claims of the ID token and, of what it leaves out, those of userinfo
   * @throws IssuerAway, or whatever the library throws: no error of it is logged, since it quotes tokens
   */
  finish(search: string, about: { state: string; nonce: string; verifier: string }): Promise<Claims[]>;
};

/** The issuer cannot be asked, or says what no issuer of ours may say. */
export class IssuerAway extends Error {
  override readonly name = 'IssuerAway';
}

/** Under this the issuer sends people back to the console: a client is registered with it. */
export function redirectUri(consoleUrl: string): string {
  return `${consoleUrl}/console/session/callback`;
}

const TIMEOUT_S = 10;

/** Makes a client of the issuer. Nothing is loaded, and nobody asked, before somebody wants to sign in. */
export function oidcClient(settings: OidcSettings): OidcClient {
  let asked: Promise<{ library: typeof import('openid-client'); issuer: Configuration }> | undefined;
  const discover = async () => {
    const library = await import('openid-client');
    return { library, issuer: await discoverIssuer(library, settings) };
  };
  const ask = async () => {
    const asking = (asked ??= discover());
    try {
      return await asking;
    } catch (error) {
      // The next one to sign in asks anew.
      if (asked === asking) asked = undefined;
      throw new IssuerAway('The issuer of OIDC_ISSUER cannot be used now. Try again later.', { cause: error });
    }
  };
  return {
    async startUrl({ state, nonce, verifier, again }) {
      const { library, issuer } = await ask();
      return library.buildAuthorizationUrl(issuer, {
        redirect_uri: redirectUri(settings.consoleUrl),
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // With an age it has to say when it saw them (auth_time), whatever the age.
        ...(again ? { prompt: 'login', max_age: '0' } : { max_age: String(SESSION_S) }),
      });
    },
    async finish(search, { state, nonce, verifier }) {
      const { library, issuer } = await ask();
      const tokens = await library.authorizationCodeGrant(
        issuer,
        new URL(`${redirectUri(settings.consoleUrl)}${search}`),
        { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true },
      );
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the issuer sent no ID token');
      const { userinfo_endpoint: more } = issuer.serverMetadata();
      if (more === undefined || (claims['email'] !== undefined && claims[settings.groupsClaim] !== undefined)) {
        return [claims];
      }
      const told = await library.fetchUserInfo(issuer, tokens.access_token, claims.sub);
      return [claims, { ...told, iss: claims.iss }];
    },
  };
}

/** Asks the issuer where its doors are. Plain http is for one on this machine. */
async function discoverIssuer(
  library: typeof import('openid-client'),
  { issuer, clientId, clientSecret }: OidcSettings,
): Promise<Configuration> {
  const url = new URL(issuer);
  const send = boundedFetch();
  const found = await library.discovery(url, clientId, {}, clientAuthentication(library, clientSecret), {
    timeout: TIMEOUT_S,
    [library.customFetch]: ((at, init) => send(at, init as RequestInit)) satisfies CustomFetch,
    execute: [
      // By itself the library believes an ID token for the connection that it came by.
      library.enableNonRepudiationChecks,
      ...(isLoopback(url.hostname) ? [library.allowInsecureRequests] : []),
    ],
  });
  const { issuer: itself, authorization_endpoint: door, token_endpoint: exchange } = found.serverMetadata();
  // The library lets a vendor's address for many tenants pass, whose people are anybody.
  if (new URL(itself).href !== url.href) throw new Error('it says that it is another issuer');
  if (door === undefined || exchange === undefined) throw new Error('it has no authorization code flow');
  return found;
}

function clientAuthentication(
  { None, ClientSecretPost, ClientSecretBasic }: typeof import('openid-client'),
  secret: string | undefined,
): import('openid-client').ClientAuth {
  if (secret === undefined) return None();
  const byPost = ClientSecretPost(secret);
  const byBasic = ClientSecretBasic(secret);
  return (issuer, ...rest) => {
    const { token_endpoint_auth_methods_supported: ways = [] } = issuer;
    return (ways.includes('client_secret_post') ? byPost : byBasic)(issuer, ...rest);
  };
}

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
