import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import type { Observe } from '../domain/observed.ts';
import type { Claim } from '../domain/placement.ts';
import type { Credentials } from '../domain/provider.ts';
import type { CancelOnly, ReadOrder } from '../domain/read-canonical-order.ts';
import type { PosId } from '../domain/webhook.ts';
import type { Location, DecryptSettings } from '../locations/locations.ts';
import type { Now } from '../postgres/database-clock.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';

/** Fetches the current order from the platform. Returns undefined if the platform does not have the order (yet). */
export type RefetchOrder = (serviceOrderId: string) => Promise<ReadOrder | CancelOnly | undefined>;

export type PlacementDeps = {
  pool: Pool;
  refetch: RefetchOrder;
  decryptSettings: DecryptSettings;
  now: Now;
  credentialsFor: (integration: string) => Credentials;
  posFetch: typeof fetch;
  deadlineS: number;
  /** Seconds to wait for an order that is missing. The platform's read replica may lag behind the platform's signal. */
  missingS: number;
  log: Log;
  observe: Observe;
  breaker: CircuitBreaker;
  /** Acquires a worker slot for the location. Returns false if no slot is free or the circuit breaker forbids it. */
  acquireSlot: (location: Pick<Location, 'locationId' | 'integration'>) => boolean;
  onLive: () => void;
  /** Called when these POS ids have become ours, so that the events parked under them can be applied. */
  onAwaited: (posIds: readonly PosId[]) => void;
};

/** A claimed placement being processed. `locationId` and `integration` are updated when its order is fetched. */
export type PlacementJob = Omit<Claim, 'callDied' | 'sinceRequest'> & {
  /** When the processing began, by `performance.now()`. */
  startedAt: number;
  /** Set if a request was sent and its result is unknown, so the POS may have the order. */
  doubt: { secondsSinceRequest: number } | undefined;
};
