import type { ShownOrder } from './show-order.ts';

/** One thing that happened to an order; `at` is RFC 3339. */
export type Happening = { at: string; what: (typeof HAPPENINGS)[number]; details: Record<string, unknown> };

/** In the order in which they follow from each other, for those that happened in the same moment. */
export const HAPPENINGS = [
  'signalled',
  'fetched',
  'call began',
  'call ended',
  'webhook',
  'replay',
  'status',
  'told',
  'published',
  'placement finished',
  'ended',
  'erased',
] as const;

/** An order's whole story in one line of time: what a console draws. */
export function orderTimeline({ placement, order, attempts, history, deliveries, live }: ShownOrder): Happening[] {
  const happened = (at: string | null | undefined, what: Happening['what'], details: object = {}): Happening[] =>
    at === null || at === undefined ? [] : [{ at, what, details: { ...details } }];
  const story = [
    ...happened(placement.signalledAt, 'signalled'),
    ...happened(order?.createdAt, 'fetched', { locationId: order?.locationId, fulfillment: order?.fulfillment }),
    ...attempts.flatMap(({ startedAt, endedAt, attempt, call, ...answer }) => [
      ...happened(startedAt, 'call began', { attempt, call }),
      ...happened(endedAt, 'call ended', { attempt, call, ...answer }),
    ]),
    ...deliveries.flatMap((delivery) => {
      // It is received by the clock of a process, and never after what it did.
      const did = history.find((event) => event.deliveryId === delivery.deliveryId)?.recordedAt ?? delivery.receivedAt;
      const at = Date.parse(did) < Date.parse(delivery.receivedAt) ? did : delivery.receivedAt;
      return happened(at, delivery.replayOf === null ? 'webhook' : 'replay', delivery);
    }),
    ...history.flatMap(({ recordedAt, ...event }) => happened(recordedAt, 'status', event)),
    ...live.flatMap(({ appliedAt, publishedAt, sequence, memberState }) => [
      ...happened(appliedAt, 'told', { sequence, memberState }),
      ...happened(publishedAt, 'published', { sequence, memberState }),
    ]),
    ...happened(placement.finishedAt, 'placement finished', { state: placement.state, problem: placement.problem }),
    ...happened(order?.endedAt, 'ended', { memberState: order?.memberState }),
    ...happened(order?.erasedAt, 'erased'),
  ];
  return story.toSorted(
    (a, b) =>
      Date.parse(a.at) - Date.parse(b.at) ||
      // Within a millisecond, by the rest of their digits.
      (a.at < b.at ? -1 : a.at > b.at ? 1 : HAPPENINGS.indexOf(a.what) - HAPPENINGS.indexOf(b.what)),
  );
}
