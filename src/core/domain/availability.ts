import { z } from 'zod';
import { Instant } from './order.ts';

export const KITCHEN_STATES = ['open', 'busy', 'closed', 'unreachable'] as const;
export const KitchenState = z.enum(KITCHEN_STATES).meta({
  description:
    '`open`: it takes orders. `busy`: it takes orders, but each one takes longer. `closed`: new orders wait. ' +
    '`unreachable`: its POS does not answer, so new orders would wait.',
});

/** Whether a location's kitchen takes orders now. `docs/kitchen-availability.schema.json` is generated from this. */
export const Availability = z
  .object({
    locationId: z.string().meta({ description: "The location's id on the ordering platform." }),
    integration: z.string(),
    state: KitchenState,
    source: z
      .enum(['pos', 'operator', 'inferred'])
      .describe('Who said it: the POS, an operator, or nobody. Without any report, a kitchen is inferred to be open.'),
    since: Instant.meta({ description: 'When this state began.' }),
    until: Instant.nullable().meta({ description: 'When this state ends automatically. Null if that is not known.' }),
    extraMinutes: z
      .int()
      .nullable()
      .describe('The minutes that each order takes longer, if the kitchen is busy. Null if unknown.'),
    sequence: z.int().meta({
      description:
        'A higher number is newer. Numbers are skipped. 0 until the state changes for the first time. Messages may ' +
        'come twice: drop a message that is not above your last number of this location.',
    }),
  })
  .meta({
    id: 'KitchenAvailability',
    title: 'Kitchen availability',
    description:
      'Whether a kitchen takes orders now, as the kitchen topic and `GET /availability` carry it. Each message has the ' +
      'ordering key `locationId` and is a CloudEvent. If a kitchen changes faster than messages are published, only its ' +
      'latest state is published. Fields and values may be added.',
    examples: [
      {
        locationId: 'club-1',
        integration: 'acme',
        state: 'busy',
        source: 'pos',
        since: '2027-01-31T18:00:00.123456+00:00',
        until: '2027-01-31T22:00:00+00:00',
        extraMinutes: 20,
        sequence: 1_801_418_400_123,
      },
    ],
  });
export type Availability = z.infer<typeof Availability>;
