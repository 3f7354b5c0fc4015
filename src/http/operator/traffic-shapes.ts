/** What operators send and get about traffic, for the route and for the OpenAPI document. */
import { z } from 'zod';
import { WEBHOOK_OUTCOMES } from '../../core/domain/webhook.ts';
import { Instant } from '../../core/domain/live-message.ts';
import { Id } from '../../core/domain/order.ts';

const HOURS = { '1': 1, '6': 6, '24': 24 } as const;

export const TrafficQuery = z.strictObject({
  hours: z
    .enum(['1', '6', '24'], { error: 'is none of 1, 6, 24' })
    .default('1')
    .transform((hours) => HOURS[hours])
    .meta({ description: 'How far back.', examples: ['6'] }),
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'Through this integration.' }),
});

const Counts = z.array(z.int().min(0));
const Seconds = z.array(z.number().nullable());
const Quantiles = z.object({ p50: Seconds, p95: Seconds });

export const Traffic = z
  .object({
    from: Instant,
    to: Instant,
    stepSeconds: z.literal([60, 300, 900]),
    at: z.array(Instant).meta({ description: 'When each step began; every other list here has one value for each.' }),
    integrations: z.array(
      z.object({
        integration: z.string(),
        webhooks: z
          .partialRecord(z.enum([...WEBHOOK_OUTCOMES, 'unauthorized', 'not_committed']), Counts)
          .meta({ description: 'By what became of them, or how they were refused; only what occurred.' }),
        placements: z.object({ sent: Counts, failed: Counts, held: Counts, in_doubt: Counts }).meta({
          description: 'That came into the state. One in doubt that a person says is there is not counted as sent.',
        }),
        placementSeconds: Quantiles.meta({ description: 'From the signal to the ticket; null where none was sent.' }),
        liveLagSeconds: Quantiles.meta({ description: 'From the commit until the topic had the message.' }),
      }),
    ),
  })
  .meta({ id: 'Traffic' });
