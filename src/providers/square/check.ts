import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { callSquare } from './call-square.ts';
import { secondsUntil } from './obtain-token.ts';
import { LocationAnswer, OrderEntries, type Settings } from './payloads.ts';
import { readAnswer } from './read-answer.ts';
import { tokenScopes } from './token-scopes.ts';

/**
 * Reads the token's scopes, then the location. A seller's token shows the location only with MERCHANT_PROFILE_READ,
 * which orders do not need. Without it the location's orders are searched, which shows whose location it is.
 * @returns how long an `accessToken` lives that nobody renews
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<string | void> {
  const { granted, missing, expiresAt } = await tokenScopes(context);
  if (missing.length > 0) {
    throw new NeedsOperator(
      `the ${context.settings.accessToken === undefined ? 'token' : 'accessToken'} lacks ${missing.join(', ')}: let the seller authorise the application for that as well`,
    );
  }
  if (granted.length === 0 || granted.includes('MERCHANT_PROFILE_READ')) await showLocation(context);
  else await searchLocation(context);
  if (expiresAt === undefined || context.settings.accessToken === undefined) return;
  const days = Math.floor(secondsUntil(expiresAt, context.now) / 86_400);
  return `the accessToken lives for ${days} more days, and nothing renews it: a refreshToken would`;
}

/** Reads the location: https://developer.squareup.com/reference/square/locations-api/retrieve-location */
async function showLocation(context: PosContext<Settings>): Promise<void> {
  const { locationId } = context.settings;
  const answer = await callSquare(context, { method: 'GET', path: `/v2/locations/${locationId}` }).catch(
    quoteRefusal([403], (status) => `Square does not show the location (${status}): is locationId the token's?`),
  );
  if (answer.status === 404) {
    throw new NeedsOperator('Square knows no such location: are locationId and baseUrl right?', { httpStatus: 404 });
  }
  const { id, status } = readAnswer(LocationAnswer, answer, 'the location of locationId').location;
  // "main" is an alias of a location, and no webhook uses it.
  if (id !== locationId) throw new NeedsOperator('locationId is another name of the location, and not its id');
  if (status === 'INACTIVE') {
    throw new NeedsOperator('the location of locationId is inactive at Square: is it the right one?');
  }
}

/**
 * Searches the location's orders. How Square answers for another seller's location is not documented; presumably as it
 * refuses an order there. An entry names an order and none of its contents.
 */
async function searchLocation(context: PosContext<Settings>): Promise<void> {
  const body = { location_ids: [context.settings.locationId], limit: 1, return_entries: true };
  const answer = await callSquare(context, { method: 'POST', path: '/v2/orders/search', body }).catch(
    quoteRefusal(
      [403],
      (status) => `Square does not search the location's orders (${status}): is locationId the token's?`,
    ),
  );
  readAnswer(OrderEntries, answer, 'the orders of locationId');
}
