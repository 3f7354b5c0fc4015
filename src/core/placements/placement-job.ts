import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import type { Claim } from '../domain/placement.ts';
import type { Credentials } from '../domain/provider.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import type { PosId } from '../domain/webhook.ts';
import type { Location, OpenSettings } from '../locations/locations.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';

/** Fetches the present order. Undefined if the platform has none by that id (yet). */
export type RefetchOrder = (serviceOrderId: string) => Promise<ReadOrder | undefined>;

/** What placing orders needs. */
export type PlacementDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  open: OpenSettings;
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
  deadlineS: number;
  /** Seconds for which a missing order may still appear: the platform's read replica may lag behind its signal. */
  missingS: number;
  log: Log;
  observe: Observe;
  breaker: CircuitBreaker;
  /** False if the location or its integration has its full share of the workers. */
  enter: (location: Pick<Location, 'locationId' | 'integration'>) => boolean;
  /** Called when something was put into the outbox. */
  onLive: () => void;
  /** Called when POS ids became ours that events wait for. */
  onAwaited: (posIds: readonly PosId[]) => void;
};

/** A claimed placement in work, with what is learnt about its order and its location. */
export type PlacementJob = Omit<Claim, 'callDied' | 'sinceRequest'> & {
  /** Milliseconds by the monotonic clock. */
  startedAt: number;
  /** Set if the POS may have the order: a request was sent, and its result is unknown. */
  doubt: { secondsSinceRequest: number } | undefined;
};
