import { z } from 'zod';
import {
  FulfillmentType,
  MEMBER_STATES,
  RANK_END,
  RANK_FAILED,
  STATUSES,
  memberStateAt,
  statusAt,
} from './lifecycle.ts';
import { Instant } from './order.ts';
import { ReasonCode } from './reason-code.ts';

/** A cancellation that has not succeeded. When it succeeds, the status is `cancelled`. */
const Cancellation = z.enum(['requested', 'refused']).meta({
  description:
    'The cancellation: `requested` until the POS answers, `refused` if the order is made anyway. Missing if no ' +
    'cancellation was requested, and once the order is cancelled or has failed.',
});

/** What became of the platform's last change of an order that has a ticket. Stored in `orders.change`. */
export const CHANGE_STATES = ['not_applied', 'applied', 'too_late'] as const;
export type ChangeState = (typeof CHANGE_STATES)[number];
export const RecordedChange = z
  .string()
  .meta({ description: `\`${CHANGE_STATES.join('`, `')}\`, or one of a newer version.` });

/** A message to the member's client. `docs/live-message.schema.json` is generated from this. */
export const LiveMessage = z
  .object({
    serviceOrderId: z.string().meta({ description: "The order's id on the ordering platform." }),
    locationId: z
      .string()
      .exactOptional()
      .describe(
        'Missing in the `failed` or `cancelled` of an order that could never be read from the platform. If the ' +
          'platform signals such a failed order again, it starts again: the next messages have higher sequences and a ' +
          '`locationId`.',
      ),
    sequence: z
      .int()
      .min(1)
      .describe(
        "Counts an order's messages from 1 without gaps. After a restore of our database it continues at a much higher " +
          'number. Messages may come twice: drop a message that is not above your last number.',
      ),
    status: z
      .enum(STATUSES)
      .nullable()
      .describe('What the POS reported. Null for `placed` and `sent`, which no POS reports.'),
    memberState: z.enum(MEMBER_STATES).meta({ description: 'What the member sees.' }),
    fulfillment: FulfillmentType.exactOptional().meta({ description: 'Missing where `locationId` is missing.' }),
    callOutCode: z
      .string()
      .exactOptional()
      .describe(
        'The code that the staff call out. It is the same in every message of the order and on its ticket at the ' +
          'POS. Missing where `locationId` is missing.',
      ),
    providerOrderId: z.string().exactOptional().meta({ description: "The ticket's id at the POS, once it is known." }),
    cancellation: Cancellation.exactOptional(),
    change: z
      .enum(CHANGE_STATES)
      .exactOptional()
      .describe(
        "The platform's last change of the items, the notes, the wanted time, the way, the address or the member, after " +
          'the ticket was at the POS: `not_applied` until somebody says whether the restaurant did it, then `applied` or ' +
          '`too_late`. Missing if nothing was changed, or if the change was taken back. Values may be added.',
      ),
    reason: z.string().exactOptional().describe('Why the order failed or was cancelled, fit for the member.'),
    reasonCode: ReasonCode.exactOptional(),
    itemIds: z
      .array(z.string())
      .exactOptional()
      .describe('The items that the POS names as the reason, by the ids that the platform gave them.'),
    estimatedReadyAt: Instant.exactOptional().describe(
      "The POS's latest estimate of when the food will be ready. Missing without an estimate, and once the order has " +
        'ended.',
    ),
    estimatedDeliveryAt: Instant.exactOptional().describe(
      "The POS's latest estimate of when the food will reach the member. Missing in the same cases.",
    ),
    trackingUrl: z
      .url()
      .exactOptional()
      .describe(
        'The latest https: URL of the POS where the member follows the courier. Missing without a URL, and once the ' +
          'order has ended.',
      ),
    occurredAt: Instant.exactOptional().meta({ description: "When the step happened, by the POS's clock." }),
    firstReceivedAt: Instant.exactOptional().describe(
      "When the POS's webhook first came, by Postgres's clock, if it was applied later: an operator replayed it, or it " +
        'waited until its POS id was known. Missing if it was applied on arrival.',
    ),
    appliedAt: Instant.meta({ description: "When the step was applied, by Postgres's clock." }),
  })
  .meta({
    id: 'LiveMessage',
    title: 'Live message',
    description:
      'One step of an order, as the status topic carries it: published with the ordering key `serviceOrderId` and the ' +
      'attributes type=orderStatusChanged, serviceOrderId, locationId, status, memberState, sequence (an attribute ' +
      'without a value is left out), and as a CloudEvent. Fields and values may be added.',
    examples: [
      {
        serviceOrderId: 'order-4711',
        locationId: 'club-1',
        sequence: 5,
        status: 'ready',
        memberState: 'ready_for_pickup',
        fulfillment: 'pickup',
        callOutCode: 'K472',
        providerOrderId: '8F2K',
        appliedAt: '2027-01-31T18:00:00.123456+00:00',
      },
    ],
  });
export type LiveMessage = z.infer<typeof LiveMessage>;

/** A way by which messages leave the service: the status topic, or a signed webhook to STATUS_WEBHOOK_URL. */
export const LIVE_WAYS = ['topic', 'webhook'] as const;
export type Way = (typeof LIVE_WAYS)[number];

type OrNull<Shape> = {
  [Field in keyof Shape]-?: object extends Pick<Shape, Field> ? Exclude<Shape[Field], undefined> | null : Shape[Field];
};
/**
 * A live message, as it is stored in the outbox and in the row of its order: null where the message has no field. Its
 * `cancellation` and `change` are those of the order now, which may be newer than the message.
 */
export type LiveRow = OrNull<Omit<LiveMessage, 'status' | 'memberState'>> & { rank: number };

/** Returns a message's cancellation: `refused` if the order is completed, none if it has failed or is cancelled. */
export function cancellationNotified(row: Pick<LiveRow, 'rank' | 'cancellation'>): Pick<LiveMessage, 'cancellation'> {
  const { rank, cancellation } = row;
  if (cancellation === null || rank >= RANK_FAILED) return {};
  return { cancellation: rank >= RANK_END ? 'refused' : cancellation };
}

export function toLiveMessage(row: LiveRow): LiveMessage {
  return {
    serviceOrderId: row.serviceOrderId,
    ...(row.locationId !== null && { locationId: row.locationId }),
    sequence: row.sequence,
    status: statusAt(row.rank),
    memberState: memberStateAt(row.rank, row.fulfillment),
    ...(row.fulfillment !== null && { fulfillment: row.fulfillment }),
    ...(row.callOutCode !== null && { callOutCode: row.callOutCode }),
    ...(row.providerOrderId !== null && { providerOrderId: row.providerOrderId }),
    ...cancellationNotified(row),
    ...(row.change !== null && { change: row.change }),
    ...(row.reason !== null && { reason: row.reason }),
    ...(row.reasonCode !== null && { reasonCode: row.reasonCode }),
    ...(row.itemIds !== null && { itemIds: row.itemIds }),
    ...(row.estimatedReadyAt !== null && { estimatedReadyAt: row.estimatedReadyAt }),
    ...(row.estimatedDeliveryAt !== null && { estimatedDeliveryAt: row.estimatedDeliveryAt }),
    ...(row.trackingUrl !== null && { trackingUrl: row.trackingUrl }),
    ...(row.occurredAt !== null && { occurredAt: row.occurredAt }),
    ...(row.firstReceivedAt !== null && { firstReceivedAt: row.firstReceivedAt }),
    appliedAt: row.appliedAt,
  };
}
