import { isObject } from '../core/domain/json-text.ts';
import type { ClientAuth, Configuration, CustomFetch } from 'openid-client';
import type { CookieSerializeOptions } from '@fastify/cookie';
import { z } from 'zod';
import { isLoopback } from '../core/egress/allowed-hosts.ts';
import { SESSION_S } from '../core/operators/operator-sessions.ts';
import { boundedFetch } from '../core/egress/bounded-fetch.ts';
import type { Actor } from '../core/operators/operator.ts';
import { seal, type SettingsKeys, unseal } from '../core/locations/settings-key.ts';

export type OidcSettings = {
  issuer: string;
  clientId: string;
  /** Undefined for a public client. Only PKCE protects its authorization code then. */
  clientSecret: string | undefined;
  /** The console's URL, to which the issuer redirects people. */
  consoleUrl: string;
  scopes: string;
  groupsClaim: string;
  /** Who may sign in: people with an address of these domains, or members of these groups. */
  domains: readonly string[];
  groups: readonly string[];
};

type Claims = Readonly<Record<string, unknown>> & { iss: string; sub: string };

type OidcClient = {
  /** Returns the issuer's URL where the browser signs in. @throws IssuerAway */
  startUrl(about: { state: string; nonce: string; verifier: string; again: boolean }): Promise<URL>;
  /**
   * Exchanges the code in the callback's query for claims. It checks that the issuer signed the claims recently, for
   * this client and for this sign-in.
   * @returns the claims of the ID token; second, the claims of userinfo, if the ID token lacks the e-mail or the groups
   * @throws IssuerAway, or any error of the library. Never log an error of the library, because it may quote tokens
   */
  finish(search: string, about: { state: string; nonce: string; verifier: string }): Promise<Claims[]>;
};

/** The issuer cannot be reached, or its answer is not valid. */
export class IssuerAway extends Error {
  override readonly name = 'IssuerAway';
}

/** The URL to which the issuer redirects people. Our client at the issuer must be registered with this URL. */
export function redirectUri(consoleUrl: string): string {
  return `${consoleUrl}/console/session/callback`;
}

const TIMEOUT_S = 10;

/** Makes a client of the issuer. Only the first sign-in loads the library and contacts the issuer. */
export function oidcClient(settings: OidcSettings): OidcClient {
  const authentication = clientAuthentication(settings.clientSecret);
  let discovered: Promise<{ library: typeof import('openid-client'); issuer: Configuration }> | undefined;
  const discover = async () => {
    const library = await import('openid-client');
    return { library, issuer: await discoverIssuer(library, settings, authentication.of(library)) };
  };
  const ask = async () => {
    const discovering = (discovered ??= discover());
    try {
      return await discovering;
    } catch (error) {
      // The failed discovery is forgotten, so that the next sign-in tries again.
      if (discovered === discovering) discovered = undefined;
      throw new IssuerAway('The issuer of OIDC_ISSUER cannot be reached. Try again later.', { cause: error });
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
        // With `max_age`, the issuer must also report when the person authenticated (auth_time).
        ...(again ? { prompt: 'login', max_age: '0' } : { max_age: String(SESSION_S) }),
      });
    },
    async finish(search, { state, nonce, verifier }) {
      const { library, issuer } = await ask();
      const exchange = async () =>
        library.authorizationCodeGrant(issuer, new URL(`${redirectUri(settings.consoleUrl)}${search}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
      const tokens = await exchange().catch((error: unknown) => {
        // An issuer that lists both ways may hold this client to the other one.
        if ((error as { status?: unknown }).status !== 401 || !authentication.tryOther()) throw error;
        return exchange();
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the issuer sent no ID token');
      const { userinfo_endpoint: more } = issuer.serverMetadata();
      if (
        more === undefined ||
        (claims['email'] !== undefined && claimOf(claims, settings.groupsClaim) !== undefined)
      ) {
        return [claims];
      }
      const userInfo = await library.fetchUserInfo(issuer, tokens.access_token, claims.sub);
      return [claims, { ...userInfo, iss: claims.iss }];
    },
  };
}

/** Discovers the issuer's endpoints. Plain http is allowed only for an issuer on this machine. */
async function discoverIssuer(
  library: typeof import('openid-client'),
  { issuer, clientId }: OidcSettings,
  authentication: ClientAuth,
): Promise<Configuration> {
  const url = new URL(issuer);
  const send = boundedFetch();
  const found = await library.discovery(url, clientId, {}, authentication, {
    timeout: TIMEOUT_S,
    [library.customFetch]: ((at, init) => send(at, init as RequestInit)) satisfies CustomFetch,
    execute: [
      // By default the library trusts an ID token because of its TLS connection, and does not check the signature.
      library.enableNonRepudiationChecks,
      ...(isLoopback(url.hostname) ? [library.allowInsecureRequests] : []),
    ],
  });
  const { issuer: itself, authorization_endpoint: authorize, token_endpoint: exchange } = found.serverMetadata();
  // The library would also accept a vendor's shared issuer of all tenants, where anyone may have an account.
  if (new URL(itself).href !== url.href) throw new Error('its metadata names another issuer');
  if (authorize === undefined || exchange === undefined)
    throw new Error('it does not offer the authorization code flow');
  return found;
}

/**
 * How we prove to the issuer who we are. Without a list of its ways, and where it lists both, this is Basic (OpenID Connect
 * Core 1.0, section 9), until it refuses that.
 */
function clientAuthentication(secret: string | undefined): {
  of(library: typeof import('openid-client')): ClientAuth;
  /** Changes the way. @returns false if there is no secret */
  tryOther(): boolean;
} {
  let isRefused = false;
  return {
    of({ None, ClientSecretPost, ClientSecretBasic }) {
      if (secret === undefined) return None();
      const [byPost, byBasic] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
      return (issuer, ...rest) => {
        const ways = issuer.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
        const isBasic = ways.includes('client_secret_basic') || !ways.includes('client_secret_post');
        return (isBasic === isRefused ? byPost : byBasic)(issuer, ...rest);
      };
    },
    tryOther() {
      isRefused = !isRefused;
      return secret !== undefined;
    },
  };
}

const GOOGLE = 'https://accounts.google.com';

export type OidcPerson = Actor & {
  kind: 'person';
  /** Verified by the issuer. */
  email: string | undefined;
  groups: string[];
  isAllowed: boolean;
  /** What is wrong with claims that were looked for, in words without their values. */
  unread: string[];
};

/**
 * Reads the identity of a person, and whether they may sign in. Their address and groups also decide their permissions.
 * @param allClaims the issuer's claims, the most trusted first
 */
export function readPerson(allClaims: readonly Claims[], settings: OidcSettings): OidcPerson {
  const [{ iss, sub } = { iss: '', sub: '' }] = allClaims;
  const first = (name: string): unknown =>
    allClaims.map((claims) => claimOf(claims, name)).find((claim) => claim !== undefined);
  // An e-mail address counts only if the same set of claims says that it is verified.
  const withEmail = allClaims.find((claims) => claims['email'] !== undefined);
  // Amazon Cognito, among others, sends the word.
  const isVerified = [true, 'true'].includes(withEmail?.['email_verified'] as boolean);
  const address = isVerified ? withEmail?.['email'] : undefined;
  // Only ASCII is accepted. Some other letters become ASCII letters in lower case, which could form another's address.
  const email = isName(address) && /^[\x21-\x7e]+$/.test(address) ? address.toLowerCase() : undefined;
  const groups = groupsIn(first(settings.groupsClaim)).filter(isName);
  const username = first('preferred_username');
  return {
    kind: 'person',
    id: `${iss} ${sub}`,
    // The id is appended, because people choose their username and could choose somebody's address.
    name: email ?? (isName(username) ? `${username} (${sub})` : sub),
    email,
    groups,
    isAllowed: isOfDomain(email, first('hd'), settings) || groups.some((group) => settings.groups.includes(group)),
    unread: [
      ...(settings.domains.length > 0 && email === undefined ? [aboutEmail(withEmail, isVerified)] : []),
      ...(settings.groups.length > 0 && groups.length === 0
        ? [`${settings.groupsClaim} ${kindOf(first(settings.groupsClaim))}: a list of names is required`]
        : []),
    ],
  };
}

function aboutEmail(claims: Claims | undefined, isVerified: boolean): string {
  if (claims === undefined) return 'email is missing: the issuer gives it for the scope email';
  if (!isVerified) return `email_verified ${kindOf(claims['email_verified'])}: true is required`;
  return `email ${kindOf(claims['email'])}: an address in ASCII is required`;
}

function kindOf(claim: unknown): string {
  if (claim === undefined) return 'is missing';
  return `is ${claim === null ? 'null' : Array.isArray(claim) ? 'a list' : `of the type ${typeof claim}`}`;
}

/** @param name of a claim, or the way to one in others, such as Keycloak's `realm_access.roles` */
function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>(
      (inside, key) => (isObject(inside) && Object.hasOwn(inside, key) ? inside[key] : undefined),
      claims,
    );
}

/** The names in a claim: a list, names with commas between them, or an object whose keys are roles, as Zitadel sends it. */
function groupsIn(claim: unknown): unknown[] {
  if (Array.isArray(claim)) return claim;
  if (isObject(claim)) return Object.keys(claim);
  // A distinguished name has commas of its own.
  if (typeof claim !== 'string' || claim.includes('=')) return [claim];
  return claim.split(',').map((name) => name.trim());
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && text !== '' && text.length <= 255 && !/\p{C}/u.test(text);
}

/**
 * Whether the address is of an allowed domain. At Google anyone may have an account with an address of any domain. Only
 * the claim `hd` proves that the domain's owner manages the account:
 * https://developers.google.com/identity/openid-connect/openid-connect#validatinganidtoken
 */
function isOfDomain(email: string | undefined, hd: unknown, { issuer, domains }: OidcSettings): boolean {
  const domain = email?.split('@').at(-1);
  if (domain === undefined || !domains.some((allowed) => allowed.toLowerCase() === domain)) return false;
  return new URL(issuer).origin !== GOOGLE || (typeof hd === 'string' && hd.toLowerCase() === domain);
}

/** A person must finish signing in at the issuer within this many seconds. */
export const FLOW_S = 600;

const Flow = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** In milliseconds, by Postgres's clock. */
  startedAt: z.number(),
  /** The console page to open after the sign-in. */
  to: z.string(),
  /** The id of the session to open. The id is chosen at the start, so one sign-in cannot open two sessions. */
  opens: z.uuid(),
  /** The id of the browser's previous session, which ends when the new session opens. */
  replaces: z.uuid().optional(),
  /** Set if a signed-in person must prove their identity again: their id. Nobody else may finish this sign-in. */
  again: z.string().optional(),
});
/** A sign-in in progress. It is stored only in the browser's cookie, so that any process can finish it. */
export type Flow = z.infer<typeof Flow>;

/** Associated data of the encryption. Because of it, no other value encrypted with SETTINGS_KEY passes as a sign-in. */
const PLACE = 'console/sign-in';

export function sealFlow(keys: SettingsKeys, flow: Flow): Promise<string> {
  return seal(keys, flow, PLACE);
}

/** @returns undefined if there is no cookie, or if it is not ours or has expired */
export async function openFlow(keys: SettingsKeys, cookie: string | undefined, now: Date): Promise<Flow | undefined> {
  if (cookie === undefined) return undefined;
  const opened = await unseal(keys, cookie, PLACE).catch(() => undefined);
  const { data } = Flow.safeParse(opened);
  return data !== undefined && now.getTime() - data.startedAt < FLOW_S * 1000 ? data : undefined;
}

/** `Lax`, because a `Strict` cookie would not be sent when the issuer, which is another site, redirects the browser. */
export function flowCookie(consoleUrl: string): { name: string; attributes: CookieSerializeOptions } {
  const secure = consoleUrl.startsWith('https:');
  const name = secure ? '__Host-expediter_sign_in' : 'expediter_sign_in';
  return { name, attributes: { path: '/', httpOnly: true, sameSite: 'lax', secure } };
}

const TO_MAX = 1_000;

/** Returns `to` if it is a page of the console, and the console's first page otherwise. */
export function consolePath(to: string | undefined): string {
  // The pattern excludes backslashes and line ends: URL parsers treat a backslash as a slash and ignore a line end.
  if (to === undefined || !/^\/console(?![^/?#])[\x21-\x5b\x5d-\x7e]*$/.test(to)) return '/console/';
  const { pathname, search, hash } = new URL(to, 'https://console.invalid');
  const path = `${pathname}${search}${hash}`;
  return /^\/console(?![^/])/.test(pathname) && path.length <= TO_MAX ? path : '/console/';
}
