import type { ShownOrder } from '../../console/wire.ts';
import { orderTimeline } from '../../src/core/orders/order-timeline.ts';

const at = (time: string): string => `2027-01-31T18:00:${time}+00:00`;

type Attempt = ShownOrder['attempts'][number];
function attempt(
  nth: number,
  [from, to]: [string, string],
  about: Partial<Attempt> & Pick<Attempt, 'outcome'>,
): Attempt {
  return {
    attempt: nth,
    call: 'createOrder',
    httpStatus: null,
    milliseconds: 40,
    error: null,
    reasonCode: null,
    extraMinutes: null,
    startedAt: at(from),
    endedAt: at(to),
    ...about,
  };
}

const PLACEMENT: ShownOrder['placement'] = {
  state: 'sent',
  locationId: 'club-1',
  problem: null,
  cause: null,
  underWay: false,
  attempts: 2,
  failures: 0,
  signalledAt: at('00'),
  deadlineAt: '2027-01-31T18:30:00+00:00',
  nextAttemptAt: null,
  requestEndedAt: at('01.2'),
  finishedAt: at('01.201'),
};

const ORDER: NonNullable<ShownOrder['order']> = {
  locationId: 'club-1',
  integration: 'standard',
  fulfillment: 'pickup',
  callOutCode: 'K472',
  status: 'cancelled',
  memberState: 'cancelled',
  sequence: 3,
  providerOrderId: '8F2K',
  reason: null,
  reasonCode: 'restaurant_cancelled',
  itemIds: null,
  estimatedReadyAt: null,
  estimatedDeliveryAt: null,
  trackingUrl: null,
  failedByUs: false,
  leftOut: [],
  requestedAt: null,
  createdAt: at('00.1'),
  updatedAt: at('05'),
  endedAt: at('05'),
  erasedAt: '2027-03-03T18:00:05+00:00',
};

/** An order that was tried twice, changed, cancelled by its member and erased: it has every kind of event. */
export function sampleStory(): ShownOrder {
  const webhook = {
    webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33',
    receivedAt: at('04.99'),
    integration: 'standard',
    outcome: 'applied' as const,
    events: 1,
    reason: null,
    cause: null,
    replayOf: null,
    polled: false,
  };
  const cancelled = {
    status: 'cancelled' as const,
    nativeStatus: 'CANCELLED',
    outcome: 'applied' as const,
    conflict: false,
    sequence: 3,
    providerOrderId: '8F2K',
    reason: null,
    reasonCode: null,
    itemIds: null,
    estimatedReadyAt: null,
    estimatedDeliveryAt: null,
    webhookId: webhook.webhookId,
    occurredAt: null,
    recordedAt: at('05'),
  };
  const replay = '019c1f7a-91b3-7d02-a6c4-0f3e5d7b8a21';
  const story: Omit<ShownOrder, 'timeline'> = {
    serviceOrderId: 'order-4711',
    past: false,
    archive: null,
    notified: 'The member was notified that the order was cancelled.',
    memberWatching: false,
    case: null,
    snoozedUntil: null,
    closedAt: null,
    notes: [],
    notices: [
      {
        reason: 'cancel_by_phone',
        via: 'email',
        contact: 'Kitchen',
        createdAt: at('04.8'),
        outcome: 'sent',
        endedAt: at('04.9'),
        problem: null,
        answer: 'cancelled',
        answeredAt: at('04.95'),
      },
    ],
    traceId: '7d02a6c40f3e5d7b8a21019c1f7a91b3',
    placement: structuredClone(PLACEMENT),
    order: structuredClone(ORDER),
    refreshFailure: {
      since: at('04.6'),
      problem: 'the ordering platform answered with an error',
      cause: { code: 'platform_failing' },
      nextAttemptAt: at('09'),
    },
    cancellation: {
      state: 'cancelled',
      requestedBy: 'platform',
      requestedAt: at('03'),
      problem: null,
      cause: null,
      underWay: false,
      nextAttemptAt: null,
      finishedAt: at('05'),
    },
    actions: [
      {
        auditId: '7',
        at: at('01.1'),
        by: { kind: 'person', id: 'https://issuer.example.com 7', name: 'Grace' },
        action: 'retry',
        locationId: 'club-1',
        serviceOrderId: 'order-4711',
        callOutCode: null,
        webhookId: null,
        subject: null,
        before: 'waiting',
        outcome: 'done',
        after: 'waiting',
        endedAt: null,
      },
    ],
    change: null,
    changes: [{ seenAt: at('02'), paths: ['items.0.quantity', 'notes'] }],
    attempts: [
      attempt(1, ['00.12', '00.16'], { outcome: 'TryAgain', httpStatus: 503, error: 'the POS answered 503' }),
      attempt(2, ['01.16', '01.2'], { outcome: 'placed' }),
      attempt(3, ['03.1', '03.15'], { call: 'cancelOrder', outcome: 'requested' }),
    ],
    posIds: [{ locationId: 'club-1', integration: 'standard', providerOrderId: '8F2K', createdAt: at('01.201') }],
    history: [
      cancelled,
      { ...cancelled, outcome: 'duplicate', sequence: null, webhookId: replay, recordedAt: at('09') },
    ],
    webhooks: [
      webhook,
      { ...webhook, webhookId: replay, receivedAt: at('08.99'), outcome: 'duplicate', replayOf: webhook.webhookId },
    ],
    droppedSince: 0,
    live: [
      { sequence: 1, memberState: 'placed', appliedAt: at('00.1'), publishedAt: at('00.112'), attempts: null },
      { sequence: 2, memberState: 'sent', appliedAt: at('01.201'), publishedAt: at('01.22'), attempts: null },
      { sequence: 3, memberState: 'cancelled', appliedAt: at('05'), publishedAt: null, attempts: 0 },
    ],
  };
  return { ...story, timeline: orderTimeline(story) };
}
