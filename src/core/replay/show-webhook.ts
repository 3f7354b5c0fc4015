import { isUtf8 } from 'node:buffer';
import type { Pool } from 'pg';
import { z } from 'zod';
import { Status } from '../domain/lifecycle.ts';
import { DropCause } from '../domain/webhook-cause.ts';
import type { Registry } from '../domain/provider.ts';
import { WebhookAuth } from '../domain/webhook-auth.ts';
import { hideSecrets, secretsOf } from '../locations/hide-secrets.ts';
import { getLocation } from '../locations/locations.ts';
import { CallOutCode, ListedWebhook, readCodes } from './list-webhooks.ts';
import { GONE, Refusal, findWebhook, readWebhook } from './stored-webhook.ts';
import { retranslate, type RetranslateDeps, type Retranslated } from './retranslate.ts';
import { closedUntil } from '../domain/webhook.ts';

const Event = z.object({
  status: Status,
  nativeStatus: z.string(),
  serviceOrderId: z.string().optional(),
  callOutCode: CallOutCode,
  providerOrderId: z.string().optional(),
  reason: z.string().optional(),
  occurredAt: z.string().optional(),
});

/** A stored webhook without its sealed parts. Body and headers may hold member data. */
export const ShownWebhook = ListedWebhook.omit({ replayed: true })
  .extend({
    firstReceivedAt: z.date().meta({ description: 'For a replay: when the original webhook arrived.' }),
    headers: z.record(z.string(), z.string()).exactOptional().meta({
      description:
        'As received, with our token blanked: the kind of request, ids, and headers that its integration verifies or reads.',
    }),
    body: z
      .object({
        base64: z.string(),
        text: z.string().exactOptional().meta({ description: 'Only if it is UTF-8.' }),
      })
      .exactOptional()
      .describe(
        'As received. A body that contains our token is stored encrypted, and left out if it cannot be decrypted.',
      ),
    erased: z.boolean().meta({ description: 'Body and headers were erased with the member data of its order.' }),
    webhookAuth: WebhookAuth.nullable().meta({ description: 'How its POS authenticates, if known.' }),
    today: z
      .union([
        z.object({
          events: z.array(Event),
          unread: z.array(z.string()).exactOptional().meta({
            description: 'Fields of the body that could not be read and were left out, such as `order.occurredAt`.',
          }),
          pausedUntil: z.date().nullable().exactOptional().meta({
            description: 'Until when the kitchen takes no orders, if it reports that. Null if it takes orders.',
          }),
        }),
        z.object({ dropped: z.string(), cause: DropCause }),
        Refusal,
      ])
      .describe("A replay's result by today's settings: its events, why it would be dropped, or why it is refused."),
    replays: z
      .array(ListedWebhook.pick({ webhookId: true, receivedAt: true, outcome: true, reason: true }))
      .meta({ description: 'Replays of the same webhook except this one, oldest first.' }),
  })
  .meta({ id: 'ShownWebhook' });
export type ShownWebhook = z.infer<typeof ShownWebhook>;

type WholeWebhook = Required<Omit<ShownWebhook, 'body'>> & Pick<ShownWebhook, 'body'>;

export async function showWebhook(
  deps: RetranslateDeps & { registry: Registry },
  webhookId: string,
): Promise<WholeWebhook | undefined> {
  const key = await findWebhook(deps.pool, webhookId);
  const stored = key && (await readWebhook(deps, key));
  if (stored === undefined) return undefined;
  const again = stored.gone ? GONE : await retranslate(deps, stored, { isChosen: true });
  const { rows: replays } = await deps.pool.query<ShownWebhook['replays'][number]>(
    `SELECT id AS "webhookId", received_at AS "receivedAt", outcome, reason
     FROM webhooks WHERE replay_of = $1::uuid AND id <> $2::uuid ORDER BY received_at`,
    [stored.replayOf ?? stored.webhookId, stored.webhookId],
  );
  const { secrets: sealed, locked, day: _day, gone: _gone, body: received, ...shown } = stored;
  const location = getLocation(deps.pool, stored.locationId);
  const opened = await location.then(deps.decryptSettings).catch(() => undefined);
  // guard: body-shown
  const secrets = opened === undefined ? [] : secretsOf(opened.provider, opened.settings, sealed?.hidden);
  const body = Buffer.from(hideSecrets(received.toString('latin1'), secrets), 'latin1');
  // A body that is sealed may hold a secret, also if nobody knows the secrets any more.
  const isLocked = received.length === 0 ? locked !== undefined : sealed?.body !== undefined && opened === undefined;
  return {
    ...shown,
    bytes: isLocked ? Number(stored.headers['content-length'] ?? 0) : received.length,
    ...(!isLocked && { body: { base64: body.toString('base64'), ...(isUtf8(body) && { text: body.toString() }) } }),
    webhookAuth: deps.registry.get(stored.integration)?.webhookAuth ?? null,
    today: await inBrief(deps.pool, again),
    replays,
  };
}

async function inBrief(pool: Pool, again: Retranslated | Refusal): Promise<ShownWebhook['today']> {
  if ('refused' in again) return again;
  const { dropped, events, kitchen, unread = [] } = again;
  if (dropped !== undefined) return { dropped: dropped.reason, cause: dropped.cause };
  const left = unread.length > 0 && { unread };
  const codes = await readCodes(
    pool,
    events.map(({ serviceOrderId }) => serviceOrderId),
  );
  const named = events.map((event) => ({ ...event, callOutCode: codes.get(event.serviceOrderId) ?? null }));
  return { events: named, ...left, ...(kitchen !== undefined && { pausedUntil: closedUntil(kitchen) }) };
}
