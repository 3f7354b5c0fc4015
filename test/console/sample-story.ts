import type { ShownOrder } from '../../console/wire.ts';
import { orderTimeline } from '../../src/core/orders/order-timeline.ts';

/** An order that was tried twice, changed, cancelled by its member, and erased a month later: something of all that can happen. */
export function sampleStory(): ShownOrder {
  const at = (time: string): string => `2027-01-31T18:00:${time}+00:00`;
  const placement: ShownOrder['placement'] = {
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
  const order: ShownOrder['order'] = {
    locationId: 'club-1',
    integration: 'standard',
    fulfillment: 'pickup',
    callOutCode: 'K472',
    status: 'cancelled',
    memberState: 'cancelled',
    sequence: 3,
    providerOrderId: '8F2K',
    reason: null,
    failedByUs: false,
    leftOut: [],
    requestedAt: null,
    createdAt: at('00.1'),
    updatedAt: at('05'),
    endedAt: at('05'),
    erasedAt: '2027-03-03T18:00:05+00:00',
  };
  const webhook = {
    webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33',
    receivedAt: at('04.99'),
    integration: 'standard',
    outcome: 'applied' as const,
    events: 1,
    reason: null,
    cause: null,
    replayOf: null,
    asked: false,
  };
  const cancelled = {
    status: 'cancelled' as const,
    nativeStatus: 'CANCELLED',
    outcome: 'applied' as const,
    conflict: false,
    sequence: 3,
    providerOrderId: '8F2K',
    reason: null,
    webhookId: webhook.webhookId,
    occurredAt: null,
    recordedAt: at('05'),
  };
  const replay = '019c1f7a-91b3-7d02-a6c4-0f3e5d7b8a21';
  const story: Omit<ShownOrder, 'timeline'> = {
    serviceOrderId: 'order-4711',
    told: 'Its member was told that it was cancelled.',
    memberWatching: false,
    traceId: '7d02a6c40f3e5d7b8a21019c1f7a91b3',
    placement,
    order,
    cancellation: {
      state: 'cancelled',
      askedBy: 'platform',
      requestedAt: at('03'),
      problem: null,
      cause: null,
      underWay: false,
      nextAttemptAt: null,
      finishedAt: at('05'),
    },
    changes: [{ seenAt: at('02'), paths: ['items.0.quantity', 'notes'] }],
    attempts: [
      {
        attempt: 1,
        call: 'createOrder',
        outcome: 'TryAgain',
        httpStatus: 503,
        milliseconds: 40,
        error: 'the POS answered 503',
        startedAt: at('00.12'),
        endedAt: at('00.16'),
      },
      {
        attempt: 2,
        call: 'createOrder',
        outcome: 'placed',
        httpStatus: null,
        milliseconds: 43,
        error: null,
        startedAt: at('01.16'),
        endedAt: at('01.2'),
      },
      {
        attempt: 3,
        call: 'cancelOrder',
        outcome: 'requested',
        httpStatus: null,
        milliseconds: 50,
        error: null,
        startedAt: at('03.1'),
        endedAt: at('03.15'),
      },
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
