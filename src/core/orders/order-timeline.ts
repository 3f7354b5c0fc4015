import { z } from 'zod';
import { compareInstants, Instant } from '../domain/order.ts';
import { Change, Contents, Ordered } from './read-contents.ts';
import { ShownOrder } from './show-order.ts';

/** Kinds of events of a timeline. Events with the same time are sorted in this order. */
export const HAPPENINGS = [
  'signalled',
  'action',
  'fetched',
  'changed',
  'refresh failed',
  'cancel requested',
  'call began',
  'call ended',
  'webhook',
  'replay',
  'status',
  'notified',
  'published',
  'restaurant notified',
  'restaurant answered',
  'placement finished',
  'cancel finished',
  'ended',
  'erased',
] as const;

const Happening = z.object({ at: Instant, what: z.enum(HAPPENINGS), details: z.record(z.string(), z.unknown()) });
type Happening = z.infer<typeof Happening>;

/** The whole story of an order for operators. */
export const OrderStory = ShownOrder.extend({
  traceId: z.string().meta({ description: 'Id of its OpenTelemetry trace.' }),
  timeline: z.array(Happening).meta({ description: 'All events of the order by time.' }),
  ordered: Ordered.nullable()
    .exactOptional()
    .meta({ description: 'With `ordered=true`: items and prices, without the member; null once erased.' }),
  contents: Contents.nullable()
    .exactOptional()
    .meta({ description: 'With `contents=true`: the order as it was fetched; null once erased.' }),
  changesInFull: z
    .array(Change)
    .exactOptional()
    .meta({ description: 'With `contents=true`: changes by the platform after the POS had the order.' }),
}).meta({ id: 'ShownOrder' });

export function orderTimeline(shown: ShownOrder): Happening[] {
  const { placement, order, cancellation, changes, attempts, history, webhooks, live, actions, notes, notices } = shown;
  const { since, ...failure } = shown.refreshFailure ?? {};
  const happened = (at: string | null | undefined, what: Happening['what'], details: object = {}): Happening[] =>
    at === null || at === undefined ? [] : [{ at, what, details: { ...details } }];
  // The result of a call is stored with a slightly earlier time than the call's end. The timeline moves the end back to
  // the time of the result, and lists it first. If a webhook finished the placement during the call, both times stay.
  const { state, problem, cause, finishedAt } = placement;
  const isByWebhook = history.some((event) => event.webhookId !== null && event.recordedAt === finishedAt);
  const answeredAt = (startedAt: string, endedAt: string | null): string | null =>
    finishedAt === null || endedAt === null || isByWebhook || !isBetween(startedAt, finishedAt, endedAt)
      ? endedAt
      : finishedAt;
  const story = [
    ...happened(placement.signalledAt, 'signalled'),
    ...actions.flatMap(({ at, ...action }) =>
      happened(at, 'action', { ...action, ...textOf({ at, ...action }, notes) }),
    ),
    ...happened(order?.createdAt, 'fetched', {
      locationId: order?.locationId,
      fulfillment: order?.fulfillment,
      leftOut: order?.leftOut,
    }),
    ...changes.flatMap(({ seenAt, paths }) => happened(seenAt, 'changed', { paths })),
    ...happened(since, 'refresh failed', failure),
    ...happened(cancellation?.requestedAt, 'cancel requested', { requestedBy: cancellation?.requestedBy }),
    ...attempts.flatMap(({ startedAt, endedAt, attempt, call, extraMinutes, ...answer }) => [
      ...happened(startedAt, 'call began', { attempt, call, ...(extraMinutes !== null && { extraMinutes }) }),
      ...happened(answeredAt(startedAt, endedAt), 'call ended', { attempt, call, ...answer }),
    ]),
    ...webhooks.flatMap((webhook) => {
      // `receivedAt` is by a process's clock, which may be fast. Show the webhook before its effect.
      const did = history.find((event) => event.webhookId === webhook.webhookId)?.recordedAt ?? webhook.receivedAt;
      const at = Date.parse(did) < Date.parse(webhook.receivedAt) ? did : webhook.receivedAt;
      return happened(at, webhook.replayOf === null ? 'webhook' : 'replay', webhook);
    }),
    ...history.flatMap(({ recordedAt, ...event }) => happened(recordedAt, 'status', event)),
    ...live.flatMap(({ appliedAt, publishedAt, sequence, memberState }) => [
      ...happened(appliedAt, 'notified', { sequence, memberState }),
      ...happened(publishedAt, 'published', { sequence, memberState }),
    ]),
    ...notices.flatMap(({ createdAt, endedAt, answeredAt, answer, ...notice }) => [
      ...(notice.outcome === 'settled' ? [] : happened(endedAt ?? createdAt, 'restaurant notified', notice)),
      ...happened(answeredAt, 'restaurant answered', { ...notice, answer }),
    ]),
    ...happened(finishedAt, 'placement finished', { state, problem, cause }),
    ...happened(cancellation?.finishedAt, 'cancel finished', cancellation ?? {}),
    ...happened(order?.endedAt, 'ended', { memberState: order?.memberState }),
    ...happened(order?.erasedAt, 'erased'),
  ];
  return story.toSorted(
    (a, b) => compareInstants(a.at, b.at) || HAPPENINGS.indexOf(a.what) - HAPPENINGS.indexOf(b.what),
  );
}

/** The text of a note, which the audit does not have: the note was stored while its action ran. */
function textOf({ action, at, endedAt, by }: ShownOrder['actions'][number], notes: ShownOrder['notes']): object {
  if (action !== 'note' && action !== 'close case') return {};
  const note = notes.find((each) => each.by === by.name && isBetween(at, each.at, endedAt ?? each.at));
  return note === undefined ? {} : { text: note.text };
}

function isBetween(from: string, at: string, to: string): boolean {
  return compareInstants(from, at) < 0 && compareInstants(at, to) < 0;
}
