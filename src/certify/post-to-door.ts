import { webhookUrl } from '../core/domain/webhook-path.ts';
import type { StoredWebhook } from '../core/replay/stored-webhook.ts';
import { askHttp } from '../doctor/ask-http.ts';

/** Headers that belong to a connection, and not to the webhook. */
const OF_THE_CONNECTION = ['host', 'content-length'];

/** Where webhooks of a location go. */
export type Door = { publicUrl: string; integration: string; locationId: string; token: string };

export type DoorAnswer = { status: number; outcome: string | undefined; webhookId: string | undefined };

/**
 * Posts what a POS sent once more, from outside, as anybody could.
 * @param added bytes behind the body
 * @returns the answer, or why there is none
 */
export async function postToDoor(
  door: Door,
  webhook: Pick<StoredWebhook, 'headers' | 'secrets' | 'body'>,
  added = '',
): Promise<DoorAnswer | string> {
  const headers = Object.entries({ ...webhook.headers, ...webhook.secrets?.headers });
  const answer = await askHttp(webhookUrl(door.publicUrl, door), {
    method: 'POST',
    headers: headers.filter(([name]) => !OF_THE_CONNECTION.includes(name)),
    body: new Uint8Array(Buffer.concat([webhook.body, Buffer.from(added)])),
  });
  if (typeof answer === 'string') return answer;
  const { outcome, webhookId } = (answer.json ?? {}) as Partial<Record<string, unknown>>;
  return {
    status: answer.status,
    outcome: typeof outcome === 'string' ? outcome : undefined,
    webhookId: typeof webhookId === 'string' ? webhookId : undefined,
  };
}
