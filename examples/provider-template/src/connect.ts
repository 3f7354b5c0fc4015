import { NeedsOperator } from 'expediter-kit';
import type { Connection, PosContext } from 'expediter-kit';
import { callAcme, codeIn } from './call-acme.ts';
import type { Settings } from './payloads.ts';

/** Sets the store's only webhook URL ("Webhooks"). The operator must compare the secret: no request shows it. */
export async function connect(context: PosContext<Settings> & { webhookUrl: string }): Promise<Connection> {
  const answer = await callAcme(context, { method: 'PUT', path: '/webhook', json: { url: context.webhookUrl } });
  if (answer.status >= 300) {
    throw new NeedsOperator(`Acme refused our webhook's URL with ${answer.status} (${codeIn(answer)})`, {
      httpStatus: answer.status,
    });
  }
  return {
    done: [`Acme calls our webhook for store ${context.settings.storeId}.`],
    todo: ['Compare webhookSecret with Back office > Store > Webhooks > Signing secret.'],
  };
}
