import type { Configuration, CustomFetch } from 'openid-client';
import { isLoopback } from '../../server/config.ts';
import { SESSION_S } from '../../core/operators/operator-sessions.ts';
import { boundedFetch } from '../../core/egress/bounded-fetch.ts';

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

export type Claims = Readonly<Record<string, unknown>> & { iss: string; sub: string };

export type OidcClient = {
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
      throw new IssuerAway('the issuer of OIDC_ISSUER cannot be used now: ask again later', { cause: error });
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
