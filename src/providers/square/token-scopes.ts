import { quoteRefusal } from '../quote-refusal.ts';
import { callSquare, type Square } from './call-square.ts';
import { TokenStatus } from './payloads.ts';
import { readAnswer } from './read-answer.ts';

/** What orders, payments and webhooks ask of a seller's token. */
const NEEDED = ['ORDERS_READ', 'ORDERS_WRITE', 'PAYMENTS_WRITE'];

/**
 * What the token may do, which any good one may ask for: https://developer.squareup.com/reference/square/oauth-api/retrieve-token-status
 * @returns both empty where Square names none, as it may for an application's own token
 * @throws TryAgain; NeedsOperator where Square does not take the token
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
