import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkBooks, type Books } from '../../../tools/chaos/check-books.ts';
import { CHANGED } from '../../../tools/chaos/serve-orders.ts';
import type { Phone } from '../../../tools/chaos/follow-by-phone.ts';
import type { Served } from '../../../tools/chaos/serve-orders.ts';
import type { Kitchen } from '../../../tools/chaos/send-status.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import type { Message } from '../../../world/pubsub/queue-messages.ts';
import type { Ticket } from '../../../world/pos/start-pos.ts';

let pool: pg.Pool;

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase(), max: 2 });
  await ensureWebhookPartitions(pool);
});
afterAll(() => pool.end());

type World = {
  order: string;
  webhookId: string;
  served: Served;
  tickets: Pick<Ticket, 'serviceOrderId' | 'order' | 'cancelled'>[];
  live: Message[];
  phone: Phone;
};

/** One order of club-1 that was placed, sent and received, with everything as it should be. */
async function allWell(): Promise<World> {
  const order = `order-${randomUUID()}`;
  const webhookId = randomUUID();
  await pool.query(
    'TRUNCATE orders, placements, placement_attempts, status_events, webhooks, cancellations, order_changes',
  );
  await pool.query(
    `WITH p AS (INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
                VALUES ($1, 'club-1', 'sent', now(), now())),
          d AS (INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
                VALUES (now()::date, 'club-1', $2, 'standard', now(), '{}', '', 1, 'applied')),
          e AS (INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence)
                VALUES ($1, $2, 'received', 'RECEIVED', 'applied', 3))
     INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence)
     VALUES ($1, 'K472', 'club-1', 'pickup', 20, 3)`,
    [order, webhookId],
  );
  return {
    order,
    webhookId,
    served: {
      accepted: new Set([order]),
      acknowledged: [{ webhookId, outcome: 'applied', locationId: 'club-1', order, status: 'received' }],
      answers: [],
      reported: new Map([[order, new Set(['received'])]]),
      cancelled: new Set(),
      changed: new Set(),
      moved: new Map(),
      cancels: new Map(),
      trespasses: [],
    },
    tickets: [{ serviceOrderId: order, order: { serviceOrderId: order } }],
    live: [1, 2, 3].map((sequence) => message(order, sequence, sequence === 3 ? 'received' : null)),
    phone: { told: [told(2, null, 'snapshot'), told(3, 'received')], ended: false },
  };
}

const told = (sequence: number, status: 'received' | null, kind: 'snapshot' | 'message' = 'message') => ({
  kind,
  update: { sequence, status, memberState: memberStateOf(status) },
});
const memberStateOf = (status: string | null): 'sent' | 'confirmed' => (status === null ? 'sent' : 'confirmed');

function message(
  order: string,
  sequence: number,
  status: string | null,
  locationId: string | null = 'club-1',
): Message {
  const where = locationId === null ? {} : { locationId };
  const data = Buffer.from(
    JSON.stringify({ serviceOrderId: order, ...where, sequence, status, memberState: memberStateOf(status) }),
  );
  return {
    messageId: randomUUID(),
    publishTime: new Date(),
    data,
    attributes: { sequence: String(sequence) },
    orderingKey: order,
  };
}

async function counts({ served, tickets, live, order, phone }: World): Promise<Record<string, number>> {
  const kitchens = [{ pos: { tickets } }] as unknown as Kitchen[];
  const { books } = await checkBooks({ pool, served, kitchens, live, phones: new Map([[order, phone]]) });
  return Object.fromEntries(Object.entries(books).filter(([name, count]) => name !== 'acknowledged' && count > 0));
}

it('a correct order breaks no promise', async () => {
  expect(await counts(await allWell())).toEqual({});
});

const sql = (text: string) => (): Promise<unknown> => pool.query(text);
const cancelIs = (state: string): Promise<unknown> =>
  pool.query(
    `INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at, state)
     SELECT service_order_id, location_id, 'platform', now(), $1 FROM orders`,
    [state],
  );
const tell = ({ live }: World, cancellation: string): void => {
  const last = live.at(-1);
  if (last === undefined) return;
  last.data = Buffer.from(JSON.stringify({ ...(JSON.parse(last.data.toString()) as object), cancellation }));
};

const breakages: [string, Partial<Books>, (world: World) => unknown][] = [
  ['a webhook answered 200 is not among the webhooks', { lost: 1 }, sql('DELETE FROM webhooks')],
  [
    'a webhook answered 200 is kept as another location’s',
    { lost: 1, crossLocation: 1 },
    sql(`UPDATE webhooks SET location_id = 'club-2'`),
  ],
  ['nobody has recorded an accepted signal', { lost: 1 }, sql('DELETE FROM placements')],
  [
    'a webhook that was accepted is not among the webhooks',
    { lost: 1 },
    ({ served }) => {
      served.acknowledged.push({ webhookId: randomUUID(), outcome: 'accepted', locationId: 'club-1' });
    },
  ],
  [
    'a webhook is stored twice, of two days',
    { webhooksDoubled: 1 },
    sql(
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
       SELECT day + 1, location_id, id, integration, received_at, headers, body, events, outcome FROM webhooks`,
    ),
  ],
  [
    'a webhook’s event is in the history twice',
    { webhooksDoubled: 1 },
    sql(
      `INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome)
       SELECT service_order_id, webhook_id, status, native_status, 'duplicate' FROM status_events`,
    ),
  ],
  ['there are two tickets', { ticketsDoubled: 1 }, ({ tickets }) => tickets.push(...tickets)],
  ['there is no ticket', { ticketsMissing: 1 }, ({ tickets }) => tickets.pop()],
  [
    'a placement failed although there is a ticket, without a reason or a message to the member',
    { ticketsDoubled: 1, ticketsMissing: 2 },
    sql(`UPDATE placements SET state = 'failed'`),
  ],
  [
    'a placement failed before its order was read, without a message to the member',
    { liveMissing: 1 },
    async ({ live, tickets, phone }) => {
      await pool.query(`UPDATE placements SET state = 'failed', problem = 'no such order'`);
      await pool.query('TRUNCATE orders');
      tickets.pop();
      live.splice(0);
      phone.told.splice(0);
    },
  ],
  [
    'a placement is still open',
    { ticketsMissing: 1 },
    sql(`UPDATE placements SET state = 'waiting', finished_at = NULL`),
  ],
  [
    'a placement is in doubt, and no operator is called',
    { ticketsMissing: 1 },
    sql(`UPDATE placements SET state = 'in_doubt', finished_at = NULL`),
  ],
  ['the status is above its history', { ordersDiverged: 2 }, sql('UPDATE orders SET rank = 40')],
  [
    'the status is below its history, and below what was answered',
    { ordersDiverged: 2 },
    sql('UPDATE orders SET rank = 10'),
  ],
  [
    'the sequence is not that of the history',
    { ordersDiverged: 1, liveMissing: 1 },
    sql('UPDATE orders SET sequence = 4'),
  ],
  [
    'a status that was answered 200 later is missing',
    { ordersDiverged: 1 },
    ({ served, webhookId, order }) =>
      served.acknowledged.push({ webhookId, outcome: 'parked', locationId: 'club-1', order, status: 'ready' }),
  ],
  [
    'a live message is missing at the end, and a phone got it',
    { liveMissing: 1, phonesForeign: 1 },
    ({ live }) => live.pop(),
  ],
  [
    'a live message is missing before another',
    { liveMissing: 1, liveOutOfOrder: 1, phonesForeign: 1 },
    ({ live }) => live.splice(1, 1),
  ],
  ['live messages came out of order', { liveOutOfOrder: 2 }, ({ live }) => live.splice(0, 3, ...live.toReversed())],
  [
    'a live message has another text, and not the one that a phone got',
    { liveMissing: 1, phonesForeign: 1 },
    ({ live, order }) => live.splice(2, 1, message(order, 3, 'ready')),
  ],
  ['a phone got nothing', { phonesMissed: 3 }, ({ phone }) => phone.told.splice(0)],
  ['a phone did not get the last message', { phonesMissed: 1 }, ({ phone }) => phone.told.pop()],
  [
    'a phone did not get a message after its first snapshot',
    { phonesMissed: 1 },
    ({ phone }) => phone.told.splice(0, 1, told(1, null, 'snapshot')),
  ],
  [
    'a phone got a later snapshot instead of a message',
    { phonesMissed: 1 },
    ({ phone }) => phone.told.splice(0, 2, told(1, null, 'snapshot'), told(3, 'received', 'snapshot')),
  ],
  ['a phone got a message twice', { phonesTwice: 1 }, ({ phone }) => phone.told.push(told(3, 'received'))],
  [
    'a phone got an earlier message later',
    { phonesTwice: 1, phonesMissed: 1 },
    ({ phone }) => phone.told.splice(0, 2, told(1, null, 'snapshot'), told(3, 'received'), told(2, null)),
  ],
  [
    'a phone got a message that the topic does not have',
    { phonesForeign: 1 },
    ({ phone }) => Object.assign(phone.told[1]?.update ?? {}, { callOutCode: 'B131' }),
  ],
  ['a phone got the end of an order that continues', { phonesMissed: 1 }, ({ phone }) => (phone.ended = true)],
  [
    'another location’s webhook was applied, by its own answer',
    { crossLocation: 1 },
    ({ served }) => Object.assign(served.acknowledged[0] ?? {}, { foreign: true }),
  ],
  [
    'another location’s webhook was accepted, and applied later',
    { crossLocation: 1 },
    ({ served }) => Object.assign(served.acknowledged[0] ?? {}, { foreign: true, outcome: 'accepted' }),
  ],
  ['a cancel was never recorded', { cancelsLost: 1 }, ({ served, order }) => served.cancelled.add(order)],
  ['a cancel is still under way', { cancelsLost: 1 }, () => cancelIs('asked')],
  ['a cancelled order continues, and is cooked', { cancelsLost: 2 }, () => cancelIs('cancelled')],
  [
    'a withdrawn order is cooked, and nobody asked to cancel it',
    { ticketsDoubled: 1, cancelsLost: 1 },
    sql(`UPDATE placements SET state = 'withdrawn'`),
  ],
  [
    'the POS has cancelled an order that it refused to cancel',
    { cancelsLost: 1 },
    async (world) => {
      for (const ticket of world.tickets) ticket.cancelled = {};
      tell(world, 'refused');
      await cancelIs('refused');
    },
  ],
  ['a refusal of a cancel was not published', { liveMissing: 1 }, () => cancelIs('refused')],
  ['a cancel was published that nobody requested', { liveMissing: 1 }, (world) => tell(world, 'requested')],
  [
    'a ticket was requested after the cancel',
    { sentAfterCancel: 1 },
    async (world) => {
      tell(world, 'refused');
      await cancelIs('refused');
      await pool.query(
        `INSERT INTO placement_attempts (service_order_id, attempt, call) VALUES ($1, 1, 'createOrder')`,
        [world.order],
      );
    },
  ],
  [
    'a POS that does not recognise a repeated cancel was asked twice',
    { cancelsDoubled: 1 },
    ({ served, order }) => served.cancels.set(order, 2),
  ],
  [
    'a change is not on the ticket, and no operator knows',
    { changesLost: 1 },
    ({ served, order }) => served.changed.add(order),
  ],
  ['a token opened another location', { crossLocation: 1 }, ({ served, order }) => served.trespasses.push(order)],
];

it.each(breakages)('if %s, the check counts %j', async (_, expected, damage) => {
  const world = await allWell();
  await damage(world);
  expect(await counts(world)).toEqual(expected);
});

it('the messages of an order that failed before it was fetched have a location only after a restart', async () => {
  const world = await allWell();
  await pool.query('UPDATE placements SET last_notified_sequence = 1');
  await pool.query(
    `INSERT INTO status_events (service_order_id, event_id, status, native_status, outcome, sequence)
     OVERRIDING SYSTEM VALUE VALUES ($1, 0, 'failed', 'not placed', 'applied', 1)`,
    [world.order],
  );
  world.live.splice(0, 1, message(world.order, 1, 'failed', null));
  expect(await counts(world)).toEqual({});
  world.live.splice(0, 2, message(world.order, 1, 'failed'), message(world.order, 2, null, null));
  expect(await counts(world)).toEqual({ liveOutOfOrder: 2 });
});

it('an order that was fetched after its failure needs no event since then', async () => {
  const world = await allWell();
  await pool.query(`UPDATE placements SET last_notified_sequence = 2; UPDATE orders SET rank = 10;
                    UPDATE status_events SET status = 'failed', sequence = 2`);
  world.served.acknowledged.pop();
  world.live = [null, 'failed', null].map((is, nth) => message(world.order, nth + 1, is, nth < 2 ? null : 'club-1'));
  world.phone.told = [told(3, null, 'snapshot')];
  expect(await counts(world)).toEqual({});
});

it('a message from before the member moved an order has the location of that time', async () => {
  const world = await allWell();
  world.live.splice(0, 1, message(world.order, 1, null, 'club-0'));
  world.served.moved.set(world.order, 'club-0');
  expect(await counts(world)).toEqual({});
});

it.each([
  ['its own', 'A7', {}],
  ['that of another order', 'B131', { phonesForeign: 1 }],
])('a message from before the order was fetched is later shown with a call-out code: %s', async (_, code, expected) => {
  const world = await allWell();
  const { live, phone } = world;
  for (const { attributes, data } of live.slice(1)) {
    const whole = { ...(JSON.parse(data.toString()) as object), fulfillment: 'pickup', callOutCode: 'A7' };
    Object.assign(live[Number(attributes['sequence']) - 1] ?? {}, { data: Buffer.from(JSON.stringify(whole)) });
  }
  const own = { fulfillment: 'pickup', callOutCode: 'A7' };
  phone.told = [told(1, null), told(2, null), told(3, 'received')].map(({ kind, update }) => ({
    kind,
    update: { ...update, ...own, ...(update.sequence === 1 && { callOutCode: code }) },
  })) as never;
  expect(await counts(world)).toEqual(expected);
});

it.each(['is on the ticket', 'is known to an operator'])('a change that %s is not lost', async (how) => {
  const world = await allWell();
  world.served.changed.add(world.order);
  if (how === 'is on the ticket') for (const { order } of world.tickets) order.notes = `no onions${CHANGED}`;
  else await pool.query(`INSERT INTO order_changes (service_order_id, changes) VALUES ($1, '[{}]')`, [world.order]);
  expect(await counts(world)).toEqual({});
});

it.each([
  ['as it is stored', 'applied', {}],
  ['as it was before', 'not_applied', { liveMissing: 1 }],
  ['not at all, by a process of the previous version', undefined, {}],
])('the last message says what became of a change %s', async (_, change, expected) => {
  const world = await allWell();
  const last = world.live.at(-1);
  const data = { ...(JSON.parse(last?.data.toString() ?? '') as object), change };
  Object.assign(last ?? {}, { data: Buffer.from(JSON.stringify(data)) });
  await pool.query(`UPDATE orders SET change = 'applied'`);
  expect(await counts(world)).toEqual(expected);
});

it('a cancellation that its POS confirmed breaks no promise, even if it was sent twice', async () => {
  const world = await allWell();
  const { order, served, live, tickets, phone } = world;
  served.cancelled.add(order);
  served.cancels.set(order, 2);
  for (const ticket of tickets) ticket.cancelled = {};
  await cancelIs('cancelled');
  await pool.query(`UPDATE orders SET rank = 80, sequence = 4, integration = 'standard'`);
  await pool.query(
    `INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence)
     VALUES ($1, 'cancelled', 'answer to the cancel', 'applied', 4)`,
    [order],
  );
  live.push(message(order, 4, 'cancelled'));
  phone.told.push({ kind: 'message', update: { sequence: 4, status: 'cancelled', memberState: 'confirmed' } as never });
  expect(await counts(world)).toEqual({});
});

it('a live message that is repeated later breaks no promise', async () => {
  const world = await allWell();
  world.live.push(message(world.order, 2, null), message(world.order, 1, null));
  expect(await counts(world)).toEqual({});
});

it('an event with an unknown POS id breaks no promise', async () => {
  const world = await allWell();
  const { served, webhookId, order } = world;
  const event = { webhookId, outcome: 'parked', locationId: 'club-1', order, status: 'ready', byPosIdAlone: true };
  served.acknowledged.push(event);
  expect(await counts(world)).toEqual({});
  await pool.query(
    `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
     VALUES ('club-1', 'standard', 'pos-1', $1)`,
    [order],
  );
  expect(await counts(world)).toEqual({ ordersDiverged: 1 });
});
