/**
 * Square's code flow: https://developer.squareup.com/docs/oauth-api/overview and the reference of ObtainToken, read in
 * November 2026. Access tokens live for 30 days and stay valid beside their successors; the refresh token stays the same
 * until the seller withdraws it; a code can be used once, within five minutes.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
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

export type SquareOauth = ReturnType<typeof squareOauth>;

export function squareOauth() {
  const application = {
    clientId: `sq0idp-${randomBytes(16).toString('base64url')}`,
    clientSecret: `sq0csp-${randomBytes(32).toString('base64url')}`,
  };
  const refreshToken = `EQAA${randomBytes(40).toString('base64url')}`;
  /** When each token expires. */
  const tokens = new Map<string, number>();
  const codes = new Map<string, number>();
  let grants = 0;
  let isWithdrawn = false;

  const unauthorized = (detail: string): SquareAnswer => ({
    status: 401,
    body: { errors: [{ category: 'AUTHENTICATION_ERROR', code: 'UNAUTHORIZED', detail }] },
  });

  function isProven({ grant_type, code = '', refresh_token }: z.infer<typeof ObtainToken>): boolean {
    if (grant_type === 'refresh_token') return !isWithdrawn && refresh_token === refreshToken;
    const until = codes.get(code) ?? 0;
    codes.delete(code);
    return grant_type === 'authorization_code' && until > Date.now();
  }

  return {
    ...application,
    refreshToken,
    get grants() {
      return grants;
    },
    /** The seller agrees. Returns the code in the redirect URL. */
    authorise(): string {
      const code = `sq0cgb-${randomBytes(16).toString('base64url')}`;
      codes.set(code, Date.now() + CODE_MS);
      isWithdrawn = false;
      return code;
    },
    /** The seller revokes the authorisation. */
    withdraw(): void {
      isWithdrawn = true;
      tokens.clear();
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
      if (!isProven(body.value)) return unauthorized('Not authorized.');
      grants += 1;
      const access_token = `EAAA${randomBytes(30).toString('base64url')}`;
      const until = Date.now() + TOKEN_S * 1_000;
      tokens.set(access_token, until);
      const expires_at = new Date(until).toISOString().replace(/\.\d+Z$/, 'Z');
      const merchant_id = 'MLEFBHHSJGVHD';
      const granted = { access_token, token_type: 'bearer', expires_at, merchant_id, refresh_token: refreshToken };
      return { status: 200, body: { ...granted, short_lived: false } };
    },
  };
}
