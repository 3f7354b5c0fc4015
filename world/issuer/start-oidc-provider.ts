/**
 * A real OpenID provider, `oidc-provider`, on 127.0.0.1, with people to sign in as. A test:
 *
 *   const consoleUrl = `http://127.0.0.1:${await freePort()}`;
 *   const oidc = await startOidcProvider({ consoleUrl });
 *   oidc.people.set('ada', { email: 'ada@club.example', email_verified: true, groups: ['managers'] });
 *   const system = await startSystem({ env: { ...oidc.env, PORT: new URL(consoleUrl).port } });
 *   await system.query(`INSERT INTO operator_grants (grant_id, email, roles, locations)
 *                       VALUES (gen_random_uuid(), 'ada@club.example', '{viewer}', '{club-1}')`);
 *
 * In a browser: open `/console/session/oidc` from the console's page. The provider's page has one field, `login`, that
 * takes a name of `people`, and a button. It remembers whom it signed in, as issuers do, until `prompt=login`. Without a
 * browser: `signInByOidc` of sign-in-by-oidc.ts.
 */
import { generateKeyPair, exportJWK } from 'jose';
import { Provider } from 'oidc-provider';
import { readBody, serveHttp } from '../network/serve-http.ts';

const CLIENT_ID = 'the-console';
const CLIENT_SECRET = 'the-secret-of-the-console-which-is-never-logged';

/** Claims beside `sub`, which is the person's name among `people`. */
export type Person = Record<string, unknown>;

export type OidcProvider = {
  issuer: string;
  /** By what they type. May be changed at any time. */
  people: Map<string, Person>;
  /** For a service whose console is at `consoleUrl`. Who is in one of the groups `team` and `managers` may sign in. */
  env: Record<string, string>;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

/**
 * @param about.isPublic of a client without a secret
 * @param about.inUserinfo where people's claims are: in the ID token, or only in what userinfo answers
 */
export async function startOidcProvider(about: {
  consoleUrl: string;
  isPublic?: boolean;
  inUserinfo?: boolean;
  port?: number;
}): Promise<OidcProvider> {
  const people = new Map<string, Person>();
  const key = await generateKeyPair('ES256', { extractable: true });
  const server = await serveHttp(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', issuer);
    if (!pathname.startsWith('/interaction/')) return handle(request, response);
    if (request.method === 'POST') {
      const login = new URLSearchParams((await readBody(request)).toString()).get('login') ?? '';
      const result = people.has(login)
        ? { login: { accountId: login } }
        : { error: 'access_denied', error_description: 'nobody here has this name' };
      return provider.interactionFinished(request, response, result);
    }
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      .end(
        `<!doctype html><title>Sign in</title><form method="post"><input name="login"><button>Sign in</button></form>`,
      );
    return undefined;
  }, about.port);
  const issuer = server.url;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        redirect_uris: [`${about.consoleUrl}/console/session/callback`],
        id_token_signed_response_alg: 'ES256',
        ...(about.isPublic ? { token_endpoint_auth_method: 'none' } : { client_secret: CLIENT_SECRET }),
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(key.privateKey)), alg: 'ES256', use: 'sig', kid: 'of-the-tests' }] },
    cookies: { keys: ['of the tests'] },
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['preferred_username', 'name', 'groups', 'roles', 'hd'],
    },
    conformIdTokenClaims: about.inUserinfo === true,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600 },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, ...people.get(sub) }) }),
    // Nobody is asked whether the console may know them.
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    renderError(context, out) {
      context.body = JSON.stringify(out);
    },
  });
  const handle = provider.callback();

  return {
    issuer,
    people,
    env: {
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: CLIENT_ID,
      ...(about.isPublic ? {} : { OIDC_CLIENT_SECRET: CLIENT_SECRET }),
      OIDC_ALLOWED_GROUPS: 'team,managers',
      CONSOLE_URL: about.consoleUrl,
    },
    stop: server.stop,
  };
}
