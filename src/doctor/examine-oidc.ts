import { isPlainElsewhere, readConfigOf } from '../config.ts';
import { redirectUri } from '../http/console/oidc-client.ts';
import { PUBLIC_ALGORITHMS } from '../http/follow/follow-token.ts';
import { askHttp, hostOf, kindOf } from './ask-http.ts';
import { examineKeySet } from './examine-key-set.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, failed } = reporterOf('operators');
const CHECK = 'OIDC_ISSUER';

/** Checks that people can sign in at the console by OIDC, as far as that shows without a person. */
export async function examineOidc(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { OIDC_ISSUER: issuer, CONSOLE_URL: consoleUrl } = readConfigOf(env, CHECK, 'CONSOLE_URL');
  if (issuer === undefined || consoleUrl === undefined) {
    return [ok(CHECK, 'unset: at the console people sign in with tokens')];
  }
  const isPlain = isPlainElsewhere(consoleUrl);
  const place = isPlain
    ? failed('CONSOLE_URL', 'it is not https: a browser keeps no session there', 'put TLS before the console')
    : ok('CONSOLE_URL', `to register at the issuer: ${redirectUri(consoleUrl)}`);
  return [...(await examineIssuer(issuer)), place];
}

async function examineIssuer(issuer: string): Promise<Finding[]> {
  const host = hostOf(issuer);
  const toDo = `compare ${CHECK} with the issuer's own documentation, and look at the way out of this network`;
  const answer = await askHttp(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (typeof answer === 'string') return [failed(CHECK, `${host}: ${answer}`, toDo)];
  const said = (answer.json ?? {}) as Record<string, unknown>;
  const { issuer: itself, jwks_uri: keys } = said;
  if (answer.status !== 200 || typeof itself !== 'string' || typeof keys !== 'string') {
    return [failed(CHECK, `${host} answers ${kindOf(answer)}, not as an OpenID issuer`, toDo)];
  }
  if (URL.parse(itself)?.href !== new URL(issuer).href) {
    return [failed(CHECK, `${host} says that it is another issuer`, `${toDo}; one for all tenants is no issuer`)];
  }
  const missing = [
    ...['authorization_endpoint', 'token_endpoint'].filter((name) => typeof said[name] !== 'string'),
    ...(includes(said['response_types_supported'], 'code') ? [] : ['the authorization code flow']),
    // Not every issuer that has it says so.
    ...(includes(said['code_challenge_methods_supported'] ?? ['S256'], 'S256') ? [] : ['PKCE with S256']),
  ];
  const found = missing.length > 0 ? `${host} does without ${missing.join(', ')}` : undefined;
  const algorithms = PUBLIC_ALGORITHMS;
  return [
    found === undefined ? ok(CHECK, `${host} answers`) : failed(CHECK, found, 'sign in at another issuer'),
    await examineKeySet({ part: 'operators', check: 'keys of OIDC_ISSUER', url: keys, algorithms, toDo }),
  ];
}

function includes(list: unknown, word: string): boolean {
  return Array.isArray(list) && list.includes(word);
}
