import { beginCancellation, refuseCancellation } from '../../../src/core/cancellations/begin-cancellation.ts';
import { inTransaction, withClient } from '../../../src/core/postgres/transactions.ts';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GiveUp } from '../../../src/core/domain/errors.ts';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import { toMemberSnapshot } from '../../../src/core/domain/member-message.ts';
import type { OrderRef, StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { readLive } from '../../../src/core/live/read-live.ts';
import { issueToken } from '../../../src/core/locations/webhook-tokens.ts';
import { listOrders } from '../../../src/core/orders/list-orders.ts';
import { readBoard } from '../../../src/core/orders/read-board.ts';
import { showOrder, type ShownOrder } from '../../../src/core/orders/show-order.ts';
import { storeOrderRef } from '../../../src/core/transitions/placement-outcomes.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { redriveParked } from '../../../src/core/statuses/redrive-parked.ts';
import { notifyEstimates } from '../../../src/core/statuses/notify-estimates.ts';
import { AHEAD, prepareClock } from '../../../world/processes/move-clock.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { post, startSystem, type System } from '../../../world/system/start-system.ts';
import { untilLocked } from '../../support/until-locked.ts';

const MINUTE = 60;
const LINK = 'https://courier.example/track/1';
const OPERATOR_TOKEN = 'qSVyRYlhUsFDNZGASocOV27ONR8eazA5fmcjEoYQWmY';

/** What the till answers to an order in addition to its own id, or how it refuses the order, by our id. */
const answers = new Map<string, Partial<OrderRef> | GiveUp>();
/** A till that takes any other order, and sends what it is told to as its webhooks. */
const till: Provider = {
  integration: 'till',
  settings: z.object({}),
  deduplicates: true,
  async createOrder({ serviceOrderId }) {
    const said = answers.get(serviceOrderId);
    if (said instanceof GiveUp) throw said;
    return { providerOrderId: `pos-${serviceOrderId}`, ...said };
  },
  translateWebhook: ({ body }) => (JSON.parse(body.toString()) as { says: StatusEvent[] }).says,
};

let system: System;
let url: string;
beforeAll(async () => {
  system = await startSystem({
    stepped: 'all',
    providers: [till],
    prepare: prepareClock,
    env: { PUSH_AUTH: 'off', OPERATOR_TOKEN },
  });
  await system.addLocation('till-1', {}, 'till');
  const { token } = await issueToken(system.pool, { locationId: 'till-1' });
  url = `${system.urls[0]}/webhook/till/till-1?token=${token}`;
});
afterAll(() => system?.stop());

/** A time of the POS, by the minute. */
const at = (minute: number): string => new Date(Date.UTC(2027, 0, 31, 18, minute)).toISOString();
/** One that is over. */
const before = (minute: number): string => new Date(Date.UTC(2026, 0, 31, 18, minute)).toISOString();
const toInstant = (time: string): string => time.replace('.000Z', '+00:00');
const says = async (...events: readonly Partial<StatusEvent>[]): Promise<unknown> => {
  const answer = await post(url, { says: events.map((event) => ({ nativeStatus: 'SAYS SO', ...event })) });
  expect(answer.status).toBe(200);
  return answer.body['outcome'];
};
/** An order that its POS was asked to take, and has not answered. */
const asked = async (): Promise<string> => {
  const id = randomUUID();
  await system.query(
    `WITH p AS (INSERT INTO placements (service_order_id, location_id, deadline_at, requested_at, next_attempt_at)
                VALUES ($1, 'till-1', clock.now() + interval '1 h', clock.now(), 'infinity'))
     INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, sequence)
     VALUES ($1, 'K472', 'till-1', 'till', 'pickup', 1)`,
    [id],
  );
  return id;
};
/** What follows the POS's answer to an order. */
const answer = async (id: string): Promise<void> => {
  const { awaited } = await storeOrderRef(system.pool, id, 'till', { providerOrderId: `pos-${id}` });
  for (const posId of awaited) await redriveParked(system.pool, posId);
};
/** An order that its POS has taken: `sent` is its message 2. */
const sent = async (): Promise<string> => {
  const id = await asked();
  await answer(id);
  return id;
};
/** An order that is placed as any other. */
const place = async (serviceOrderId: string): Promise<void> => {
  await system.placeOrder({ serviceOrderId, locationId: 'till-1' });
  await system.finish('placements');
};
/** Publishes all that is due. @returns the order's messages */
const publish = async (serviceOrderId: string): Promise<LiveMessage[]> => {
  await system.round('notification of estimates');
  await system.finish('relay');
  return system.live(serviceOrderId);
};
const told = async (serviceOrderId: string, isMeant: (message: LiveMessage) => boolean): Promise<LiveMessage> => {
  const message = (await publish(serviceOrderId)).find(isMeant);
  if (message === undefined) throw new Error('there is no such message');
  return message;
};
const shown = async (serviceOrderId: string): Promise<ShownOrder> => {
  const story = await showOrder(system.pool, serviceOrderId);
  if (story === undefined) throw new Error('there is no such order');
  return story;
};
const snapshot = async (serviceOrderId: string): Promise<object> =>
  toMemberSnapshot((await readLive(system.pool, new Map([[serviceOrderId, undefined]]))).get(serviceOrderId)?.state);
const pass = (seconds: number): Promise<unknown> => system.query(AHEAD, [seconds]);
/** Publishes all that is due. @returns what was told: the sequence, the state and the times */
const quiet = async (serviceOrderId: string): Promise<unknown[]> =>
  (await publish(serviceOrderId)).map((message) => {
    return [message.sequence, message.memberState, message.estimatedReadyAt, message.estimatedDeliveryAt];
  });

describe('an estimate', () => {
  it('is published with `sent` if it is in the answer to the order, or in its own message if a webhook came first', async () => {
    const id = randomUUID();
    answers.set(id, { estimatedReadyAt: at(30), occurredAt: at(1) });
    await place(id);
    const message = await told(id, ({ memberState }) => memberState === 'sent');
    expect(message.estimatedReadyAt).toBe(toInstant(at(30)));

    const later = await sent();
    await says({ status: 'in_progress', serviceOrderId: later });
    const answered = { providerOrderId: `pos-${later}`, occurredAt: at(2) };
    await storeOrderRef(system.pool, later, 'till', { ...answered, estimatedReadyAt: at(40) });
    expect((await told(later, ({ sequence }) => sequence === 4)).estimatedReadyAt).toBe(toInstant(at(40)));
    // A look for it, with an older word.
    await storeOrderRef(system.pool, later, 'till', { ...answered, estimatedReadyAt: at(20), occurredAt: at(1) });
    expect(await snapshot(later)).toMatchObject({ estimatedReadyAt: toInstant(at(40)) });
  });

  it('is published with the old status if it comes without a new status, and does not move the order', async () => {
    const id = await sent();
    await publish(id);
    expect(await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(30) })).toBe('applied');
    await told(id, ({ sequence }) => sequence === 3);
    const before = await system.order(id);
    expect(await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(40) })).toBe('duplicate');
    expect(await quiet(id)).toEqual([
      [2, 'sent', undefined, undefined],
      [3, 'confirmed', toInstant(at(30)), undefined],
      [4, 'confirmed', toInstant(at(40)), undefined],
    ]);
    expect(await system.order(id)).toMatchObject({ rank: 20, updated_at: before?.['updated_at'] });
    expect(await snapshot(id)).toMatchObject({ sequence: 4, estimatedReadyAt: toInstant(at(40)) });
    const { order, history } = await shown(id);
    expect(order).toMatchObject({ estimatedReadyAt: toInstant(at(40)), estimatedDeliveryAt: null });
    expect(history.map((event) => [event.outcome, event.estimatedReadyAt])).toEqual([
      ['applied', toInstant(at(30))],
      ['duplicate', toInstant(at(40))],
    ]);
    const board = await readBoard(system.pool);
    expect(board.orders.find((each) => each.serviceOrderId === id)?.estimatedAt).toBe(toInstant(at(40)));
  });

  it('is published at most once a minute, and it is then the newest estimate', async () => {
    const id = await sent();
    await says({ status: 'in_progress', serviceOrderId: id, estimatedReadyAt: at(30) });
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(35) });
    expect((await quiet(id)).slice(2)).toEqual([[4, 'preparing', toInstant(at(35)), undefined]]);
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(40) });
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(45) });
    await pass(MINUTE - 10);
    expect(await quiet(id)).toHaveLength(3);
    await pass(11);
    expect((await quiet(id)).slice(3)).toEqual([[5, 'preparing', toInstant(at(45)), undefined]]);
    // Nothing is left of it, once a minute was quiet.
    await pass(MINUTE + 1);
    await quiet(id);
    expect(await system.query('SELECT FROM estimates_due WHERE service_order_id = $1', [id])).toEqual([]);
  });

  it('that waited for its minute is not published again if a status message already had the estimate', async () => {
    const [told, later] = [await sent(), await sent()];
    for (const id of [told, later]) {
      await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(30) });
      await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(35) });
      expect(await quiet(id)).toHaveLength(3);
      await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(40) });
      await says({ status: 'in_progress', serviceOrderId: id });
    }
    await says({ status: 'in_progress', serviceOrderId: later, estimatedReadyAt: at(50) });
    await pass(MINUTE + 1);
    expect((await quiet(told)).slice(3)).toEqual([[5, 'preparing', toInstant(at(40)), undefined]]);
    expect((await quiet(later)).at(-1)).toEqual([6, 'preparing', toInstant(at(50)), undefined]);
  });

  it('that is equal or older is not published', async () => {
    const id = await sent();
    const event = { status: 'received', serviceOrderId: id } as const;
    await says({ ...event, estimatedReadyAt: at(30), occurredAt: before(5) });
    await says({ ...event, estimatedReadyAt: at(30), occurredAt: before(6) });
    await says({ ...event, estimatedReadyAt: at(50), occurredAt: before(4) });
    expect(await system.query('SELECT FROM estimates_due WHERE service_order_id = $1', [id])).toEqual([]);
    expect(await quiet(id)).toHaveLength(2);
  });

  it('is published only once, even if two processes look for it at the same time', async () => {
    const id = await sent();
    await says({ status: 'received', serviceOrderId: id });
    // A process that asks for the time waits, with what it has seen until then.
    const [slower, quicker] = [new pg.Client(system.databaseUrl), new pg.Client(system.databaseUrl)];
    await Promise.all([slower.connect(), quicker.connect()]);
    try {
      await notifyEstimates(slower); // which plans it
      await quicker.query('BEGIN; LOCK TABLE clock.ahead');
      await system.query('INSERT INTO estimates_due VALUES ($1, 3, pg_catalog.now())', [id]);
      const ours = notifyEstimates(slower);
      await untilLocked(system);
      expect(await notifyEstimates(quicker)).toBe(1);
      await quicker.query('COMMIT');
      expect(await ours).toBe(0);
    } finally {
      await Promise.all([quicker.end(), slower.end()]);
    }
    expect((await quiet(id)).map((message) => (message as unknown[])[0])).toEqual([2, 3, 4]);
    const [due] = await system.query('SELECT sequence FROM estimates_due WHERE service_order_id = $1', [id]);
    expect(due).toEqual({ sequence: null });
  });

  it('is neither in the last message of an order nor in a later message', async () => {
    const id = await sent();
    await says({ status: 'ready', serviceOrderId: id, estimatedReadyAt: at(30) });
    await says({ status: 'ready', serviceOrderId: id, estimatedReadyAt: at(31) });
    await quiet(id);
    await says({ status: 'completed', serviceOrderId: id, estimatedReadyAt: at(32) });
    await says({ status: 'completed', serviceOrderId: id, estimatedReadyAt: at(33) });
    await pass(MINUTE + 1);
    expect((await quiet(id)).slice(2)).toEqual([
      [4, 'ready_for_pickup', toInstant(at(31)), undefined],
      [5, 'picked_up', undefined, undefined],
    ]);
    expect(await snapshot(id)).not.toHaveProperty('estimatedReadyAt');
  });

  it('is ignored, like a link, if its event has the POS id of another order', async () => {
    const [id, other] = [await sent(), await sent()];
    const both = { providerOrderId: `pos-${other}`, estimatedReadyAt: at(30), trackingUrl: LINK };
    await says({ status: 'received', serviceOrderId: id, ...both });
    expect(await system.order(id)).toMatchObject({ rank: 20, estimate: null, tracking: null });
    expect(await system.order(other)).toMatchObject({ rank: 10, estimate: null, tracking: null });
  });

  it('counts as old as its webhook if it comes from a replay', async () => {
    const id = await sent();
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(30) });
    const [first] = await system.query('SELECT webhook_id FROM status_events WHERE service_order_id = $1', [id]);
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(40) });
    const replayed = await fetch(`${system.operatorUrls[0]}/v1/webhooks/${String(first?.['webhook_id'])}/replay`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    expect(await replayed.json()).toMatchObject({ outcome: 'duplicate' });
    expect((await shown(id)).order?.estimatedReadyAt).toBe(toInstant(at(40)));
  });

  it('keeps its delivery time if an estimate of the same moment has none', async () => {
    const id = await sent();
    const event = { status: 'received', serviceOrderId: id, occurredAt: before(1), estimatedReadyAt: at(30) } as const;
    await says({ ...event, estimatedDeliveryAt: at(40) }, event);
    expect((await shown(id)).order).toMatchObject({ estimatedDeliveryAt: toInstant(at(40)) });
  });

  it("counts as old as its webhook if the till's clock is ahead", async () => {
    const id = await sent();
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    await says({ status: 'received', serviceOrderId: id, occurredAt: ahead, estimatedReadyAt: at(40) });
    await says({ status: 'received', serviceOrderId: id, estimatedReadyAt: at(30) });
    expect((await shown(id)).order).toMatchObject({ estimatedReadyAt: toInstant(at(30)) });
  });

  it(`is the newest by the POS's time, like a link, in whatever sequence the webhooks come (SEED=${SEED})`, async () => {
    const event = fc.record({
      status: fc.constantFrom('received', 'in_progress', 'ready', 'completed'),
      by: fc.constantFrom('ours', 'theirs'),
      minute: fc.integer({ min: 1, max: 4 }),
      ready: fc.option(fc.integer({ min: 20, max: 22 })),
      delivery: fc.option(fc.integer({ min: 30, max: 31 })),
      courier: fc.option(fc.constantFrom('?a="{,}"', 'B\\c')),
    });
    const cases = fc.sample(fc.array(event, { minLength: 2, maxLength: 6 }), { numRuns: 60, seed: SEED });
    const estimateAfter = async (events: (typeof cases)[number], answerAt: number): Promise<unknown> => {
      const id = await asked();
      for (const [nth, { status, by, minute, ready, delivery, courier }] of events.entries()) {
        if (nth === answerAt) await answer(id);
        await says({
          status,
          ...(by === 'ours' ? { serviceOrderId: id } : { providerOrderId: `pos-${id}` }),
          occurredAt: before(minute),
          ...(ready !== null && { estimatedReadyAt: at(ready) }),
          ...(delivery !== null && { estimatedDeliveryAt: at(delivery) }),
          ...(courier !== null && { trackingUrl: `${LINK}${courier}` }),
        });
      }
      const { estimate, tracking } = (await system.order(id)) ?? {};
      return { estimate, tracking };
    };
    await Promise.all(
      cases.map(async (events, nth) => {
        const there = await estimateAfter(events, nth % events.length);
        expect(await estimateAfter(events.toReversed(), 0), JSON.stringify(events)).toEqual(there);
      }),
    );
  });
});

describe('a tracking link', () => {
  const api = async (path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    return (await fetch(`${system.operatorUrls[0]}${path}`, { headers })).json();
  };

  it('is in each message and the snapshot until the order ends', async () => {
    const id = await sent();
    await says({ status: 'received', serviceOrderId: id, trackingUrl: `${LINK}?a="{,}\\"` });
    const trackingUrl = `${LINK}?a=%22{,}\\%22`;
    expect(await told(id, ({ status }) => status === 'received')).toMatchObject({ trackingUrl });
    // One that names none, or a repeat of it, changes nothing.
    await says({ status: 'in_progress', serviceOrderId: id, estimatedReadyAt: at(30) });
    await says({ status: 'in_progress', serviceOrderId: id, trackingUrl });
    expect(await quiet(id)).toHaveLength(3);
    expect(system.live(id).at(-1)).toMatchObject({ trackingUrl, estimatedReadyAt: toInstant(at(30)) });
    const updated = (await system.order(id))?.['updated_at'];
    expect(await says({ status: 'in_progress', serviceOrderId: id, trackingUrl: `${LINK}2` })).toBe('duplicate');
    const other = { trackingUrl: `${LINK}2`, estimatedReadyAt: toInstant(at(30)) };
    expect(await told(id, ({ sequence }) => sequence === 5)).toMatchObject({ status: 'in_progress', ...other });
    expect((await system.order(id))?.['updated_at']).toEqual(updated);
    expect(await snapshot(id)).toMatchObject({ sequence: 5, ...other });
    await says({ status: 'completed', serviceOrderId: id });
    expect(await told(id, ({ status }) => status === 'completed')).not.toHaveProperty('trackingUrl');
    expect(await snapshot(id)).not.toHaveProperty('trackingUrl');
  });

  it.each<[string, unknown]>([
    ['a script', 'javascript:alert(1)'],
    ['not encrypted', LINK.replace('https', 'http')],
    ['relative', '/track/1'],
    ['with a user', LINK.replace('//', '//sam@')],
    ['with a password', LINK.replace('//', '//:secret@')],
    ['10 kB', LINK + 'a'.repeat(10_000)],
    ['too long once it is encoded', LINK + 'ü'.repeat(200)],
    ['not a text', { href: LINK }],
  ])('that is %s is left out, and the status is published', async (_what, trackingUrl) => {
    const id = await sent();
    const event = { status: 'received', serviceOrderId: id, trackingUrl: trackingUrl as string } as const;
    expect(await says(event)).toBe('applied');
    expect(await told(id, ({ status }) => status === 'received')).not.toHaveProperty('trackingUrl');
    expect(await system.order(id)).toMatchObject({ tracking: null });
  });

  it('is published when the POS id is known if the newest parked event has it', async () => {
    const id = await asked();
    const event = { status: 'received', providerOrderId: `pos-${id}` } as const;
    for (const [minute, link] of [
      [2, `${LINK}2`],
      [3, `${LINK}3`],
      [1, `${LINK}1`],
    ] as const) {
      expect(await says({ ...event, occurredAt: before(minute), trackingUrl: link })).toBe('parked');
    }
    // A newer time does not take it away.
    await says({ ...event, occurredAt: before(4), estimatedReadyAt: at(30) });
    await answer(id);
    const both = { trackingUrl: `${LINK}3`, estimatedReadyAt: toInstant(at(30)) };
    expect(await told(id, ({ status }) => status === 'received')).toMatchObject(both);
  });

  it('is shown only to operators who may read member data, and is not logged', async () => {
    const id = await sent();
    await says({ status: 'received', serviceOrderId: id, trackingUrl: LINK });
    expect(await api(`/v1/orders/${id}`)).toMatchObject({ order: { trackingUrl: null } });
    expect(await api(`/v1/orders/${id}?contents=true`)).toMatchObject({ order: { trackingUrl: LINK } });
    expect(system.logged.join('')).not.toContain('courier.example');
  });

  it("is erased with its member's data, and not stored after that", async () => {
    const id = await sent();
    const link = { serviceOrderId: id, trackingUrl: LINK };
    await says({ status: 'received', ...link });
    const waiting = await inTransaction(system.pool, async (client) => {
      await client.query(
        `INSERT INTO parked_events (location_id, integration, provider_order_id, rank, webhook_day, webhook_id,
                                    native_status, parked_at, tracking)
         VALUES ('till-1', 'till', $1, 20, '2026-01-31', gen_random_uuid(), '', clock.now(), $2)`,
        [`pos-${id}`, ['2027-01-31T18:00:00.000Z', LINK]],
      );
      await eraseOrders(client, [id], true);
      return client.query('SELECT tracking FROM parked_events WHERE provider_order_id = $1', [`pos-${id}`]);
    });
    expect(waiting.rows).toEqual([{ tracking: null }]);
    expect(await system.order(id)).toMatchObject({ erased_at: expect.any(Date), tracking: null });
    await says({ status: 'in_progress', ...link }, { status: 'in_progress', ...link });
    expect(await system.order(id)).toMatchObject({ rank: 30, tracking: null });
    expect(await told(id, ({ status }) => status === 'in_progress')).not.toHaveProperty('trackingUrl');
  });
});

describe('a reason', () => {
  it('is published and shown to operators as a code with our item ids', async () => {
    const id = await sent();
    const why = { reasonCode: 'item_unavailable' as const, itemIds: ['burger', 'cola'] };
    await says({ status: 'failed', serviceOrderId: id, reason: 'no buns', ...why });
    expect(await told(id, ({ status }) => status === 'failed')).toMatchObject({ reason: 'no buns', ...why });
    expect(await snapshot(id)).toMatchObject({ memberState: 'failed', reason: 'no buns', ...why });
    const { order, history } = await shown(id);
    expect([order, history[0]]).toEqual([expect.objectContaining(why), expect.objectContaining(why)]);
    const { orders = [] } = (await listOrders(system.pool, {}, { limit: 50 })) ?? {};
    expect(orders.find((each) => each.serviceOrderId === id)?.reasonCode).toBe('item_unavailable');
  });

  it.each<[StatusEvent['status'], string, 'platform' | 'operator' | null, boolean, string]>([
    ['failed', 'the POS', null, false, 'other'],
    ['cancelled', 'the POS', null, false, 'restaurant_cancelled'],
    ['cancelled', 'a member who asked for it', 'platform', false, 'member_cancelled'],
    ['cancelled', 'an operator who asked for it', 'operator', false, 'restaurant_cancelled'],
    ['cancelled', 'a POS that had refused it', 'platform', true, 'restaurant_cancelled'],
  ])(
    'has our own code for "%s" by %s, whatever code the POS gives',
    async (status, _who, requestedBy, isRefused, reasonCode) => {
      const own = status === 'cancelled' ? ('restaurant_cancelled' as const) : undefined;
      for (const said of new Set([undefined, own])) {
        const id = await sent();
        if (requestedBy !== null) {
          await inTransaction(system.pool, (client) => beginCancellation(client, id, { requestedBy, notifies: true }));
        }
        if (isRefused) await refuseCancellation(system.pool, id, {});
        await says({ status, serviceOrderId: id, ...(said !== undefined && { reasonCode: said }) });
        expect((await told(id, (message) => message.status === status)).reasonCode).toBe(reasonCode);
        expect(await snapshot(id)).toMatchObject({ reasonCode });
        expect((await shown(id)).order?.reasonCode).toBe(reasonCode);
      }
    },
  );

  it('is kept only for an order that failed or was cancelled', async () => {
    const id = await sent();
    await says({ status: 'ready', serviceOrderId: id, reasonCode: 'too_busy' });
    expect(await told(id, ({ status }) => status === 'ready')).not.toHaveProperty('reasonCode');
    expect((await shown(id)).order?.reasonCode).toBeNull();
    await says({ status: 'failed', serviceOrderId: id });
    expect((await shown(id)).order?.reasonCode).toBe('other');
    await says({ status: 'failed', serviceOrderId: id, reasonCode: 'restaurant_cancelled' });
    expect((await shown(id)).order?.reasonCode).toBe('restaurant_cancelled');
  });

  it('is added to the order even if it comes from a repeated webhook or a parked event', async () => {
    const id = await sent();
    await says({ status: 'cancelled', serviceOrderId: id });
    await says({ status: 'cancelled', serviceOrderId: id, reasonCode: 'too_busy' });
    expect((await shown(id)).order?.reasonCode).toBe('too_busy');

    const early = await asked();
    const event = { status: 'cancelled', providerOrderId: `pos-${early}` } as const;
    expect(await says(event)).toBe('parked');
    expect(await says({ ...event, reasonCode: 'closed', itemIds: ['cola'] })).toBe('parked');
    await answer(early);
    const message = await told(early, ({ status }) => status === 'cancelled');
    expect(message).toMatchObject({ reasonCode: 'closed', itemIds: ['cola'] });
  });

  it("is taken from the POS's refusal, for the order and for its attempt", async () => {
    const serviceOrderId = randomUUID();
    const why = { reasonCode: 'item_unavailable' as const, itemIds: ['burger'] };
    answers.set(serviceOrderId, new GiveUp('86 burger', { reason: 'no burgers left', ...why }));
    await place(serviceOrderId);
    const message = await told(serviceOrderId, ({ status }) => status === 'failed');
    expect(message).toMatchObject({ reason: 'no burgers left', ...why });
    const { order, attempts } = await shown(serviceOrderId);
    expect([order?.reasonCode, attempts[0]?.reasonCode]).toEqual(['item_unavailable', 'item_unavailable']);
  });

  it.each<[string, unknown, string]>([
    ['no code', undefined, 'other'],
    ['an unknown code', 'out of buns', 'other'],
  ])('is `$2` if a refusal has $0', async (_what, reasonCode, wanted) => {
    const serviceOrderId = randomUUID();
    answers.set(serviceOrderId, new GiveUp('no', { reason: 'no', reasonCode: reasonCode as 'other' }));
    await place(serviceOrderId);
    expect((await told(serviceOrderId, ({ status }) => status === 'failed')).reasonCode).toBe(wanted);
  });

  it('is `technical` if the order was never read', async () => {
    const [late, missing, held, skipped] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    system.platform.orders.delete(missing);
    await system.query(
      `INSERT INTO placements (service_order_id, deadline_at, signalled_at, missing_since)
       VALUES ($1, clock.now() - interval '1 s', clock.now(), NULL),
              ($2, clock.now() + interval '1 h', clock.now() - interval '10 min', clock.now() - interval '10 min')`,
      [late, missing],
    );
    await system.finish('placements');
    expect(await told(late, ({ status }) => status === 'failed')).toMatchObject({ reasonCode: 'technical' });
    expect(await told(missing, ({ status }) => status === 'failed')).toMatchObject({ reasonCode: 'technical' });
    expect(await snapshot(missing)).toMatchObject({ memberState: 'failed', reasonCode: 'technical' });
    await system.query(
      `INSERT INTO placements (service_order_id, deadline_at, next_attempt_at, state, finished_at)
       VALUES ($1, clock.now() + interval '1 h', 'infinity', 'held', NULL),
              ($2, clock.now() + interval '1 h', 'infinity', 'withdrawn', clock.now())`,
      [held, skipped],
    );
    const { orders = [] } = (await listOrders(system.pool, {}, { limit: 200 })) ?? {};
    expect(
      [late, missing, held, skipped].map((id) => orders.find((each) => each.serviceOrderId === id)?.reasonCode),
    ).toEqual(['technical', 'technical', null, null]);
  });

  it('that contradicts the order is logged without its text and items', async () => {
    const id = await sent();
    await says({ status: 'completed', serviceOrderId: id });
    const why = { reasonCode: 'closed' as const, itemIds: ['rare-burger'], trackingUrl: LINK };
    await says({ status: 'failed', serviceOrderId: id, reason: 'no rare buns', ...why });
    const line = system.logged.find((each) => each.includes('conflict') && each.includes(id));
    expect(line).toContain('"status":"failed"');
    expect(line).not.toMatch(/rare|courier|closed/);
  });

  it("keeps its code, and loses its text and items, when the member's data is erased", async () => {
    const id = await sent();
    const event = { status: 'failed', serviceOrderId: id, reason: 'no buns', reasonCode: 'closed' } as const;
    await says({ ...event, itemIds: ['burger'] });
    await withClient(system.pool, (client) => eraseOrders(client, [id]));
    const erased = { reason: null, reasonCode: 'closed', itemIds: null };
    expect((await shown(id)).order).toMatchObject(erased);
    // What comes later is not kept either.
    await says({ ...event, itemIds: ['cola'] });
    const { order, history } = await shown(id);
    for (const each of [order, ...history]) expect(each).toMatchObject(erased);
  });
});
