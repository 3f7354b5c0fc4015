import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { listRefused } from './attach-customer.ts';
import { callHubrise } from './call-hubrise.ts';
import { nameRefusal } from './name-refusal.ts';
import { Location, type Settings } from './payloads.ts';

/**
 * Reads the token's location by `GET /location`: https://www.hubrise.com/developers/api/accounts. This proves only the
 * token: no request uses `clientSecret`, and the settings name no location to compare with.
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<void> {
  const answer = await callHubrise(context, { method: 'GET', path: '/location' }).catch(
    quoteRefusal(
      [401, 403],
      (status) => `HubRise refuses accessToken (${status}): is it copied whole, and is the connection still there?`,
    ),
  );
  if (answer.status >= 300) {
    throw new NeedsOperator(`HubRise refused to show the location with ${nameRefusal(answer)}: is baseUrl right?`, {
      httpStatus: answer.status,
    });
  }
  if (!Location.pick({ id: true }).safeParse(answer.json).success) {
    throw new NeedsOperator('what answered is no location of HubRise’s: is baseUrl right?', {
      httpStatus: answer.status,
    });
  }
  if (context.settings.customers === 'attach') await checkCustomers(context);
}

/** Reads the list that orders' members go to. */
async function checkCustomers(context: PosContext<Settings>): Promise<void> {
  const { customerListId = '' } = context.settings;
  const path = `/customer_lists/${encodeURIComponent(customerListId)}`;
  const answer = await callHubrise(context, { method: 'GET', path }).catch((error: unknown) => {
    throw listRefused(error);
  });
  if (answer.status < 300) return;
  throw new NeedsOperator(`HubRise refused the customer list with ${nameRefusal(answer)}: is customerListId right?`, {
    httpStatus: answer.status,
  });
}
