import type { Availability } from './availability.ts';
import type { LeftOut } from './left-out.ts';
import type { Way } from './live-message.ts';
import type { PlacementCause } from './placement-cause.ts';
import type { Drop, WebhookOutcome } from './webhook.ts';
import type { OldTokenState } from './webhook-cause.ts';

/**
 * An event that the code reports once, where it happens. The log, the metrics and the traces are made from it. It must
 * hold no member data, no token and no setting. Its durations are milliseconds and end when it is reported.
 */
export type Observed =
  | SignalObserved
  | WebhookObserved
  | WebhookRefused
  | OldTokenObserved
  | SpillObserved
  /**
   * A message of the spill changed nothing. not_decrypted: no key decrypts it, or it is not ours; put_back: its webhook
   * could not be committed; known: its webhook was committed before.
   */
  | { what: 'drain'; outcome: 'not_decrypted' | 'put_back'; error: unknown }
  | { what: 'drain'; outcome: 'known' }
  | PlacementObserved
  | CancellationObserved
  | RefreshObserved
  | NoticeObserved
  /** A worker claimed an order. `dueAt` is in RFC 3339 or in Postgres's own format. */
  | { what: 'claim'; serviceOrderId: string; dueAt: string }
  | {
      what: 'refetch';
      serviceOrderId: string;
      /** TryAgain includes unexpected errors, because they are retried. */
      outcome: 'fetched' | 'missing' | 'unreadable' | 'TryAgain' | 'NeedsOperator' | 'GiveUp';
      milliseconds: number;
    }
  /** A signal named an order that ended long ago. It was ignored. */
  | { what: 'past order'; serviceOrderId: string }
  | { what: 'left out'; serviceOrderId: string; locationId: string; leftOut: readonly LeftOut[] }
  | {
      what: 'attempt';
      serviceOrderId: string;
      locationId: string;
      integration: string;
      call: 'createOrder' | 'findOrder' | 'cancelOrder';
      /**
       * placed, absent, a `CancelAnswer`, not_asked (a cancel without a request), not_sent (our own rate limiter allowed
       * no request), or the name of the error.
       */
      outcome: string;
      httpStatus: number | undefined;
      /** True if the call ended with an error. */
      failed: boolean;
      /** The last request, if any. */
      request: RequestMade | undefined;
      milliseconds: number;
    }
  /**
   * The status of an overdue order was polled. said_more: the POS reported statuses that no webhook brought; unknown:
   * it has no such order, or an unknown state; not_asked: the location has another POS now, or allows no poll.
   */
  | {
      what: 'poll';
      outcome: (typeof POLL_OUTCOMES)[number];
      serviceOrderId: string;
      locationId: string;
      integration: string;
      /** The last request, if any. */
      request: RequestMade | undefined;
      milliseconds: number;
      error: unknown;
    }
  /** One statement that applied webhooks. `serviceOrderIds` has an entry per event, undefined for an order not ours. */
  | { what: 'flush'; webhooks: number; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  | { what: 'redrive'; serviceOrderIds: readonly (string | undefined)[]; milliseconds: number }
  | (LiveMessageEnd & {
      what: 'live message';
      serviceOrderId: string;
      /** Null for an order that was never read. */
      locationId: string | null;
      sequence: number;
      appliedAt: string;
      /** The id of the span in which the message was published. The message has it too. */
      spanId: string;
      way: Way;
      /** The time until the topic or the receiver had the message, or until publishing failed. */
      milliseconds: number;
    })
  /** A POS paused a location, or a pause ended. `by` is the integration, or `operator` if only an operator paused it. */
  | { what: 'pause'; action: 'pause'; by: string; locationId: string; until: Date; webhookId: string }
  | { what: 'pause'; action: 'resume'; by: string; locationId: string }
  /** A restaurant withdrew our access to its POS. `by` is the integration. */
  | { what: 'access revoked'; by: string; locationId: string; webhookId: string }
  | ({ what: 'kitchen'; until: Date | null } & Pick<Availability, 'locationId' | 'state' | 'source' | 'extraMinutes'>)
  | FollowObserved
  | FailedAuthObserved
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'done' }
  | { what: 'background work'; work: BackgroundWorkName; outcome: 'failed'; error: unknown }
  /** The event contradicts the stored order, so a person should check it. */
  | {
      what: 'conflict';
      integration: string;
      locationId: string;
      serviceOrderId: string | undefined;
      webhookId?: string;
      status?: string;
      detail?: string;
    };

/** `messageId` is Pub/Sub's id of the message. */
export type LiveMessageEnd =
  | { outcome: 'published'; messageId: string | undefined }
  | { outcome: 'failed'; error: unknown };

export const POLL_OUTCOMES = ['said_more', 'nothing_new', 'unknown', 'not_asked', 'failed'] as const;

export const FOLLOW_REFUSALS = ['no_token', 'bad_token', 'no_keys', 'too_many', 'too_many_of_order', 'error'] as const;
export const FOLLOW_CLOSES = ['ended', 'expired', 'left', 'slow', 'aged', 'drained'] as const;

/** The endpoints that take credentials. The last four refuse wrong credentials, but never throttle their source. */
export const AUTH_ENDPOINTS = [
  'bearer',
  'sign_in',
  'session',
  'oidc',
  'connect_link',
  'connect_code',
  'availability',
  'answer_link',
  'webhook',
  'push',
  'signal',
  'follow',
] as const;
export type AuthEndpoint = (typeof AUTH_ENDPOINTS)[number];
export const FAILED_AUTH_OUTCOMES = ['refused', 'slowed'] as const;

export const BACKGROUND_WORK = [
  'sweep of parked events',
  'notification of estimates',
  'sweep of cancellations',
  'finding of notices',
  'end of pauses',
  'recording of attention',
  'availability of kitchens',
  'suspicion of kitchens',
  'probing of kitchens',
  'check of Postgres',
  'reading of the clock',
  'measurement of the backlog',
  'status polling',
  'reading of webhook tokens',
  'recording of last-seen times',
  'recording of traffic',
  'recording of webhooks not stored',
  'recording of followed orders',
  'report of failed authentications',
  'end of orders',
  'creation of partitions',
  'dropping of partitions',
  'deletion of unmatched webhooks',
  'deletion of refused webhooks',
  'deletion of old traffic',
  'deletion of old sessions',
  'deletion of old connect links',
  'deletion of old notices',
  'deletion of old grants',
  'deletion of old audit',
  'scoring of vendors',
  'erasure of member data',
  'move of past orders',
  'dropping of past orders',
  'renewal of connections',
  'end of unconfirmed grants',
  'publishing of attention',
  'publishing of availability',
] as const;
export type BackgroundWorkName = (typeof BACKGROUND_WORK)[number];

export type RequestMade = {
  method: string;
  /** Undefined if the URL was invalid. */
  origin: string | undefined;
  /** Set when the request is answered. */
  status?: number;
};

type Request = {
  requestId: string;
  /** The trace of the request, 32 hexadecimal digits. */
  trace: string | undefined;
  milliseconds: number;
};

export type SignalObserved = Request & {
  what: 'signal';
  /** By which endpoint it came. */
  from: 'push' | 'http';
  /**
   * recorded: the order will be placed now. It is new, or it failed or was held before it was ever read. known: no
   * order will be placed. If the order has not ended, it is refreshed.
   */
  outcome: 'recorded' | 'known' | 'poison' | 'unauthorized' | 'not_recorded';
  serviceOrderId?: string;
  /** Only from `push`. */
  messageId?: string | undefined;
  /** The subscription's name, without the project. Only from `push`. */
  subscription?: string | undefined;
  /** Only from `http`, if the token is valid. */
  tokenId?: string | undefined;
  detail?: string;
  error?: unknown;
};

/**
 * A webhook that could not be committed in time. spilled: Pub/Sub has it, and it was answered 200; refused: it is stored
 * nowhere, and it was answered 500.
 */
export type SpillObserved = Request & {
  what: 'spill';
  outcome: 'spilled' | 'refused';
  integration: string;
  locationId: string;
  webhookId: string;
  /** Why the commit failed or was late; undefined if Postgres was known to be away. */
  error: unknown;
};

/** A webhook that was answered 200. It was committed or, if it was beyond the quota of its location, only counted. */
export type WebhookObserved = Request & {
  what: 'webhook';
  outcome: WebhookOutcome;
  integration: string;
  locationId: string;
  tokenId: string;
  /** Null if the webhook was beyond the quota and is not stored. */
  webhookId: string | null;
  /** The ids of our orders that its events name. */
  serviceOrderIds: readonly string[];
  dropped: Drop | undefined;
  /** True if it waited in the spill. Then `milliseconds` counts from its arrival. */
  fromSpill?: true;
};

/** A webhook that was answered 401 or 500. */
export type WebhookRefused = Request & {
  what: 'webhook refused';
  outcome: 'unauthorized' | 'not_committed';
  /** The integration in the URL. It is only compared, never logged, because it may be any text, even a token. */
  integration: string | undefined;
  /** The location, if the token was authenticated. */
  locationId?: string | undefined;
  /** The location in the URL. It may be any text too. */
  claimedLocationId: string | undefined;
  /** Undefined if it was refused because the location used more than its share. Only the first is logged. */
  error?: unknown;
};

/** A refused webhook had a token that was once valid for its location. Reported after the attempt to store it. */
export type OldTokenObserved = Request & {
  what: 'old token';
  integration: string;
  locationId: string;
  tokenId: string;
  /** Null if it is not stored. */
  webhookId: string | null;
  state: OldTokenState;
  /** Why storing failed. Undefined if the webhook was stored, or if configuration or a quota excludes it. */
  error: unknown;
};

/** A stream to a member's client. The event does not name the order, because there may be thousands of streams. */
export type FollowObserved =
  | { what: 'follow'; action: 'open' }
  /** `detail` holds no part of a token. */
  | { what: 'follow'; action: 'refuse'; reason: (typeof FOLLOW_REFUSALS)[number]; detail: string }
  /** left: its client closed it; slow: its client did not read; aged: it reached its maximum age. */
  | { what: 'follow'; action: 'close'; reason: (typeof FOLLOW_CLOSES)[number] }
  /** A live message was written into a stream. `milliseconds` counts from its commit. */
  | { what: 'follow'; action: 'deliver'; milliseconds: number };

/** A failed authentication. slowed: rejected unchecked, because this source failed too often. */
export type FailedAuthObserved = {
  what: 'failed authentication';
  endpoint: AuthEndpoint;
  outcome: (typeof FAILED_AUTH_OUTCOMES)[number];
  /** An IPv4 address, or an IPv6 network. A metric cannot have it as a label, because there are too many values. */
  source: string;
};

/** The result of one attempt to place an order. */
export type PlacementObserved = {
  what: 'placement';
  outcome: 'sent' | 'failed' | 'withdrawn' | 'waiting' | 'held' | 'in_doubt';
  /** True if the placement was in another state before. */
  entered: boolean;
  serviceOrderId: string;
  locationId: string | null;
  /** Null if the location is unknown or not configured. */
  integration: string | null;
  /** The duration of the call to the POS, if there was one. */
  milliseconds: number | undefined;
  sinceSignalMs: number;
  /** Set unless the outcome is `sent` or `withdrawn`. The same holds for `cause`. */
  problem: string | undefined;
  cause: PlacementCause | undefined;
  /** True if no further attempt is made until an operator has checked the POS. */
  forOperator: boolean;
};

/** The result of one step of a cancellation at the POS. */
export type CancellationObserved = {
  what: 'cancellation';
  /** asked: a webhook will report the result. in_doubt: the answer was lost. by_phone: only a person can cancel. */
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
 * A known order was refreshed. deferred: it changed while in doubt, or while an operator cancels it. failing: it could not
 * be fetched or read for the first time in a row. given_up: it was unreadable for too long.
 */
export type RefreshObserved = {
  what: 'refresh';
  outcome: (typeof REFRESH_OUTCOMES)[number];
  serviceOrderId: string;
  locationId?: string;
  /** The changed fields, never their values. */
  paths?: readonly string[];
  problem?: string;
  cause?: PlacementCause;
};

export const REFRESH_OUTCOMES = [
  'unchanged',
  'cancelled',
  'withdrawn',
  'changed',
  'changed_after_sent',
  'deferred',
  'failing',
  'given_up',
] as const;

/** An attempt to tell a contact of a restaurant about orders. settled: nothing was left to tell. */
export type NoticeObserved = {
  what: 'notice';
  outcome: (typeof NOTICE_OUTCOMES)[number];
  via: 'email' | 'webhook';
  messageId: string;
  locationId: string;
  orders: number;
  problem?: string;
};
export const NOTICE_OUTCOMES = ['sent', 'failed', 'gave_up', 'settled'] as const;

export type Observe = (observed: Observed) => void;

/** `anonymous`: no request on the connection has authenticated yet. */
export const WHOSE = ['anonymous', 'authenticated'] as const;
export type Whose = (typeof WHOSE)[number];

export type ConnectionCounts = {
  most: number;
  open: Record<Whose, number>;
  /** How many connections were closed to free capacity since the process started. */
  closed: Record<Whose, number>;
};
