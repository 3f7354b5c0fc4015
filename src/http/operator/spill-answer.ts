import { z } from 'zod';
import { Instant } from '../../core/domain/order.ts';

export const SpillAnswer = z
  .object({
    database: z
      .enum(['up', 'read_only', 'down', 'unknown'])
      .meta({ description: '`read_only`: it answers, and takes no writes, as a standby. `unknown`: not looked yet.' }),
    waiting: z.int().meta({ description: 'Webhooks answered 200 that this process knows not to be in Postgres yet.' }),
    oldestAt: Instant.nullable().meta({ description: 'When the oldest of them came.' }),
  })
  .meta({ id: 'SpillAnswer', examples: [{ database: 'down', waiting: 3, oldestAt: '2027-01-31T18:00:00.123Z' }] });
