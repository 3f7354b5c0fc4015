/**
 * HubRise's authorisation for installed apps: https://www.hubrise.com/developers/api/authentication, read in November
 * 2026. A code can be exchanged once, within ten minutes, by the client with its secret; the token never expires, and
 * another authorisation of the same location gives the same one with the new scope.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendJson } from '../../network/serve-http.ts';
import { sendConsent } from '../send-consent.ts';

const CODE_MS = 10 * 60_000;
const SCOPES = ['location[orders.write]', 'location[orders.write,customer_list.write]'];

export type HubriseOauth = ReturnType<typeof hubriseOauth>;

export function hubriseOauth(
  connection: { accessToken: string; clientSecret: string },
  resources: Record<string, string>,
  refuse: (response: ServerResponse, status: number, body: object, why: string) => void,
) {
  const clientId = `${Date.now()}.clients.hubrise.com`;
  const codes = new Map<string, { until: number; scope: string }>();
  let scope = SCOPES[1];
  let isRevoked = false;

  const oauth = {
    clientId,
    /** True if the connection may write to its customer list. */
    opensCustomers: (): boolean => scope === SCOPES[1],
    /** Opens the page and agrees. @throws Error if the page would refuse its parameters */
    authorise(page: string): string {
      const { pathname, searchParams } = new URL(page);
      const asked = Object.fromEntries(searchParams);
      if (pathname !== '/oauth2/v1/authorize') throw new Error(`HubRise has no page ${pathname}`);
      if (asked['client_id'] !== clientId) throw new Error('the client is not known');
      if (asked['redirect_uri'] !== 'urn:ietf:wg:oauth:2.0:oob' && !/^https?:/.test(asked['redirect_uri'] ?? '')) {
        throw new Error('the code would not be shown');
      }
      if (!SCOPES.includes(asked['scope'] ?? '')) throw new Error(`the scope is none: ${asked['scope']}`);
      const code = randomBytes(16).toString('hex');
      codes.set(code, { until: Date.now() + CODE_MS, scope: asked['scope'] ?? '' });
      return code;
    },
    /** `GET /oauth2/v1/authorize` of a web application */
    showPage(response: ServerResponse, page: URL): void {
      let code: string;
      try {
        code = oauth.authorise(page.href);
      } catch (error) {
        return refuse(response, 400, { error: String(error) }, String(error));
      }
      const { searchParams } = page;
      const redirectUrl = searchParams.get('redirect_uri') ?? '';
      return sendConsent(response, { vendor: 'HubRise', redirectUrl, state: searchParams.get('state'), code });
    },
    /** `POST /oauth2/v1/revoke` */
    revoke(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
      const basic = `Basic ${Buffer.from(`${clientId}:${connection.clientSecret}`).toString('base64')}`;
      if (request.headers.authorization !== basic) {
        return refuse(response, 401, { error: 'invalid_client' }, 'the client id or secret is wrong');
      }
      if (new URLSearchParams(body.toString()).get('token') !== connection.accessToken || isRevoked) {
        return refuse(response, 400, { error: 'invalid_request' }, 'the token is unknown');
      }
      isRevoked = true;
      return sendJson(response, 200, {});
    },
    isRevoked: (): boolean => isRevoked,
    /** `POST /oauth2/v1/token` */
    grant(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
      const basic = `Basic ${Buffer.from(`${clientId}:${connection.clientSecret}`).toString('base64')}`;
      if (request.headers.authorization !== basic) {
        return refuse(response, 401, { error: 'invalid_client' }, 'the client id or secret is wrong');
      }
      if (request.headers['content-type'] !== 'application/x-www-form-urlencoded') {
        return refuse(response, 400, { error: 'invalid_request' }, 'the token request is not a form');
      }
      const form = new URLSearchParams(body.toString());
      if ([...form.keys()].some((name) => !['code', 'client_id', 'client_secret', 'redirect_uri'].includes(name))) {
        return refuse(response, 400, { error: 'invalid_request' }, 'the form has an undocumented field');
      }
      const code = form.get('code') ?? '';
      const known = codes.get(code);
      codes.delete(code);
      if (known === undefined || known.until < Date.now()) {
        return refuse(response, 400, { error: 'invalid_grant' }, 'the code is unknown, used or too old');
      }
      scope = known.scope;
      isRevoked = false;
      const { customer_list_id, customer_list_name, ...others } = resources;
      return sendJson(response, 200, {
        access_token: connection.accessToken,
        token_type: 'Bearer',
        ...others,
        ...(scope === SCOPES[1] && { customer_list_id, customer_list_name }),
      });
    },
  };
  return oauth;
}
