import { z } from 'zod';
import { Instant } from '../domain/order.ts';

/** What one process knows of the spill. */
export type SpillState = {
  /** Webhooks that it spilled since Postgres is away, and those that it has received and not drained yet. */
  waiting: number;
  /** When the oldest of them came. */
  oldestAt: Date | null;
};

export const NONE_WAITING: SpillState = { waiting: 0, oldestAt: null };

/** The same as operators read it, with what is known of Postgres. */
export const SpillAnswer = z
  .object({
    database: z
      .enum(['up', 'read_only', 'down', 'unknown'])
      .meta({ description: '`read_only`: it answers, and takes no writes, as a standby. `unknown`: not looked yet.' }),
    waiting: z.int().meta({ description: 'Webhooks answered 200 that this process knows not to be in Postgres yet.' }),
    oldestAt: Instant.nullable().meta({ description: 'When the oldest of them came.' }),
  })
  .meta({ id: 'SpillAnswer', examples: [{ database: 'down', waiting: 3, oldestAt: '2027-01-31T18:00:00.123Z' }] });
