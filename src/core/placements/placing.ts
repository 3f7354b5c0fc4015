import type { Pool } from 'pg';
import type { PosId } from '../domain/webhook.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Claim } from '../domain/placement.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { Location, OpenSettings } from '../locations/locations.ts';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import type { Credentials } from '../domain/provider.ts';
import type { RefetchOrder } from './refetch-order.ts';

/** What it takes to place orders. */
export type Placing = {
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

/** A claim that is worked on. What is learnt meanwhile of its order and its location goes into it. */
export type Trying = Claim & {
  /** By the monotonic clock, in milliseconds. */
  begunAt: number;
};
