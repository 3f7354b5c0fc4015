import { z } from 'zod';
import type { StatusEvent } from './order.ts';
import type { DropCause } from './webhook-cause.ts';

/** What became of an event; of a webhook, the first of its events' outcomes in this order. */
export const EVENT_OUTCOMES = ['applied', 'parked', 'duplicate', 'stale', 'unmatched'] as const;
export const EventOutcome = z.enum(EVENT_OUTCOMES);
export type EventOutcome = z.infer<typeof EventOutcome>;
export const WEBHOOK_OUTCOMES = [...EVENT_OUTCOMES, 'ignored', 'dropped'] as const;
export const WebhookOutcome = z
  .enum(WEBHOOK_OUTCOMES)
  .meta({ id: 'Outcome', description: 'What became of a webhook.' });
export type WebhookOutcome = z.infer<typeof WebhookOutcome>;

/** Why nothing of a webhook could be used: a sentence for people, and the same as data. */
export type Drop = { reason: string; cause: DropCause };

/** One authenticated webhook as it arrived, translated. */
export type TranslatedWebhook = {
  id: string;
  locationId: string;
  integration: string;
  receivedAt: Date;
  /** Without `authorization` and `cookie`. */
  headers: Record<string, string>;
  /** Those two and the request target, sealed; of a dropped webhook only, which a replay verifies again. */
  sealed?: string | undefined;
  body: Buffer;
  /** The body was over the limit and only its beginning is kept. */
  truncated: boolean;
  events: readonly StatusEvent[];
  dropped?: Drop | undefined;
  /** Of a replay: the webhook itself, and when that came. */
  replayOf?: { webhookId: string; receivedAt: Date } | undefined;
};

/** An event on its way to its order, and whose webhook it came with. */
export type ArrivedEvent = {
  webhookId: string;
  locationId: string;
  integration: string;
  event: StatusEvent;
  /** By which it moves its order. A newer version may have parked one that lies between those that we know. */
  rank: number;
};

export type Conflict = ArrivedEvent & { serviceOrderId: string | undefined };

export type PosId = { locationId: string; integration: string; providerOrderId: string };
