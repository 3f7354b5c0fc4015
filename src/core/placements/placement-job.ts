import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import type { Claim } from '../domain/placement.ts';
import type { Credentials } from '../domain/provider.ts';
import type { PosId } from '../domain/webhook.ts';
import type { Location, OpenSettings } from '../locations/locations.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { RefetchOrder } from './refetch-order.ts';

/** What it takes to place orders. */
export type PlacementDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  open: OpenSettings;
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  deadlineS: number;
  log: Log;
  observe: Observe;
  breaker: CircuitBreaker;
  /** False when the location, or its integration, has its share of the workers already. */
  enter: (location: Pick<Location, 'locationId' | 'integration'>) => boolean;
  /** Something was put into the outbox. */
  onLive: () => void;
  /** POS ids became ours. */
  onPosIds: (ids: readonly PosId[]) => void;
};

/** A claimed placement that is worked on. What is learnt meanwhile of its order and its location goes into it. */
export type PlacementJob = Omit<Claim, 'callDied' | 'sinceRequest'> & {
  /** By the monotonic clock, in milliseconds. */
  startedAt: number;
  /** The POS may have the order: a request went there, and nobody knows whether it made a ticket. */
  doubt: { secondsSinceRequest: number } | undefined;
};
