import { quoteRefusal } from '../quote-refusal.ts';
import { callSquare, type Square } from './call-square.ts';
import { TokenStatus } from './payloads.ts';
import { readAnswer } from './read-answer.ts';

/** The scopes that orders, payments and webhooks need of a seller's token. */
const NEEDED = ['ORDERS_READ', 'ORDERS_WRITE', 'PAYMENTS_WRITE'];

/**
 * Reads the token's scopes: https://developer.squareup.com/reference/square/oauth-api/retrieve-token-status
 * @returns two empty lists if Square names no scopes, as it may for an application's own token
 * @throws TryAgain; NeedsOperator if Square refuses the token
 */
export async function tokenScopes(
  context: Square,
): Promise<{ granted: readonly string[]; missing: readonly string[] }> {
  const answer = await callSquare(context, { method: 'POST', path: '/oauth2/token/status' }).catch(
    quoteRefusal(
      [401, 403],
      (status) => `Square refuses the accessToken (${status}): is it of this baseUrl, and has it expired?`,
    ),
  );
  const granted = readAnswer(TokenStatus, answer, "the token's status").scopes ?? [];
  const missing = granted.length === 0 ? [] : NEEDED.filter((scope) => !granted.includes(scope));
  return { granted, missing };
}
