import type { LeftOut } from './left-out.ts';
import type { PlacementCause } from './placement-cause.ts';
import type { Drop, WebhookOutcome } from './webhook.ts';
import type { OldTokenState } from './webhook-cause.ts';

/**
 * An event, reported once, where it happens; the log, the metrics and the traces read it. It holds no member data, no
 * token and no setting. Durations are milliseconds that end now.
 */
export type Observed =
  | SignalObserved
  | WebhookObserved
  | WebhookRefused
  | OldTokenObserved
  | SpillObserved
  /**
   * A message of the spill changed nothing. unopened: no key opens it, or it is none of ours; put_back: it could not be
   * committed; known: it was committed before.
   */
  | { what: 'drain'; outcome: 'unopened' | 'put_back'; error: unknown }
  | { what: 'drain'; outcome: 'known' }
  | PlacementObserved
  | CancellationObserved
  | RefreshObserved
  /** A worker claimed an order. `dueAt` is RFC 3339 or as Postgres writes it. */
  | { what: 'claim'; serviceOrderId: string; dueAt: string }
  | {
      what: 'refetch';
      serviceOrderId: string;
      /** TryAgain includes unexpected errors, which are tried again. */
      outcome: 'fetched' | 'missing' | 'unreadable' | 'TryAgain' | 'NeedsOperator' | 'GiveUp';
      milliseconds: number;
    }
  /** An order was read without what cannot be used. */
  | { what: 'left out'; serviceOrderId: string; locationId: string; leftOut: readonly LeftOut[] }
  | {
      what: 'attempt';
      serviceOrderId: string;
      locationId: string;
      integration: string;
      call: 'createOrder' | 'findOrder' | 'cancelOrder';
      /** placed, absent, the answer to a cancel, or the name of the error. */
      outcome: string;
      httpStatus: number | undefined;
      /** True if it ended with an error. */
      failed: boolean;
      /** The last one, if there was any. */
      request: RequestMade | undefined;
      milliseconds: number;
    }
  /**
   * A POS was asked about an order that was quieter than it should be. said_more: webhooks of it are missing; unknown: it
   * has no such order, or none of the states that we know; not_asked: its settings name nobody to ask.
   */
  | {
      what: 'poll';
      outcome: (typeof ASK_OUTCOMES)[number];
      serviceOrderId: string;
      locationId: string;
      integration: string;
      /** The last one, if there was any. */
      request: RequestMade | undefined;
      milliseconds: number;
      /** Of one that failed. */
      error: unknown;
    }
  /** One statement that applied webhooks. `serviceOrderIds` has one entry per event; undefined for others' orders. */
  | { what: 'flush'; webhooks: number; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  /** Parked events were re-driven. */
  | { what: 'redrive'; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  | (LiveMessageEnd & {
      what: 'live message';
      serviceOrderId: string;
      /** Null for an order that was never read. */
      locationId: string | null;
      sequence: number;
      appliedAt: string;
      /** Of the publishing. The message names it. */
      spanId: string;
      /** The time until the topic had it, or failed. */
      milliseconds: number;
    })
  /** A POS paused its location, or orders go on: by its word, or at the pause's end. `by` is the integration. */
  | { what: 'POS pause'; action: 'pause'; by: string; locationId: string; until: Date; webhookId: string }
  | { what: 'POS pause'; action: 'resume'; by: string; locationId: string }
  | FollowObserved
  | FailedAuthObserved
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'done' }
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'failed'; error: unknown }
  /** The event contradicts what we know: a person should look. */
  | {
      what: 'conflict';
      integration: string;
      locationId: string;
      serviceOrderId: string | undefined;
      webhookId?: string;
      /** The status that the POS reported. */
      status?: string;
      why?: string;
    };

/** `messageId` is Pub/Sub's. */
export type LiveMessageEnd =
  | { outcome: 'published'; messageId: string | undefined }
  | { outcome: 'failed'; error: unknown };

export const ASK_OUTCOMES = ['said_more', 'nothing_new', 'unknown', 'not_asked', 'failed'] as const;

export const FOLLOW_REFUSALS = ['no_token', 'bad_token', 'no_keys', 'too_many', 'too_many_of_order', 'error'] as const;
export const FOLLOW_CLOSES = ['ended', 'expired', 'left', 'slow', 'aged', 'drained'] as const;

/** The doors that take credentials. Whoever has a wrong one for the last three is refused, and never slowed. */
export const AUTH_ENDPOINTS = ['bearer', 'sign_in', 'session', 'oidc', 'webhook', 'push', 'follow'] as const;
export type AuthEndpoint = (typeof AUTH_ENDPOINTS)[number];
export const FAILED_AUTH_OUTCOMES = ['refused', 'slowed'] as const;

/** Names of the work that every process repeats by itself. */
export const BACKGROUND_WORK = [
  'sweep of parked events',
  'notification of estimates',
  'sweep of cancellations',
  'end of pauses by a POS',
  'look at Postgres',
  'look at the backlog',
  'status polling',
  'reading of webhook tokens',
  'recording of last-seen times',
  'recording of traffic',
  'recording of webhooks not kept',
  'recording of followed orders',
  'telling of wrong credentials',
  'end of orders',
  'creation of partitions',
  'dropping of partitions',
  'deletion of unmatched webhooks',
  'deletion of refused webhooks',
  'deletion of old traffic',
  'deletion of old sessions',
  'deletion of old grants',
  'deletion of old audit',
  'scoring of vendors',
  'erasure of member data',
  'renewal of connections',
] as const;
export type BackgroundWorkName = (typeof BACKGROUND_WORK)[number];

/** A request to others. */
export type RequestMade = {
  method: string;
  /** Undefined if its URL was none. */
  origin: string | undefined;
  /** Set once it is answered. */
  status?: number;
};

/** The fields of every request at a door. */
type Asked = {
  requestId: string;
  /** The trace of the request, 32 hexadecimal digits. */
  trace: string | undefined;
  milliseconds: number;
};

export type SignalObserved = Asked & {
  what: 'signal';
  /**
   * recorded: there is an order to place now, also where it failed, or is held, before it was ever read. known: none is, and
   * it is fetched once more unless it has ended.
   */
  outcome: 'recorded' | 'known' | 'poison' | 'unauthorized' | 'not_recorded';
  serviceOrderId?: string;
  messageId?: string | undefined;
  /** Without its project. */
  subscription?: string | undefined;
  why?: string;
  error?: unknown;
};

/**
 * A webhook that could not be committed in time. spilled: Pub/Sub has it, and it was answered 200; refused: nobody has
 * it, and it was answered 500.
 */
export type SpillObserved = Asked & {
  what: 'spill';
  outcome: 'spilled' | 'refused';
  integration: string;
  locationId: string;
  webhookId: string;
  /** Why Postgres did not have it in time; undefined while it is known to be away. */
  why: unknown;
};

/** A webhook that was committed or, beyond the quota, counted. It was answered 200. */
export type WebhookObserved = Asked & {
  what: 'webhook';
  outcome: WebhookOutcome;
  integration: string;
  locationId: string;
  tokenId: string;
  /** Null if nothing of it is kept, beyond the quota of its location. */
  webhookId: string | null;
  /** Our orders that it is about. */
  serviceOrderIds: readonly string[];
  dropped: Drop | undefined;
  /** True if it waited in the spill. Its time began when it came. */
  fromSpill?: true;
};

/** A webhook that was answered 401 or 500. */
export type WebhookRefused = Asked & {
  what: 'webhook refused';
  outcome: 'unauthorized' | 'not_committed';
  /** The integration in the URL, for comparison only: it may be anything, even a token. */
  integration: string | undefined;
  /** The location, once the token is authenticated. */
  locationId?: string | undefined;
  /** The location in the URL, for comparison only. */
  claimedLocationId: string | undefined;
  /** Undefined if the location is held back for the others. That is logged once, when it begins. */
  error?: unknown;
};

/** A refused webhook had a token that was issued once for its location: said once it is kept, or is not. */
export type OldTokenObserved = Asked & {
  what: 'old token';
  integration: string;
  locationId: string;
  tokenId: string;
  /** Null if nothing of it is kept. */
  webhookId: string | null;
  state: OldTokenState;
  /** Why it is not kept, if that is nobody's choice and not the quota's. */
  error: unknown;
};

/** A stream to a member's client. Which order it follows is not said: there may be thousands. */
export type FollowObserved =
  | { what: 'follow'; action: 'open' }
  /** `detail` holds no part of a token. */
  | { what: 'follow'; action: 'refuse'; why: (typeof FOLLOW_REFUSALS)[number]; detail: string }
  /** left: its reader went; slow: its reader did not read; aged: it was open for long enough. */
  | { what: 'follow'; action: 'close'; why: (typeof FOLLOW_CLOSES)[number] }
  /** A live message was written into a stream. Its time began with its commit. */
  | { what: 'follow'; action: 'tell'; milliseconds: number };

/** A credential that opened nothing. slowed: nobody looked at it, since too many wrong ones came from there. */
export type FailedAuthObserved = {
  what: 'failed authentication';
  endpoint: AuthEndpoint;
  outcome: (typeof FAILED_AUTH_OUTCOMES)[number];
  /** An address, or of IPv6 its network. Never a metric's label. */
  source: string;
};

/** The result of a try. */
export type PlacementObserved = {
  what: 'placement';
  outcome: 'sent' | 'failed' | 'withdrawn' | 'waiting' | 'held' | 'in_doubt';
  /** True if the placement was in another state before. */
  entered: boolean;
  serviceOrderId: string;
  locationId: string | null;
  /** Null while no location is known, or it is not configured. */
  integration: string | null;
  /** The duration of the call to the POS, if there was one. */
  milliseconds: number | undefined;
  sinceSignalMs: number;
  /** Set for every outcome but `sent` and `withdrawn`, as `cause` is. */
  problem: string | undefined;
  cause: PlacementCause | undefined;
  /** True if nothing more is tried until somebody looks at the POS. */
  forOperator: boolean;
};

/** What became of an order that is to be cancelled at its POS. */
export type CancellationObserved = {
  what: 'cancellation';
  /** asked: the POS will say. in_doubt: its answer was lost. waiting, held: as of placements. by_phone: only a person can. */
  outcome: (typeof CANCELLATION_OUTCOMES)[number];
  serviceOrderId: string;
  locationId: string;
  integration: string | null;
  problem?: string;
  cause?: PlacementCause;
};

export const CANCELLATION_OUTCOMES = [
  'cancelled',
  'withdrawn',
  'refused',
  'asked',
  'waiting',
  'held',
  'in_doubt',
  'by_phone',
] as const;

/**
 * A known order was fetched once more. deferred: it is changed, and in doubt. given_up: it could not be read for too long,
 * and `problem` says why.
 */
export type RefreshObserved = {
  what: 'refresh';
  outcome: (typeof LOOK_OUTCOMES)[number];
  serviceOrderId: string;
  locationId?: string;
  /** What the platform changed, never the values. */
  paths?: readonly string[];
  problem?: string;
};

export const LOOK_OUTCOMES = [
  'unchanged',
  'cancelled',
  'withdrawn',
  'changed',
  'changed_after_sent',
  'deferred',
  'given_up',
] as const;

export type Observe = (observed: Observed) => void;
