import { z } from 'zod';
import type { StatusEvent } from './order.ts';
import type { WebhookAuth } from './webhook-auth.ts';
import type { DropCause } from './webhook-cause.ts';

/** What a POS says of its kitchen: whether it takes orders now. */
export const Busy = z.object({
  /**
   * Until when it takes none, counted from when the webhook came: the vendor's own end, or one after which a lost "open
   * again" must not keep the location closed. Null if it takes orders.
   */
  pausedUntil: z.date().nullable(),
  /** Fields that the vendor wants in the answer once it is so, beside ours. */
  answer: z.record(z.string(), z.string()).optional(),
});
export type Busy = z.infer<typeof Busy>;

/** Kept of every webhook: what kind of request it was, where it went, and ids by which others find it again. */
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
/** Credentials by themselves, whoever reads them. */
export const CREDENTIAL_HEADERS: readonly string[] = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key'];

/** What a provider says of its webhooks' headers. */
export type WebhookHeaders = { webhookAuth?: WebhookAuth; webhookHeaders?: readonly string[] };

const known = new WeakMap<WebhookHeaders, ReadonlySet<string>>();

/**
 * Names the headers of a webhook that are stored in clear. A signature is one of them: without its secret it proves
 * nothing of another body. A password never is.
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

/** Outcomes of an event. A webhook's is the first of its events' outcomes in this order. */
export const EVENT_OUTCOMES = ['applied', 'parked', 'duplicate', 'stale', 'unmatched'] as const;
export const EventOutcome = z.enum(EVENT_OUTCOMES);
export type EventOutcome = z.infer<typeof EventOutcome>;
export const WEBHOOK_OUTCOMES = [...EVENT_OUTCOMES, 'ignored', 'dropped'] as const;
export const WebhookOutcome = z.enum(WEBHOOK_OUTCOMES).meta({ description: 'What became of a webhook.' });
export type WebhookOutcome = z.infer<typeof WebhookOutcome>;

/** Why nothing of a webhook could be used: a sentence for people, a cause for programs. */
export type Drop = {
  reason: string;
  cause: DropCause;
  /** True if nothing proved that its sender is the POS. Of such webhooks only so many are kept. */
  unproven?: true;
};

/** An authenticated webhook as it came. */
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

/** Bytes kept of the body of a webhook that is too large, enough to recognise it. */
export const BEGINNING = 64 * 1024;

/** What a webhook says: its events or what it says of the kitchen, or why nothing of it can be used. */
export type Translated =
  | { events: readonly StatusEvent[]; busy?: undefined; dropped?: undefined }
  | { events: readonly []; busy: Busy | undefined; dropped?: undefined }
  | { events: readonly []; busy?: undefined; dropped: Drop };

/** An authenticated webhook, translated, as it is stored. */
export type TranslatedWebhook = {
  id: string;
  locationId: string;
  integration: string;
  receivedAt: Date;
  /** Those that are stored in clear, see `storedHeaders`. */
  headers: Record<string, string>;
  /** What else there is to store, see `WebhookSecrets`. */
  sealed?: string | undefined;
  /** Empty if the body is sealed. */
  body: Buffer;
  /** Of a body that is compressed, by zstd: its length before. */
  zstdOf?: number;
  /** True if only the beginning of the body is stored. */
  truncated: boolean;
  events: readonly StatusEvent[];
  busy?: Busy | undefined;
  dropped?: Drop | undefined;
  /** For a replay: the original webhook and its time. */
  replayOf?: { webhookId: string; receivedAt: Date } | undefined;
  /** True if it waited in the spill: the member is told when it came. */
  isLate?: true;
  /** True if nobody sent it: it is what the POS answered when it was asked, and its body is the events. */
  polled?: true;
};

/** An event with the webhook that brought it. */
export type ArrivedEvent = {
  webhookId: string;
  locationId: string;
  integration: string;
  event: StatusEvent;
  /** The rank that it moves its order to. A newer version may have parked one between those that we know. */
  rank: number;
};

export type Conflict = ArrivedEvent & { serviceOrderId: string | undefined };

export type PosId = { locationId: string; integration: string; providerOrderId: string };
