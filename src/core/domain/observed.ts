import type { PlacementCause } from './placement-cause.ts';
import type { Drop, WebhookOutcome } from './webhook.ts';

/**
 * What happened, said once, where it happened; the log, the metrics and the traces read it. It holds no member data, no
 * token and no setting. Times are milliseconds that ended just now.
 */
export type Observed =
  | SignalObserved
  | WebhookObserved
  | WebhookRefused
  | PlacementObserved
  /** A worker took an order up; `dueAt` is RFC 3339 or as Postgres writes it. */
  | { what: 'claim'; serviceOrderId: string; dueAt: string }
  | {
      what: 'refetch';
      serviceOrderId: string;
      /** TryAgain also where nobody knows what went wrong: it is tried again. */
      outcome: 'fetched' | 'missing' | 'TryAgain' | 'NeedsOperator' | 'GiveUp';
      milliseconds: number;
    }
  | {
      what: 'attempt';
      serviceOrderId: string;
      locationId: string;
      integration: string;
      call: 'createOrder' | 'findOrder';
      /** placed, absent, or the name of what was thrown. */
      outcome: string;
      httpStatus: number | undefined;
      milliseconds: number;
    }
  /** One statement that applied webhooks. `serviceOrderIds` has one entry per event, undefined where it is not about ours. */
  | { what: 'flush'; webhooks: number; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  /** Events that had waited for their POS id went on. */
  | { what: 'redrive'; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  | {
      what: 'live message';
      outcome: 'published' | 'failed';
      serviceOrderId: string;
      locationId: string;
      sequence: number;
      appliedAt: string;
      /** Until the topic had it, or had not. */
      milliseconds: number;
    }
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'done' }
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'failed'; error: unknown }
  /** What came contradicts what we know: a person should look. */
  | {
      what: 'conflict';
      integration: string;
      locationId: string;
      serviceOrderId: string | undefined;
      webhookId?: string;
      /** What the POS said. */
      status?: string;
      why?: string;
    };

/** What every process does again and again without being asked. */
export const BACKGROUND_WORK = [
  'sweep of parked events',
  'sweep of unmatched events',
  'look at Postgres',
  'look at the backlog',
  'recording of last-seen times',
  'recording of traffic',
  'end of orders',
  'creation of partitions',
  'dropping of partitions',
  'deletion of unmatched webhooks',
  'deletion of old traffic',
  'erasure of member data',
  'renewal of connections',
] as const;
export type BackgroundWorkName = (typeof BACKGROUND_WORK)[number];

/** Of a request at a door. */
type Asked = {
  requestId: string;
  /** The trace that the request came in with, 32 hexadecimal digits. */
  trace: string | undefined;
  milliseconds: number;
};

export type SignalObserved = Asked & {
  what: 'signal';
  outcome: 'recorded' | 'known' | 'poison' | 'unauthorized' | 'not_recorded';
  serviceOrderId?: string;
  messageId?: string | undefined;
  why?: string;
  error?: unknown;
};

/** One that was answered 200. */
export type WebhookObserved = Asked & {
  what: 'webhook';
  outcome: WebhookOutcome;
  integration: string;
  locationId: string;
  tokenId: string;
  webhookId: string;
  /** Orders of ours that it is about. */
  serviceOrderIds: readonly string[];
  dropped: Drop | undefined;
};

/** One that was answered 401 or 500. */
export type WebhookRefused = Asked & {
  what: 'webhook refused';
  outcome: 'unauthorized' | 'not_committed';
  /** As the URL names it, so it may be anything, a token too: for comparison alone. */
  integration: string | undefined;
  /** Once the token has shown that it is one. */
  locationId?: string | undefined;
  /** As the URL names it, so for comparison alone as well. */
  claimedLocationId: string | undefined;
  /** Undefined where the location is held back for the others, which is told once, where that begins. */
  error?: unknown;
};

/** What follows from a try. */
export type PlacementObserved = {
  what: 'placement';
  outcome: 'sent' | 'failed' | 'waiting' | 'held' | 'in_doubt';
  /** It was in another state before this try. */
  entered: boolean;
  serviceOrderId: string;
  locationId: string | null;
  /** Null while no location is known, or it is not configured. */
  integration: string | null;
  /** Of the call to the POS, where there was one. */
  milliseconds: number | undefined;
  sinceSignalMs: number;
  /** Of each but `sent`, as `cause` is. */
  problem: string | undefined;
  cause: PlacementCause | undefined;
  /** Nothing more is tried until somebody looks at the POS. */
  forOperator: boolean;
};

export type Observe = (observed: Observed) => void;
