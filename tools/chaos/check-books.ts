import type { Pool } from 'pg';
import {
  LIFECYCLE,
  RANK_END,
  RANK_FAILED,
  RANK_PLACED,
  RANK_SENT,
  statusAt,
  type Status,
} from '../../src/core/domain/lifecycle.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import type { Message } from '../../world/pubsub/queue-messages.ts';
import { CANCELS_BALANCED, checkCancels } from './check-cancels.ts';
import type { Phone } from './follow-by-phone.ts';
import type { Served } from './serve-orders.ts';
import type { Kitchen } from './send-status.ts';

/** How often each promise was broken, where none was. */
export const BALANCED = {
  ...CANCELS_BALANCED,
  /** Acknowledged webhooks that are not stored, and accepted orders that have no placement. */
  lost: 0,
  /** Orders with more than one ticket, or with a ticket although the member was notified that the order failed. */
  ticketsDoubled: 0,
  /** Orders that failed without need, or have no end: no ticket, no failure with a reason, no operator involved. */
  ticketsMissing: 0,
  /** Webhooks that are stored more than once, or whose event is in the history more than once. */
  webhooksDoubled: 0,
  /** Orders whose status is not the maximum of the reported and applied statuses. */
  ordersDiverged: 0,
  liveMissing: 0,
  liveOutOfOrder: 0,
  /** Events applied to another location's order. */
  crossLocation: 0,
  /** Messages of the topic that a phone did not get, although it had got an earlier one. */
  phonesMissed: 0,
  /** Messages that a phone got twice, or out of order. */
  phonesTwice: 0,
  /** Messages of a phone that differ from the topic's message of its order. */
  phonesForeign: 0,
};

export type Books = typeof BALANCED & {
  /** Webhooks that were answered 200. */
  acknowledged: number;
};

/** A broken promise. */
export type Broken = { count: keyof typeof BALANCED; order: string | undefined; why: string };

type OrderRow = {
  id: string;
  locationId: string;
  rank: number;
  sequence: number;
  /** The last sequence before the order was fetched: above 0 if it failed before that, and was then retried. */
  toldUnread: number;
  failedByUs: boolean;
  /** True if the service knows the POS id. It does not if the POS's answer was lost and no webhook named both ids. */
  posIdKnown: boolean;
  /** The state of its cancellation; null if none was requested. */
  cancel: string | null;
  /** True if the platform changed it when it had a ticket. */
  changed: boolean;
};
/** `lost`: what members were told before a restore. `isFromTopic`: a recovery recorded the order from that alone. */
type Known = OrderRow & { isFromTopic: boolean; lost: readonly string[] };
type PlacementRow = { id: string; state: string; flagged: boolean; problem: string | null; cause: string | null };
type EventRow = { id: string; status: Status; outcome: string; sequence: number | null; webhookId: string | null };

/** Compares what the senders observed with Postgres, the kitchens and the topic. */
export async function checkBooks(about: {
  pool: Pool;
  served: Served;
  kitchens: readonly Kitchen[];
  live: readonly Message[];
  /** By order id. */
  phones?: ReadonlyMap<string, Phone> | undefined;
  /** Messages up to this sequence may be missing, because the database was restored. 0 if it was not. */
  floor?: number;
}): Promise<{ books: Books; broken: Broken[] }> {
  const { pool, served, kitchens, floor = 0 } = about;
  const read = async <Row extends object>(sql: string): Promise<Row[]> => (await pool.query<Row>(sql)).rows;
  const webhooks = await read<{ id: string; locationId: string; outcome: string }>(
    'SELECT id, location_id AS "locationId", outcome FROM webhooks',
  );
  const orders = await read<OrderRow>(
    `SELECT service_order_id AS id, location_id AS "locationId", rank, sequence, failed_by_us AS "failedByUs",
            coalesce((SELECT last_notified_sequence FROM placements p WHERE p.service_order_id = o.service_order_id), 0)
              AS "toldUnread",
            EXISTS (SELECT FROM provider_orders p WHERE p.service_order_id = o.service_order_id) AS "posIdKnown",
            (SELECT state FROM cancellations c WHERE c.service_order_id = o.service_order_id) AS cancel,
            EXISTS (SELECT FROM order_changes c WHERE c.service_order_id = o.service_order_id) AS changed
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

  /** Statuses that members were told before the database was lost. */
  const lostOf = (id: string): Status[] =>
    (liveOf.get(id) ?? [])
      .map(({ data }) => JSON.parse(data.toString()) as LiveMessage)
      .flatMap(({ sequence, status }) => (sequence <= floor && status !== null ? [status] : []));
  for (const id of served.accepted) {
    const placement = placementOf.get(id);
    if (placement === undefined) breaks('lost', id, 'its signal was accepted');
    else if (ticketsOf.has(id) || !lostOf(id).some((status) => status === 'cancelled' || status === 'failed')) {
      checkTicket(placement, ticketsOf.get(id)?.length ?? 0, orderOf.get(id), breaks);
    }
    if (placement?.state === 'failed' && !orderOf.has(id) && !liveOf.has(id)) {
      breaks('liveMissing', id, 'it failed before it was fetched, and the member was not notified');
    }
  }

  for (const order of orders) {
    const history = eventsOf.get(order.id) ?? [];
    const isFromTopic = floor > 0 && order.sequence <= floor;
    for (const why of divergence(
      { ...order, isFromTopic, lost: lostOf(order.id) },
      history,
      acknowledgedOf.get(order.id) ?? [],
      served.reported.get(order.id),
    )) {
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
    const about = { ...order, movedFrom: served.moved.get(order.id), floor };
    checkLive(about, liveOf.get(order.id) ?? [], history, breaks);
  }
  const lastNotified = (id: string): LiveMessage | undefined =>
    liveOf
      .get(id)
      ?.map(({ data }) => JSON.parse(data.toString()) as LiveMessage)
      .toSorted((a, b) => a.sequence - b.sequence)
      .at(-1);
  await checkCancels({ pool, served, ticketsOf, lastNotified, isRestored: floor > 0, breaks });
  for (const [id, phone] of about.phones ?? []) checkPhone(id, { ...phone, floor }, liveOf.get(id) ?? [], breaks);
  for (const { webhookId, order, foreign, outcome } of served.acknowledged) {
    const became = outcome === 'accepted' ? webhookOf.get(webhookId)?.outcome : outcome;
    if (foreign === true && ['applied', 'duplicate', 'stale'].includes(became ?? '')) {
      breaks('crossLocation', order, `a foreign webhook was answered ${outcome}, and is ${became}`);
    }
  }
  for (const order of served.trespasses) breaks('crossLocation', order, 'a token was valid at another location');

  const books = { acknowledged: served.acknowledged.length, ...BALANCED };
  for (const { count } of broken) books[count] += 1;
  return { broken, books };
}

type Breaks = (count: Broken['count'], order: string, why: string) => void;

function checkTicket(placement: PlacementRow, tickets: number, order: OrderRow | undefined, breaks: Breaks): void {
  const { id, state, flagged, problem, cause } = placement;
  if (tickets > 1) breaks('ticketsDoubled', id, `there are ${tickets} tickets`);
  if (state === 'failed') {
    if (tickets > 0) breaks('ticketsDoubled', id, 'it failed, and there is a ticket');
    if (problem === null) breaks('ticketsMissing', id, 'it failed without a reason');
    // The platform has every order before its signal. It never answers "no such order" for so long that the order fails.
    if (cause === 'order_missing') breaks('ticketsMissing', id, 'it failed as missing, but the platform has it');
    if (order !== undefined && order.rank < RANK_FAILED) breaks('ticketsMissing', id, 'the member was not notified');
  } else if (state === 'sent') {
    // An order without a ticket may also be cancelled: a restaurant that never had it may say so by phone.
    if (tickets === 0 && order?.cancel !== 'cancelled') breaks('ticketsMissing', id, 'it is sent without a ticket');
  } else if (!flagged && state !== 'withdrawn') {
    breaks('ticketsMissing', id, `it is still ${state}: ${problem ?? 'no problem known'}`);
  }
}

function divergence(
  { rank, sequence, toldUnread, failedByUs, posIdKnown, cancel, changed, isFromTopic, lost }: Known,
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
  // The history of an order that a recovery recorded from the topic is lost.
  if (!isFromTopic && (rank > RANK_SENT ? rank !== maximum : maximum > RANK_SENT)) {
    why.push(`its status ${statusAt(rank)} is not the maximum of its history`);
  }
  const heard = acknowledged.filter((each) => each.foreign !== true && (posIdKnown || each.byPosIdAlone !== true));
  if (rank < highest(heard.map((each) => each.status))) why.push(`a later status was answered 200`);
  const ours = [...lost, ...(failedByUs ? ['failed'] : []), ...(cancel === 'cancelled' ? ['cancelled'] : [])];
  if (rank > RANK_SENT && rank > highest([...(reported ?? []), ...ours])) why.push('nobody reported its status');
  const sequences = applied.map((event) => event.sequence ?? 0);
  if (sequences.some((each, nth) => nth > 0 && each <= (sequences[nth - 1] ?? 0)))
    why.push('the sequences of its history do not rise');
  // The message that the order was placed or changed, or that a cancel was requested or refused, has a sequence but no event.
  if (sinceRead.length > 0 && cancel === null && !changed && sequences.at(-1) !== sequence)
    why.push('its last sequence is not in its history');
  return why;
}

/** Checks messages as a reader who drops repeats. Sequences must rise without gaps, up to the last of the order. */
function checkLive(
  order: OrderRow & { movedFrom: string | undefined; floor: number },
  messages: readonly Message[],
  history: readonly EventRow[],
  breaks: Breaks,
): void {
  const seen = new Map<number, LiveMessage>();
  const { floor } = order;
  let last = 0;
  for (const { data, attributes } of messages) {
    const live = JSON.parse(data.toString()) as LiveMessage;
    const known = seen.get(live.sequence);
    if (known !== undefined) continue;
    // It was under way when its database was lost. Readers drop it.
    if (live.sequence <= floor && last > floor) continue;
    const goesOn = floor > 0 && (seen.has(live.sequence - 1) || live.sequence === floor + 1);
    if (live.sequence !== seen.size + 1 && !goesOn) {
      breaks('liveOutOfOrder', order.id, `message ${live.sequence} came after ${seen.size} others`);
    }
    last = live.sequence;
    const { locationId, movedFrom, toldUnread } = order;
    const read = [locationId, movedFrom ?? locationId];
    const isLost = live.sequence <= floor;
    const places: unknown[] = isLost ? [...read, undefined] : live.sequence > toldUnread ? read : [undefined];
    if (attributes['sequence'] !== String(live.sequence) || !places.includes(live.locationId)) {
      breaks('liveOutOfOrder', order.id, `message ${live.sequence} has wrong attributes or location`);
    }
    seen.set(live.sequence, live);
  }
  for (let sequence = floor + 1; sequence <= order.sequence; sequence += 1) {
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

/** The fields of a message that a phone gets, without the sequence. */
const SHARED = ['status', 'memberState', 'fulfillment', 'callOutCode', 'reason', 'appliedAt'] as const;
const isOwn = (field: (typeof SHARED)[number]): boolean => field === 'fulfillment' || field === 'callOutCode';

/** The first snapshot may be of any moment. After it, a phone must get each message of the topic once, until the end. */
function checkPhone(
  order: string,
  { told, ended, floor }: Phone & { floor: number },
  messages: readonly Message[],
  breaks: Breaks,
): void {
  const live = new Map<number, LiveMessage>();
  for (const { data } of messages) {
    const message = JSON.parse(data.toString()) as LiveMessage;
    if (!live.has(message.sequence)) live.set(message.sequence, message);
  }
  const [first] = told;
  let last = first?.kind === 'snapshot' ? first.update.sequence - 1 : 0;
  const misses = (below: number): void => {
    const missed = [...live.keys()].filter((sequence) => sequence > Math.max(last, floor) && sequence < below);
    for (const sequence of missed) breaks('phonesMissed', order, `its phone did not get message ${sequence}`);
  };
  for (const { update, kind } of told) {
    const { sequence } = update;
    // A database that was restored may be behind what a phone knows.
    const isBehind = kind === 'snapshot' && sequence <= floor;
    if (sequence <= last && !isBehind) breaks('phonesTwice', order, `its phone got message ${sequence} after ${last}`);
    misses(sequence);
    last = isBehind ? sequence : Math.max(last, sequence);
    // If an order fails before it is fetched, a retry makes it `placed` again, with the same sequence as before.
    if (kind === 'snapshot' && update.memberState === 'placed') continue;
    const said = live.get(sequence);
    // The message was lost before it was published, or the history that a snapshot is made of is lost.
    if (isBehind || (said === undefined && sequence <= floor)) continue;
    // A message that was published before the order was read lacks the order's own fields. A phone that reads the message
    // later gets them, as the topic has them in a later message.
    const own =
      said?.fulfillment === undefined ? [...live.values()].find((each) => each.fulfillment !== undefined) : said;
    const differs = SHARED.filter(
      (field) => said?.[field] !== update[field] && !(isOwn(field) && own?.[field] === update[field]),
    );
    const values = differs.map(
      (field) => `${field} ${JSON.stringify(update[field])}, not ${JSON.stringify(said?.[field])}`,
    );
    if (differs.length > 0)
      breaks('phonesForeign', order, `its phone has in ${kind} ${sequence}: ${values.join('; ')}`);
  }
  // After its end, an order may still be cancelled or retried. The phone stopped at the end and need not get that.
  if (!ended) misses(Infinity);
  else if (!ENDS.has(told.at(-1)?.update.memberState ?? '')) breaks('phonesMissed', order, 'its phone saw no end');
}

const ENDS = new Set<string>(
  LIFECYCLE.filter(({ rank }) => rank >= RANK_END).flatMap((step) => [step.pickup, step.delivery]),
);
