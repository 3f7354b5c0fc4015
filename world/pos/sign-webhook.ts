import { Webhook } from 'standardwebhooks';

/** The headers of a Standard Webhook. The clock is read once, since the timestamp is signed too. */
export function signWebhook(
  secret: string,
  body: string,
  { id = 'msg-1', at = new Date() }: { id?: string; at?: Date } = {},
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}
