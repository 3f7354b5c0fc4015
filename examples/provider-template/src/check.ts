import { NeedsOperator, quoteRefusal } from 'expediter-kit';
import type { PosContext } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import type { Settings } from './payloads.ts';

/** Reads the store ("Stores"). The answer proves that client and store are right, but not the webhook's secret. */
export async function check(context: PosContext<Settings>): Promise<void> {
  const answer = await callAcme(context, { method: 'GET' }).catch(
    quoteRefusal(
      [403],
      (status) => `Acme refuses the store (${status}): check that the client of clientId may serve it`,
    ),
  );
  if (answer.status >= 300) {
    throw new NeedsOperator(`Acme does not show the store of storeId: ${answer.status} (${codeIn(answer)})`, {
      httpStatus: answer.status,
    });
  }
}
