/**
 * Square's code flow: https://developer.squareup.com/docs/oauth-api/overview and the reference of ObtainToken, read in
 * November 2026. Access tokens live for 30 days and stay valid next to their successors; the refresh token stays the
 * same until the seller withdraws it; a code can be used once, within five minutes. The page and the end of access:
 * https://developer.squareup.com/reference/square/o-auth/authorize and …/revoke-token.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import { sendConsent } from '../send-consent.ts';
import type { SquareAnswer, SquareCall } from './square-requests.ts';

export const TOKEN_S = 30 * 86_400;
const CODE_MS = 5 * 60_000;

const text = (min: number, max: number) => z.string().min(min).max(max);
const ObtainToken = z.strictObject({
  client_id: text(1, 191),
  client_secret: text(2, 1024).optional(),
  code: text(1, 191).optional(),
  redirect_uri: text(1, 2048).optional(),
  grant_type: z.enum(['authorization_code', 'refresh_token', 'migration_token']),
  refresh_token: text(2, 1024).optional(),
  scopes: z.array(z.string()).optional(),
  short_lived: z.boolean().optional(),
  code_verifier: text(43, 128).optional(),
});

const RevokeToken = z.strictObject({
  client_id: text(1, 191).optional(),
  access_token: text(2, 1024).optional(),
  merchant_id: text(1, 255).optional(),
  revoke_only_access_token: z.boolean().optional(),
});

/** Parameters of the page. `redirect_uri` is not one that the code flow needs: the registered one is used. */
const PAGE = ['client_id', 'scope', 'locale', 'session', 'state'];

/** The seller of the simulator's location, and one who has no location of ours. */
export const MERCHANT = 'MLEFBHHSJGVHD';
export const OTHER_MERCHANT = 'MOTHERSELLER1';

export type SquareOauth = ReturnType<typeof squareOauth>;

export function squareOauth() {
  const application = {
    clientId: `sq0idp-${randomBytes(16).toString('base64url')}`,
    clientSecret: `sq0csp-${randomBytes(32).toString('base64url')}`,
  };
  const newRefreshToken = (): string => `EQAA${randomBytes(40).toString('base64url')}`;
  /** By seller. */
  const refreshTokens = new Map([MERCHANT, OTHER_MERCHANT].map((seller) => [seller, newRefreshToken()]));
  const sellerByRefreshToken = (token: string): string | undefined =>
    [...refreshTokens].find(([, each]) => each === token)?.[0];
  /** When each token expires. */
  const tokens = new Map<string, number>();
  const ofOthers = new Set<string>();
  const codes = new Map<string, { until: number; merchant: string }>();
  let grants = 0;
  const withdrawn = new Set<string>();
  const sellerOf = (token: string): string => (ofOthers.has(token) ? OTHER_MERCHANT : MERCHANT);

  /** @returns the seller; undefined if nothing proves who it is */
  function provenBy({ grant_type, code = '', refresh_token = '' }: z.infer<typeof ObtainToken>): string | undefined {
    if (grant_type === 'refresh_token') return sellerByRefreshToken(refresh_token);
    const { until = 0, merchant } = codes.get(code) ?? {};
    codes.delete(code);
    return grant_type === 'authorization_code' && until > Date.now() ? merchant : undefined;
  }

  const oauth = {
    ...application,
    get refreshToken(): string {
      return refreshTokens.get(MERCHANT) ?? '';
    },
    get grants() {
      return grants;
    },
    /** The seller agrees. Returns the code in the redirect URL. */
    authorise(merchant = MERCHANT): string {
      const code = `sq0cgb-${randomBytes(16).toString('base64url')}`;
      codes.set(code, { until: Date.now() + CODE_MS, merchant });
      withdrawn.delete(merchant);
      return code;
    },
    /** The redirect URL in the application's registration. */
    redirectUrl: 'https://not-registered.invalid/',
    /** True if the browser is signed in as a seller who has no location of ours. */
    signsInAsAnother: false,
    /** The scopes that the page was last asked for. */
    scopes: undefined as string[] | undefined,
    /** `GET /oauth2/authorize` */
    showPage(response: ServerResponse, query: URLSearchParams): void {
      const unknown = [...query.keys()].filter((name) => !PAGE.includes(name));
      if (unknown.length > 0 || query.get('client_id') !== application.clientId) {
        response.writeHead(400, { 'content-type': 'text/html' }).end(`<p>not known: client_id, ${unknown.join()}`);
        return;
      }
      oauth.scopes = query.get('scope')?.split(' ');
      const code = oauth.authorise(oauth.signsInAsAnother ? OTHER_MERCHANT : MERCHANT);
      sendConsent(response, { vendor: 'Square', redirectUrl: oauth.redirectUrl, state: query.get('state'), code });
    },
    /** `POST /oauth2/revoke`, with `Authorization: Client` and the application's secret. */
    revoke(call: SquareCall, authorization: string | undefined): SquareAnswer {
      const body = call.read(RevokeToken);
      if ('status' in body) return body;
      const { client_id, access_token = '', merchant_id } = body.value;
      if (authorization !== `Client ${application.clientSecret}` || client_id !== application.clientId) {
        return unauthorized('The application is not known by this secret.');
      }
      const seller = merchant_id ?? (tokens.has(access_token) ? sellerOf(access_token) : '');
      if (withdrawn.has(seller) || ![MERCHANT, OTHER_MERCHANT].includes(seller)) return unauthorized('Not authorized.');
      oauth.withdraw(seller);
      return { status: 200, body: { success: true } };
    },
    isOfAnother: (token: string): boolean => ofOthers.has(token),
    get isWithdrawn() {
      return withdrawn.has(MERCHANT);
    },
    /** The sellers who have no authorisation any more. */
    withdrawn,
    /** The seller revokes the authorisation. The next one has another refresh token. */
    withdraw(seller = MERCHANT): void {
      withdrawn.add(seller);
      refreshTokens.set(seller, newRefreshToken());
      for (const token of tokens.keys()) if (sellerOf(token) === seller) tokens.delete(token);
    },
    /** `GET /v2/merchants/me` */
    showSeller(token: string): SquareAnswer {
      const business_name = ofOthers.has(token) ? 'Another Diner' : 'Trattoria Berlin';
      return {
        status: 200,
        body: { merchant: { id: sellerOf(token), business_name, country: 'DE', status: 'ACTIVE' } },
      };
    },
    expireTokens(): void {
      for (const token of tokens.keys()) tokens.set(token, 0);
    },
    expiryOf: (token: string): number | undefined => tokens.get(token),
    obtainToken(call: SquareCall): SquareAnswer {
      const body = call.read(ObtainToken);
      if ('status' in body) return body;
      const { client_id, client_secret } = body.value;
      if (client_id !== application.clientId || client_secret !== application.clientSecret) {
        return unauthorized('The application is not known by this secret.');
      }
      const merchant_id = provenBy(body.value);
      if (merchant_id === undefined) return unauthorized('Not authorized.');
      grants += 1;
      const access_token = `EAAA${randomBytes(30).toString('base64url')}`;
      const until = Date.now() + TOKEN_S * 1_000;
      tokens.set(access_token, until);
      const expires_at = new Date(until).toISOString().replace(/\.\d+Z$/, 'Z');
      if (merchant_id !== MERCHANT) ofOthers.add(access_token);
      const refresh_token = refreshTokens.get(merchant_id);
      const granted = { access_token, token_type: 'bearer', expires_at, merchant_id, refresh_token };
      return { status: 200, body: { ...granted, short_lived: false } };
    },
  };
  return oauth;
}

const unauthorized = (detail: string): SquareAnswer => ({
  status: 401,
  body: { errors: [{ category: 'AUTHENTICATION_ERROR', code: 'UNAUTHORIZED', detail }] },
});
