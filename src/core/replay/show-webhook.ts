import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { Status } from '../domain/lifecycle.ts';
import { DropCause } from '../domain/webhook-cause.ts';
import type { Registry } from '../domain/provider.ts';
import { WebhookAuth } from '../domain/webhook-auth.ts';
import { ListedWebhook } from './list-webhooks.ts';
import { GONE, Refusal, findWebhook, readWebhook } from './stored-webhook.ts';
import { retranslate, type RetranslateDeps } from './retranslate.ts';
import type { Translated } from '../domain/webhook.ts';

const Event = z.object({
  status: Status,
  nativeStatus: z.string(),
  serviceOrderId: z.string().optional(),
  providerOrderId: z.string().optional(),
  reason: z.string().optional(),
  occurredAt: z.string().optional(),
});

/** All of a stored webhook except what is sealed. Body and headers may hold member data. */
export const ShownWebhook = ListedWebhook.extend({
  firstReceivedAt: z.date().meta({ description: 'Of a replay: when the webhook itself came.' }),
  headers: z.record(z.string(), z.string()).exactOptional().meta({
    description:
      'As they came, our token blanked: what kind of request it was, ids, and what its integration verifies and reads.',
  }),
  body: z
    .object({
      base64: z.string(),
      text: z.string().exactOptional().meta({ description: 'Where it is UTF-8.' }),
    })
    .exactOptional()
    .meta({
      description: 'As it came. It is encrypted if our token is in it, and left out while that cannot be decrypted.',
    }),
  erased: z.boolean().meta({ description: 'Body and headers went with the member data of its order.' }),
  webhookAuth: WebhookAuth.nullable().meta({ description: 'What its POS proves itself with, where that is known.' }),
  today: z
    .union([
      z.object({
        events: z.array(Event),
        pausedUntil: z
          .date()
          .nullable()
          .exactOptional()
          .meta({ description: 'Until when the kitchen takes no orders, where it says so. Null if it takes them.' }),
      }),
      z.object({ dropped: z.string(), cause: DropCause }),
      Refusal,
    ])
    .meta({
      description: "What a replay would read in it, by today's settings; why it would be dropped, or cannot be.",
    }),
  replays: z
    .array(ListedWebhook.pick({ webhookId: true, receivedAt: true, outcome: true, reason: true }))
    .meta({ description: 'Of the same webhook, oldest first.' }),
}).meta({ id: 'ShownWebhook' });
export type ShownWebhook = z.infer<typeof ShownWebhook>;

type WholeWebhook = Required<Omit<ShownWebhook, 'body'>> & Pick<ShownWebhook, 'body'>;

/** @returns undefined if there is no such webhook */
export async function showWebhook(
  deps: RetranslateDeps & { registry: Registry },
  webhookId: string,
): Promise<WholeWebhook | undefined> {
  const key = await findWebhook(deps.pool, webhookId);
  const stored = key && (await readWebhook(deps, key));
  if (stored === undefined) return undefined;
  const again = stored.gone ? GONE : await retranslate(deps, stored);
  const { rows: replays } = await deps.pool.query<ShownWebhook['replays'][number]>(
    `SELECT id AS "webhookId", received_at AS "receivedAt", outcome, reason
     FROM webhooks WHERE replay_of = $1::uuid AND id <> $2::uuid ORDER BY received_at`,
    [stored.replayOf ?? stored.webhookId, stored.webhookId],
  );
  const { secrets: _secrets, locked, day: _day, gone: _gone, body, ...shown } = stored;
  const isLocked = locked !== undefined && body.length === 0;
  return {
    ...shown,
    bytes: isLocked ? Number(stored.headers['content-length'] ?? 0) : body.length,
    ...(!isLocked && { body: { base64: body.toString('base64'), ...(isUtf8(body) && { text: body.toString() }) } }),
    webhookAuth: deps.registry.get(stored.integration)?.webhookAuth ?? null,
    today: inBrief(again),
    replays,
  };
}

function inBrief(again: Translated | Refusal): ShownWebhook['today'] {
  if ('refused' in again) return again;
  const { dropped, events, busy } = again;
  if (dropped !== undefined) return { dropped: dropped.reason, cause: dropped.cause };
  return { events: [...events], ...(busy !== undefined && { pausedUntil: busy.pausedUntil }) };
}
