import { NeedsOperator, quoteRefusal } from 'expediter-kit';
import type { PosContext } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import type { Settings } from './payloads.ts';

/** Shows the store, which changes nothing ("Stores"): client and store are right. Nothing shows the webhook's secret. */
export async function check(context: PosContext<Settings>): Promise<void> {
  const answer = await callAcme(context, { method: 'GET' }).catch(
    quoteRefusal(
      [403],
      (status) => `Acme shows us nothing of the store (${status}): may the client of clientId serve it?`,
    ),
  );
  if (answer.status >= 300) {
    throw new NeedsOperator(`Acme does not show the store of storeId: ${answer.status} (${codeIn(answer)})`, {
      httpStatus: answer.status,
    });
  }
}
