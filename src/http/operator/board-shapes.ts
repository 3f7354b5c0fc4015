/** The board of `GET /live`: the `data` of its events. */
import { z } from 'zod';
import { Instant } from '../../core/domain/live-message.ts';
import { Id } from '../../core/domain/order.ts';
import { ListedOrder, Status } from './shapes.ts';

export const LiveQuery = z.strictObject({
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'That the order was last sent through.' }),
});

/** `reset`: forget what you have, the board follows. */
export const BoardReset = z.object({ at: Instant });

/** One order as the board has it: nothing of its member. */
export const BoardOrder = ListedOrder.omit({ reason: true, finishedAt: true })
  .extend({
    requestedAt: Instant.nullable().meta({ description: 'When the member wants it; null for as soon as possible.' }),
  })
  .meta({
    id: 'BoardOrder',
    examples: [
      {
        serviceOrderId: 'order-4711',
        locationId: 'club-1',
        integration: 'standard',
        fulfillment: 'pickup',
        placement: 'sent',
        needsOperator: false,
        problem: null,
        status: 'in_progress',
        memberState: 'preparing',
        providerOrderId: '8F2K',
        signalledAt: '2027-01-31T18:00:00.123456+00:00',
        requestedAt: '2027-01-31T18:45:00+00:00',
        nextAttemptAt: null,
        updatedAt: '2027-01-31T18:07:12.223456+00:00',
        endedAt: null,
      },
    ],
  });

/** `orders`: each replaces what you have of its `serviceOrderId`. */
export const BoardOrders = z.object({ orders: z.array(BoardOrder) });

/** `complete`: you have the whole board now. */
export const BoardComplete = z.object({
  open: z.int().meta({ description: 'How many have not ended.' }),
  ended: z.int().meta({ description: 'How many ended within the last 24 hours.' }),
  truncated: z.boolean().meta({ description: 'There are more of either: the oldest are left out.' }),
});

/** `attention`: what a person should look at, whole. */
export const Attention = z
  .object({
    conflicts: z
      .array(
        z.object({
          serviceOrderId: z.string(),
          locationId: z.string().nullable(),
          status: Status,
          recordedAt: Instant,
          webhookId: z.string().nullable(),
        }),
      )
      .meta({ description: 'Events that contradict what we know: of the last 24 hours, the newest 100.' }),
    dropped: z
      .array(
        z.object({
          locationId: z.string(),
          integration: z.string(),
          count: z.int().meta({ description: 'Up to 1,000.' }),
          lastReceivedAt: Instant,
          lastReason: z.string().nullable(),
        }),
      )
      .meta({
        description: 'Webhooks of the last 24 hours that were dropped, and of which no replay has made anything else.',
      }),
    silent: z
      .array(
        z.object({
          locationId: z.string(),
          integration: z.string().nullable(),
          lastSeenAt: Instant.nullable().meta({ description: 'The last webhook of it; null for none ever.' }),
          sent: z.int().meta({ description: 'How many tickets the POS has not said a word of.' }),
          oldestSentAt: Instant,
        }),
      )
      .meta({
        description:
          'Locations that were sent tickets 5 minutes to 24 hours ago, wanted within the hour, and from which nothing ' +
          'has come since the oldest of them.',
      }),
  })
  .meta({ id: 'Attention' });
