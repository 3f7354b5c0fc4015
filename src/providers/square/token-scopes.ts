import { quoteRefusal } from '../quote-refusal.ts';
import { callSquare, type Square } from './call-square.ts';
import { TokenStatus } from './payloads.ts';
import { readAnswer } from './read-answer.ts';

/** The scopes that orders, payments and webhooks need of a seller's token. */
export const NEEDED_SCOPES = ['ORDERS_READ', 'ORDERS_WRITE', 'PAYMENTS_WRITE'];

/**
 * Reads the token's scopes and its end: https://developer.squareup.com/reference/square/oauth-api/retrieve-token-status
 * @returns two empty lists if Square names no scopes, as it may for an application's own token, which has no end either
 * @throws TryAgain; NeedsOperator if Square refuses the token
 */
export async function tokenScopes(
  context: Square,
): Promise<{ granted: readonly string[]; missing: readonly string[]; expiresAt: string | undefined }> {
  const answer = await callSquare(context, { method: 'POST', path: '/oauth2/token/status' }).catch(
    quoteRefusal(
      [401, 403],
      (status) =>
        `Square refuses the ${context.settings.accessToken === undefined ? "seller's token" : 'accessToken'} (${status}): is it of this baseUrl, and has it expired?`,
    ),
  );
  const { scopes, expires_at: expiresAt } = readAnswer(TokenStatus, answer, "the token's status");
  const granted = scopes ?? [];
  const missing = granted.length === 0 ? [] : NEEDED_SCOPES.filter((scope) => !granted.includes(scope));
  return { granted, missing, expiresAt: expiresAt ?? undefined };
}
