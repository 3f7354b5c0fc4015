import type { Pool } from 'pg';
import { IS_ADMIN } from '../core/operators/find-operator.ts';
import { isPlainElsewhere } from '../core/egress/allowed-hosts.ts';
import { hasOperators, isPushed, readConfigOf } from '../config/config.ts';
import { WAYS } from '../config/describe-ways.ts';
import { NAME_PROXIES } from '../config/find-weak-variables.ts';
import { algorithmsOf } from '../identity/issuer-keys.ts';
import { redirectUri } from '../identity/oidc-client.ts';
import { PUBLIC_ALGORITHMS } from '../identity/follow-token.ts';
import { askHttp, hostOf, kindOf } from './ask-http.ts';
import { failed, ok, warning, type Check } from './check.ts';

const PUBLIC = 'PUBLIC_URL';
const PUSH_KEYS = 'PUSH_JWKS_URL';
const FOLLOW_KEYS = 'FOLLOW_TOKEN_KEYS';
const ISSUER = 'OIDC_ISSUER';
/** One route of each operator endpoint. If the answer to a request without a token has our realm, it is reachable. */
const OPERATOR_ROUTES = ['/metrics', '/v1/orders', '/openapi.json', '/console/session'];

/**
 * Checks from this machine that the service answers at PUBLIC_URL. If the operator endpoints have their own port, it
 * also checks that they do not answer at PUBLIC_URL.
 */
export async function examinePublicUrl(env: NodeJS.ProcessEnv, isForwarded: boolean): Promise<Check[]> {
  const { PUBLIC_URL, OPERATOR_PORT, TRUSTED_PROXIES } = readConfigOf(env, PUBLIC, 'OPERATOR_PORT', 'TRUSTED_PROXIES');
  // The service itself speaks no TLS, so a proxy answers at https.
  const hasProxy = isForwarded || PUBLIC_URL?.startsWith('https:') === true;
  const unnamed = hasProxy && TRUSTED_PROXIES.length === 0;
  const proxies = unnamed ? [warning('TRUSTED_PROXIES', 'it is unset, but a proxy is in front', NAME_PROXIES)] : [];
  if (PUBLIC_URL === undefined) {
    const toDo = 'set PUBLIC_URL, such as https://expediter.example.com';
    return [warning(PUBLIC, 'it is unset, so no POS can get a webhook URL', toDo), ...proxies];
  }
  const plain = isPlainElsewhere(PUBLIC_URL)
    ? [warning(PUBLIC, 'it is not https, and its URLs contain webhook tokens', 'put TLS before the service')]
    : [];
  const apart = OPERATOR_PORT === undefined ? [] : [operatorRoutes(PUBLIC_URL)];
  return [...plain, ...proxies, ...(await Promise.all([answering(PUBLIC_URL), ...apart]))];
}

async function operatorRoutes(publicUrl: string): Promise<Check> {
  const host = hostOf(publicUrl);
  const answers = await Promise.all(OPERATOR_ROUTES.map((path) => askHttp(`${publicUrl}${path}`)));
  const open = OPERATOR_ROUTES.filter((_, nth) => {
    const answer = answers[nth];
    return typeof answer === 'object' && answer.headers.get('www-authenticate')?.includes('realm="expediter"');
  });
  if (open.length === 0) return ok('operator routes', `none at ${host}`);
  return failed(
    'operator routes',
    `${host} answers at ${open.join(', ')}`,
    'expose only PORT to the public, not OPERATOR_PORT, and start the service with both',
  );
}

async function answering(publicUrl: string): Promise<Check> {
  const host = hostOf(publicUrl);
  const answer = await askHttp(`${publicUrl}/readyz`);
  const toDo = 'start the service, and check DNS, the load balancer and its certificate';
  if (typeof answer === 'string') return failed('readyz', `${host}: ${answer}`, toDo);
  const { ready } = (answer.json ?? {}) as { ready?: unknown };
  if (answer.status === 200 && ready === true) return ok('readyz', `${host} is ready`);
  if (answer.status === 503 && ready === false) {
    return warning('readyz', `${host} is starting or stopping`, 'wait, and check the log of the service');
  }
  return failed('readyz', `${host} answers ${kindOf(answer)}: this is another service`, toDo);
}

/** Checks that a key set can be fetched, and that it has a key for one of these algorithms. */
async function examineKeySet(check: string, url: string, algorithms: readonly string[], toDo: string): Promise<Check> {
  const host = hostOf(url);
  const answer = await askHttp(url);
  if (typeof answer === 'string') return failed(check, `${host}: ${answer}`, toDo);
  const { keys } = (answer.json ?? {}) as { keys?: unknown };
  if (answer.status !== 200 || !Array.isArray(keys)) {
    return failed(check, `${host} answers ${kindOf(answer)}, not a key set`, toDo);
  }
  const usable = keys.filter((key) => algorithms.some((algorithm) => isFor(algorithm, key))).length;
  const words = `${host} answers; keys for ${algorithms.join(', ')}`;
  if (usable === 0) return failed(check, `${words}: none of ${keys.length}`, toDo);
  return ok(check, `${words}: ${usable}`);
}

function isFor(algorithm: string, key: unknown): boolean {
  const jwk = (key ?? {}) as Record<string, unknown>;
  const { use, alg } = jwk;
  return (
    algorithmsOf(jwk)?.includes(algorithm) === true &&
    (use === undefined || use === 'sig') &&
    (alg === undefined || alg === algorithm)
  );
}

export async function examinePush(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const config = readConfigOf(env, ...WAYS, PUSH_KEYS);
  const { PUSH_AUTH, PUSH_JWKS_URL: url } = config;
  if (!isPushed(config)) return [ok(PUSH_KEYS, 'no project and no PUSH_AUDIENCE: there is no endpoint for pushes')];
  if (PUSH_AUTH === 'off') {
    const found = 'PUSH_AUTH is "off": anyone who reaches this machine can push';
    return [warning(PUSH_KEYS, found, 'leave it unset in production')];
  }
  const toDo = 'check PUSH_JWKS_URL and the egress of this network; until it works, every push is answered 401 or 503';
  return [await examineKeySet(PUSH_KEYS, url, ['RS256'], toDo)];
}

export async function examineFollow(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const { FOLLOW_TOKEN_KEYS: source } = readConfigOf(env, FOLLOW_KEYS);
  if (source === undefined) return [ok(FOLLOW_KEYS, 'unset: there is no /follow')];
  if ('keys' in source) return [ok(FOLLOW_KEYS, `keys: ${source.keys.length}`)];
  const { jwksUrl: url } = source;
  const toDo = `check ${FOLLOW_KEYS} and the egress of this network; until it works, /follow answers 401 or 503`;
  const found = await examineKeySet(FOLLOW_KEYS, url, PUBLIC_ALGORITHMS, toDo);
  if (!isPlainElsewhere(url)) return [found];
  const plain = 'it is not https: an attacker on the network can follow every order with their own key';
  return [found, warning(FOLLOW_KEYS, plain, 'let the platform serve it over https')];
}

/** Checks that people can sign in at the console by OIDC, as far as this is possible without signing in. */
export async function examineOidc(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const { OIDC_ISSUER: issuer, CONSOLE_URL: consoleUrl } = readConfigOf(env, ISSUER, 'CONSOLE_URL');
  if (issuer === undefined || consoleUrl === undefined) {
    return [ok(ISSUER, 'unset: people sign in at the console with tokens')];
  }
  const isPlain = isPlainElsewhere(consoleUrl);
  const place = isPlain
    ? failed('CONSOLE_URL', 'it is not https: a browser stores no session there', 'put TLS before the console')
    : ok('CONSOLE_URL', `register this URL at the issuer: ${redirectUri(consoleUrl)}`);
  return [...(await examineIssuer(issuer)), place];
}

async function examineIssuer(issuer: string): Promise<Check[]> {
  const host = hostOf(issuer);
  const toDo = `compare ${ISSUER} with the issuer's own documentation, and check the egress of this network`;
  const answer = await askHttp(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (typeof answer === 'string') return [failed(ISSUER, `${host}: ${answer}`, toDo)];
  const said = (answer.json ?? {}) as Record<string, unknown>;
  const { issuer: itself, jwks_uri: keys } = said;
  if (answer.status !== 200 || typeof itself !== 'string' || typeof keys !== 'string') {
    return [failed(ISSUER, `${host} answers ${kindOf(answer)}, not as an OpenID issuer`, toDo)];
  }
  if (URL.parse(itself)?.href !== new URL(issuer).href) {
    return [failed(ISSUER, `${host} names another issuer`, `${toDo}; a URL for all tenants is not an issuer`)];
  }
  const missing = [
    ...['authorization_endpoint', 'token_endpoint'].filter((name) => typeof said[name] !== 'string'),
    ...(includes(said['response_types_supported'], 'code') ? [] : ['the authorization code flow']),
    // Some issuers support PKCE, but do not list it.
    ...(includes(said['code_challenge_methods_supported'] ?? ['S256'], 'S256') ? [] : ['PKCE with S256']),
  ];
  const found = missing.length > 0 ? `${host} does not offer ${missing.join(', ')}` : undefined;
  return [
    found === undefined ? ok(ISSUER, `${host} answers`) : failed(ISSUER, found, 'use another issuer'),
    await examineKeySet('keys of OIDC_ISSUER', keys, PUBLIC_ALGORITHMS, toDo),
  ];
}

function includes(list: unknown, word: string): boolean {
  return Array.isArray(list) && list.includes(word);
}

/** Checks that there is an admin, and that OPERATOR_TOKEN is unset if there are named operators. */
export async function examineGrants(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const config = readConfigOf(env, 'OIDC_ISSUER', 'OPERATOR_TOKEN', 'OPERATOR_PORT');
  const { OIDC_ISSUER, OPERATOR_TOKEN } = config;
  const { rows } = await pool.query<{ grants: number; admins: number; tokens: number; adminTokens: number }>(
    `SELECT * FROM
       (SELECT count(*)::int AS grants, count(*) FILTER (WHERE ${IS_ADMIN})::int AS admins FROM operator_grants) AS g,
       (SELECT count(*)::int AS tokens, count(*) FILTER (WHERE ${IS_ADMIN})::int AS "adminTokens" FROM operator_tokens
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())) AS t`,
  );
  const { grants = 0, admins = 0, tokens = 0, adminTokens = 0 } = rows[0] ?? {};
  const checks: Check[] = [];
  const isEnded = OIDC_ISSUER !== undefined && admins > 0;
  const isAnyoneAdmin = OPERATOR_TOKEN !== undefined || adminTokens > 0 || isEnded;
  if (hasOperators(config) && !isAnyoneAdmin) {
    checks.push(
      failed(
        'admins',
        'there is no admin: no OPERATOR_TOKEN, and no token or grant with the role admin at all locations',
        'expediter operator token issue --name you --role admin',
      ),
    );
  }
  if (OIDC_ISSUER === undefined && grants > 0) {
    checks.push(
      warning(
        'grants',
        `${grants} to addresses or groups, but nobody can sign in by address, because OIDC_ISSUER is unset`,
        'set OIDC_ISSUER and the variables that it needs, or give each person a token: expediter operator token issue --name anna --role operator',
      ),
    );
  }
  if (OIDC_ISSUER !== undefined) {
    checks.push(
      admins > 0
        ? ok('grants', `${grants}, including ${admins} with the role admin`)
        : warning(
            'grants',
            grants === 0 ? 'there are no grants, so no one can sign in' : 'no grant has the role admin',
            'expediter operator grant add --email you@example.com --role admin',
          ),
    );
  }
  if (OPERATOR_TOKEN !== undefined && (tokens > 0 || isEnded)) {
    const found = isEnded
      ? 'it is refused, because there is an admin who signs in by OIDC'
      : 'it is set although there are named operators: its holder may do everything, and the audit cannot name them';
    checks.push(warning('OPERATOR_TOKEN', found, 'give each program its own token, then unset it'));
  }
  return checks;
}
