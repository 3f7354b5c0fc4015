import type { Pool } from 'pg';
import type { PosId } from './apply-deliveries.ts';
import type { Now } from './database-clock.ts';
import type { OpenSettings } from './locations.ts';
import type { Log } from './log.ts';
import type { Credentials } from './provider.ts';
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
  /** False when the location has its share of the workers already. */
  enter: (locationId: string) => boolean;
  /** Something was put into the outbox. */
  onLive: () => void;
  /** POS ids became ours. */
  onPosIds: (ids: readonly PosId[]) => void;
};
