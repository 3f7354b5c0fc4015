import type { MedusaRequest, MedusaResponse } from '@medusajs/framework/http';
import { Webhook } from 'standardwebhooks';
import { applyStatus, type LiveMessage } from '../../../apply-status';

const webhook = new Webhook(process.env.STATUS_WEBHOOK_SECRET ?? '');

/** Takes Expediter's statuses: `STATUS_WEBHOOK_URL=https://shop.example.com/expediter/statuses`. */
export async function POST(request: MedusaRequest, response: MedusaResponse): Promise<void> {
  let event: { type: string; data: LiveMessage };
  try {
    event = webhook.verify(String(request.body), request.headers as Record<string, string>) as typeof event;
  } catch {
    response.sendStatus(401);
    return;
  }
  // Other types are about kitchens. An error is answered 500, and the message comes again.
  if (event.type === 'expediter.order.status-changed.v1') await applyStatus(request.scope, event.data);
  response.sendStatus(204);
}
