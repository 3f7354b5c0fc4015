import type { Pool } from 'pg';
import {
  LIFECYCLE,
  RANK_END,
  RANK_FAILED,
  RANK_PLACED,
  RANK_SENT,
  statusAt,
  type Status,
} from '../src/core/domain/lifecycle.ts';
import type { LiveMessage } from '../src/core/domain/live-message.ts';
import type { Message } from '../test/support/queue-messages.ts';
import { checkCancels, type CancelBooks } from './check-cancels.ts';
import type { Phone } from './follow-by-phone.ts';
import type { Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';

export type Books = CancelBooks & {
  /** Webhooks that were answered 200. */
  acknowledged: number;
  /** Those of them that are not stored, and accepted orders that are unknown here. */
  lost: number;
  /** Orders with more than one ticket, or with one although the member was told that it failed. */
  ticketsDoubled: number;
  /** Orders without an end (no ticket, not failed with a reason, not with an operator), or failed for no good reason. */
  ticketsMissing: number;
  /** Webhooks that are stored, or whose event is in the history, more than once. */
  webhooksDoubled: number;
  /** Orders whose status is not the maximum of what was reported and applied. */
  ordersDiverged: number;
  liveMissing: number;
  liveOutOfOrder: number;
  /** Events applied to another location's order. */
  crossLocation: number;
  /** Messages of the topic that a phone was not told, after the first that it was told. */
  phonesMissed: number;
  /** What a phone was told twice, or out of order. */
  phonesTwice: number;
  /** What a phone was told that the topic did not say of its order. */
  phonesForeign: number;
};

/** A broken promise. */
export type Broken = { count: Exclude<keyof Books, 'acknowledged'>; order: string | undefined; why: string };

type OrderRow = {
  id: string;
  locationId: string;
  rank: number;
  sequence: number;
  /** The last message from before it was read: it had failed, and began again. */
  toldUnread: number;
  failedByUs: boolean;
  /** True if somebody told us the POS's id. A lost answer and webhooks without both ids tell nobody. */
  posIdKnown: boolean;
  /** What became of its cancellation; null if nobody asked for one. */
  cancel: string | null;
};
type PlacementRow = { id: string; state: string; flagged: boolean; problem: string | null; cause: string | null };
type EventRow = { id: string; status: Status; outcome: string; sequence: number | null; webhookId: string | null };

/** Compares what the senders saw with Postgres, the kitchens and the topic. */
export async function checkBooks(about: {
  pool: Pool;
  served: Served;
  kitchens: readonly Kitchen[];
  live: readonly Message[];
  /** By order. */
  phones?: ReadonlyMap<string, Phone> | undefined;
}): Promise<{ books: Books; broken: Broken[] }> {
  const { pool, served, kitchens } = about;
  const read = async <Row extends object>(sql: string): Promise<Row[]> => (await pool.query<Row>(sql)).rows;
  const webhooks = await read<{ id: string; locationId: string; outcome: string }>(
    'SELECT id, location_id AS "locationId", outcome FROM webhooks',
  );
  const orders = await read<OrderRow>(
    `SELECT service_order_id AS id, location_id AS "locationId", rank, sequence, failed_by_us AS "failedByUs",
            coalesce((SELECT last_notified_sequence FROM placements p WHERE p.service_order_id = o.service_order_id), 0)
              AS "toldUnread",
            EXISTS (SELECT FROM provider_orders p WHERE p.service_order_id = o.service_order_id) AS "posIdKnown",
            (SELECT state FROM cancellations c WHERE c.service_order_id = o.service_order_id) AS cancel
     FROM orders o`,
  );
  const placements = await read<PlacementRow>(
    `SELECT service_order_id AS id, state, problem, cause ->> 'code' AS cause,
            state = 'in_doubt' AND next_attempt_at = 'infinity' AS flagged
     FROM placements`,
  );
  const events = await read<EventRow>(
    `SELECT service_order_id AS id, status, outcome, sequence, webhook_id AS "webhookId"
     FROM status_events ORDER BY event_id`,
  );

  const broken: Broken[] = [];
  const breaks = (count: Broken['count'], order: string | undefined, why: string): void => {
    broken.push({ count, order, why });
  };
  const orderOf = new Map(orders.map((order) => [order.id, order]));
  const placementOf = new Map(placements.map((placement) => [placement.id, placement]));
  const eventsOf = Map.groupBy(events, (event) => event.id);
  const ticketsOf = Map.groupBy(
    kitchens.flatMap((kitchen) => kitchen.pos.tickets),
    (ticket) => ticket.serviceOrderId,
  );
  const liveOf = Map.groupBy(about.live, (message) => message.orderingKey);
  const acknowledgedOf = Map.groupBy(served.acknowledged, (each) => each.order ?? '');

  const webhookOf = new Map(webhooks.map((webhook) => [webhook.id, webhook]));
  for (const { webhookId, locationId, order } of served.acknowledged) {
    if (webhookOf.get(webhookId)?.locationId !== locationId) {
      breaks('lost', order, `webhook ${webhookId} was answered 200`);
    }
  }
  for (const [id, rows] of Map.groupBy(webhooks, (webhook) => webhook.id)) {
    if (rows.length > 1) breaks('webhooksDoubled', undefined, `webhook ${id} is stored ${rows.length} times`);
  }

  for (const id of served.accepted) {
    const placement = placementOf.get(id);
    if (placement === undefined) breaks('lost', id, 'its signal was accepted');
    else checkTicket(placement, ticketsOf.get(id)?.length ?? 0, orderOf.get(id), breaks);
    if (placement?.state === 'failed' && !orderOf.has(id) && !liveOf.has(id)) {
      breaks('liveMissing', id, 'it failed before it was read, and nobody told the member');
    }
  }

  for (const order of orders) {
    const history = eventsOf.get(order.id) ?? [];
    for (const why of divergence(order, history, acknowledgedOf.get(order.id) ?? [], served.reported.get(order.id))) {
      breaks('ordersDiverged', order.id, why);
    }
    const told = history.filter(({ webhookId }) => webhookId !== null);
    for (const { webhookId, status } of told) {
      const from = webhookOf.get(webhookId ?? '')?.locationId ?? order.locationId;
      if (from !== order.locationId) breaks('crossLocation', order.id, `${status} came from ${from}`);
    }
    for (const [event, times] of Map.groupBy(told, ({ webhookId, status }) => `${status} of ${webhookId}`)) {
      if (times.length > 1) breaks('webhooksDoubled', order.id, `${event} is in its history ${times.length} times`);
    }
    checkLive(order, liveOf.get(order.id) ?? [], history, breaks);
  }
  const lastNotified = (id: string): LiveMessage | undefined =>
    liveOf
      .get(id)
      ?.map(({ data }) => JSON.parse(data.toString()) as LiveMessage)
      .toSorted((a, b) => a.sequence - b.sequence)
      .at(-1);
  await checkCancels({ pool, served, ticketsOf, lastNotified, breaks });
  for (const [id, phone] of about.phones ?? []) checkPhone(id, phone, liveOf.get(id) ?? [], breaks);
  for (const { webhookId, order, foreign, outcome } of served.acknowledged) {
    const became = outcome === 'accepted' ? webhookOf.get(webhookId)?.outcome : outcome;
    if (foreign === true && ['applied', 'duplicate', 'stale'].includes(became ?? '')) {
      breaks('crossLocation', order, `a foreign webhook was answered ${outcome}, and is ${became}`);
    }
  }
  for (const order of served.trespasses) breaks('crossLocation', order, "a token opened another location's door");

  const count = (name: Broken['count']): number => broken.filter((each) => each.count === name).length;
  return {
    broken,
    books: {
      acknowledged: served.acknowledged.length,
      lost: count('lost'),
      ticketsDoubled: count('ticketsDoubled'),
      ticketsMissing: count('ticketsMissing'),
      webhooksDoubled: count('webhooksDoubled'),
      ordersDiverged: count('ordersDiverged'),
      liveMissing: count('liveMissing'),
      liveOutOfOrder: count('liveOutOfOrder'),
      crossLocation: count('crossLocation'),
      phonesMissed: count('phonesMissed'),
      phonesTwice: count('phonesTwice'),
      phonesForeign: count('phonesForeign'),
      cancelsLost: count('cancelsLost'),
      sentAfterCancel: count('sentAfterCancel'),
      cancelsDoubled: count('cancelsDoubled'),
      changesLost: count('changesLost'),
    },
  };
}

type Breaks = (count: Broken['count'], order: string, why: string) => void;

function checkTicket(placement: PlacementRow, tickets: number, order: OrderRow | undefined, breaks: Breaks): void {
  const { id, state, flagged, problem, cause } = placement;
  if (tickets > 1) breaks('ticketsDoubled', id, `there are ${tickets} tickets`);
  if (state === 'failed') {
    if (tickets > 0) breaks('ticketsDoubled', id, 'it failed, and there is a ticket');
    if (problem === null) breaks('ticketsMissing', id, 'it failed without a reason');
    // The platform has every order before its signal, and denies none for so long that it counts as missing.
    if (cause === 'order_missing') breaks('ticketsMissing', id, 'it failed as missing, and the platform has it');
    if (order !== undefined && order.rank < RANK_FAILED) breaks('ticketsMissing', id, 'nobody told the member');
  } else if (state === 'sent') {
    // The restaurant said on the telephone that it is cancelled, and perhaps it never was there.
    if (tickets === 0 && order?.cancel !== 'cancelled') breaks('ticketsMissing', id, 'it counts as sent');
  } else if (!flagged && state !== 'withdrawn') {
    breaks('ticketsMissing', id, `it is still ${state}: ${problem ?? 'no problem known'}`);
  }
}

function divergence(
  { rank, sequence, toldUnread, failedByUs, posIdKnown, cancel }: OrderRow,
  history: readonly EventRow[],
  acknowledged: Served['acknowledged'],
  reported: ReadonlySet<string> | undefined,
): string[] {
  const highest = (statuses: readonly (string | undefined)[]): number =>
    Math.max(RANK_PLACED, ...LIFECYCLE.flatMap((step) => (statuses.includes(step.status ?? '') ? [step.rank] : [])));
  const applied = history.filter((event) => event.outcome === 'applied');
  const why: string[] = [];
  const sinceRead = applied.filter((event) => Number(event.sequence) > toldUnread);
  const maximum = highest(sinceRead.map((event) => event.status));
  if (rank > RANK_SENT ? rank !== maximum : maximum > RANK_SENT) {
    why.push(`it is ${statusAt(rank)}, which is not the maximum of its history`);
  }
  const heard = acknowledged.filter((each) => each.foreign !== true && (posIdKnown || each.byPosIdAlone !== true));
  if (rank < highest(heard.map((each) => each.status))) why.push(`a later status was answered 200`);
  const ours = [...(failedByUs ? ['failed'] : []), ...(cancel === 'cancelled' ? ['cancelled'] : [])];
  if (rank > RANK_SENT && rank > highest([...(reported ?? []), ...ours])) why.push('nobody reported its status');
  const sequences = applied.map((event) => event.sequence ?? 0);
  if (sequences.some((each, nth) => nth > 0 && each <= (sequences[nth - 1] ?? 0)))
    why.push('its history is not rising');
  // That a cancel was requested, or refused, is told beside the same status.
  if (applied.length > 0 && cancel === null && sequences.at(-1) !== sequence)
    why.push('its last sequence is not in its history');
  return why;
}

/** Checks as a reader who drops repeats: first occurrences rise without gaps up to the order's last. */
function checkLive(order: OrderRow, messages: readonly Message[], history: readonly EventRow[], breaks: Breaks): void {
  const seen = new Map<number, LiveMessage>();
  for (const { data, attributes } of messages) {
    const live = JSON.parse(data.toString()) as LiveMessage;
    const known = seen.get(live.sequence);
    if (known !== undefined) continue;
    if (live.sequence !== seen.size + 1) {
      breaks('liveOutOfOrder', order.id, `message ${live.sequence} came after ${seen.size} others`);
    }
    const locationId = live.sequence > order.toldUnread ? order.locationId : undefined;
    if (attributes['sequence'] !== String(live.sequence) || live.locationId !== locationId) {
      breaks('liveOutOfOrder', order.id, `message ${live.sequence} is not labelled as it is`);
    }
    seen.set(live.sequence, live);
  }
  for (let sequence = 1; sequence <= order.sequence; sequence += 1) {
    if (!seen.has(sequence)) breaks('liveMissing', order.id, `message ${sequence} of ${order.sequence} is missing`);
  }
  for (const { outcome, sequence, status } of history) {
    if (outcome !== 'applied' || sequence === null) continue;
    const live = seen.get(sequence);
    if (live !== undefined && live.status !== status) {
      breaks('liveMissing', order.id, `message ${sequence} says ${live.status}, and ${status} was applied`);
    }
  }
}

/** What of a message a phone is told, but for its sequence. */
const SHARED = ['status', 'memberState', 'fulfillment', 'callOutCode', 'reason', 'appliedAt'] as const;
const isOwn = (field: (typeof SHARED)[number]): boolean => field === 'fulfillment' || field === 'callOutCode';

/** Its first snapshot may be of any moment. From then on it is told what the topic is, each message once, until the end. */
function checkPhone(order: string, { told, ended }: Phone, messages: readonly Message[], breaks: Breaks): void {
  const live = new Map<number, LiveMessage>();
  for (const { data } of messages) {
    const message = JSON.parse(data.toString()) as LiveMessage;
    if (!live.has(message.sequence)) live.set(message.sequence, message);
  }
  const [first] = told;
  let last = first?.kind === 'snapshot' ? first.update.sequence - 1 : 0;
  const misses = (below: number): void => {
    const missed = [...live.keys()].filter((sequence) => sequence > last && sequence < below);
    for (const sequence of missed) breaks('phonesMissed', order, `its phone was not told message ${sequence}`);
  };
  for (const { update, kind } of told) {
    const { sequence } = update;
    if (sequence <= last) breaks('phonesTwice', order, `its phone was told ${sequence} after ${last}`);
    misses(sequence);
    last = Math.max(last, sequence);
    // An order that failed unread and began again is placed anew, with the sequence that it had.
    if (kind === 'snapshot' && update.memberState === 'placed') continue;
    const said = live.get(sequence);
    // A message that was published before the order was read lacks the order's own fields. A phone that reads the message
    // later gets them, as the topic has them in a later message.
    const own =
      said?.fulfillment === undefined ? [...live.values()].find((each) => each.fulfillment !== undefined) : said;
    const differs = SHARED.filter(
      (field) => said?.[field] !== update[field] && !(isOwn(field) && own?.[field] === update[field]),
    );
    if (differs.length > 0) breaks('phonesForeign', order, `message ${sequence} has another ${differs.join(', ')}`);
  }
  // After its end an order may be cancelled, or begin again: its phone was told so much, and is put away.
  if (!ended) misses(Infinity);
  else if (!ENDS.has(told.at(-1)?.update.memberState ?? '')) breaks('phonesMissed', order, 'its phone saw no end');
}

const ENDS = new Set<string>(
  LIFECYCLE.filter(({ rank }) => rank >= RANK_END).flatMap((step) => [step.pickup, step.delivery]),
);
