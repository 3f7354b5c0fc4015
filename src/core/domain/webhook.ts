import { z } from 'zod';
import type { StatusEvent } from './order.ts';
import type { WebhookAuth } from './webhook-auth.ts';
import type { DropCause } from './webhook-cause.ts';

/**
 * A POS's report of whether its kitchen takes orders now.
 *
 * `until` is the end that the vendor reports, or our limit counted from the webhook's arrival, because the webhook that
 * ends the state may be lost. `extraMinutes` are the minutes that every order takes longer, if the vendor says them.
 * `answer` are fields that the vendor requires in our answer when the report is applied.
 */
export const KitchenReport = z.intersection(
  z.discriminatedUnion('state', [
    z.object({ state: z.literal('open') }),
    z.object({ state: z.literal('busy'), until: z.date(), extraMinutes: z.int().min(1).max(720).optional() }),
    z.object({ state: z.literal('closed'), until: z.date() }),
  ]),
  z.object({ answer: z.record(z.string(), z.string()).optional() }),
);
export type KitchenReport = z.infer<typeof KitchenReport>;

/** The end of a pause that a report begins. Null if the kitchen takes orders. */
export const closedUntil = (report: KitchenReport): Date | null => (report.state === 'closed' ? report.until : null);

/** Headers stored for every webhook: the kind of request, its target, and ids that other systems know. */
const OF_ALL = [
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'request-id',
  'traceparent',
  'user-agent',
  'x-cloud-trace-context',
  'x-correlation-id',
  'x-request-id',
];
/** Headers that are always credentials. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'];

export type WebhookHeaders = { webhookAuth?: WebhookAuth; webhookHeaders?: readonly string[] };

const known = new WeakMap<WebhookHeaders, ReadonlySet<string>>();

/**
 * Names the headers of a webhook that are stored in clear. A signature is one of them, because it is useless for
 * another body. A password never is.
 */
export function storedHeaders(provider: WebhookHeaders): ReadonlySet<string> {
  let names = known.get(provider);
  if (names === undefined) {
    const { webhookAuth, webhookHeaders = [] } = provider;
    const set = new Set([...OF_ALL, ...webhookHeaders]);
    if (webhookAuth?.kind === 'signature') set.add(webhookAuth.header);
    if (webhookAuth?.kind === 'password') set.delete(webhookAuth.header);
    for (const name of CREDENTIAL_HEADERS) set.delete(name);
    names = set;
    known.set(provider, names);
  }
  return names;
}

/** Outcomes of an event. A webhook's outcome is the first in this list that one of its events has. */
export const EVENT_OUTCOMES = ['applied', 'parked', 'duplicate', 'stale', 'unmatched'] as const;
export const EventOutcome = z.enum(EVENT_OUTCOMES);
export type EventOutcome = z.infer<typeof EventOutcome>;
export const WEBHOOK_OUTCOMES = [...EVENT_OUTCOMES, 'ignored', 'dropped'] as const;
export const WebhookOutcome = z.enum(WEBHOOK_OUTCOMES).meta({ description: 'The outcome of a webhook.' });
export type WebhookOutcome = z.infer<typeof WebhookOutcome>;

/** Why a webhook could not be used: a sentence for people, a cause for programs. */
export type Drop = {
  reason: string;
  cause: DropCause;
  /** True if nothing proved that its sender is the POS. The number of such stored webhooks is limited. */
  unproven?: true;
};

/** An authenticated webhook as it arrived. */
export type ArrivedWebhook = {
  id: string;
  locationId: string;
  integration: string;
  receivedAt: Date;
  /** The request target, with our token. */
  target: string;
  token: string;
  /** All headers, names in lower case. */
  headers: Record<string, string>;
  body: Buffer;
  /** True if only the body's beginning is here. */
  truncated: boolean;
};

/** Bytes that are stored of a body that is too large. They are enough for a person to identify the webhook. */
export const BEGINNING = 64 * 1024;

/** A webhook's contents: its events, or a report about the location, or why it cannot be used. */
export type Translated = {
  /** Set if the body may hold secrets of the location: those that are known. */
  held?: readonly string[] | undefined;
} & (
  | { events: readonly StatusEvent[]; kitchen?: undefined; revokedAt?: undefined; dropped?: undefined }
  | { events: readonly []; kitchen?: KitchenReport | undefined; revokedAt?: Date | undefined; dropped?: undefined }
  | { events: readonly []; kitchen?: undefined; revokedAt?: undefined; dropped: Drop }
);

/**
 * An authenticated webhook, translated, as it is stored: with the headers of `storedHeaders`, and without its body if that is
 * encrypted.
 */
export type TranslatedWebhook = Omit<ArrivedWebhook, 'target' | 'token'> & {
  /** The encrypted rest, see `WebhookSecrets`. */
  sealed?: string | undefined;
  /** The original length of a body that is compressed by zstd. */
  zstdOf?: number;
  events: readonly StatusEvent[];
  kitchen?: KitchenReport | undefined;
  /** When the restaurant withdrew our access to its POS, by the vendor's clock. */
  revokedAt?: Date | undefined;
  dropped?: Drop | undefined;
  /** Set for a replay: the original webhook and its time of arrival. */
  replayOf?: { webhookId: string; receivedAt: Date } | undefined;
  /** True if it waited in the spill. Then `firstReceivedAt` of its live messages is its time of arrival. */
  isLate?: true;
  /** True if no POS sent it: it stands for the answer to a status poll, and its body is the events in that answer. */
  polled?: true;
};

export type ArrivedEvent = {
  webhookId: string;
  locationId: string;
  integration: string;
  event: StatusEvent;
  /** The rank that it moves its order to. An event parked by a newer version may have an unknown rank. */
  rank: number;
};

export type Conflict = ArrivedEvent & { serviceOrderId: string | undefined };

export type PosId = { locationId: string; integration: string; providerOrderId: string };
