/** Every end that an order can have, and all places that say what its member was told. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NO_ORDERS } from '../../../console/board/create-board.ts';
import { needsOf } from '../../../console/board/needs-of.ts';
import { ticketOf } from '../../../console/board/ticket-of.ts';
import { whatToDo } from '../../../console/orders/what-to-do.ts';
import type { BoardOrder, ShownOrder } from '../../../console/wire.ts';
import { memberNotified } from '../../../src/core/domain/member-notified.ts';
import { readBoard } from '../../../src/core/orders/read-board.ts';
import { eraseMember } from '../../../src/core/retention/erase-members.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { runCli } from '../../support/run-cli.ts';
import { sampleOrder, type SampleOptions } from '../../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';

let system: System;
let pos: Pos;
let operator: Operator;
let webhook: string;

beforeAll(async () => {
  [system, pos] = await Promise.all([
    startSystem({ stepped: ['placements', 'relay'], env: { OPERATOR_TOKEN } }),
    startPos(),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  webhook = await system.webhookUrl('club-1');
  operator = await askOperator(system.urls[0] ?? '');
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

/** Does a turn of the workers. */
async function turn(id: string, state: string): Promise<string> {
  await system.round('placements');
  expect(await system.placement(id)).toMatchObject({ state });
  return id;
}
const place = async (state: string, about?: SampleOptions): Promise<string> =>
  turn((await system.placeOrder(about)).serviceOrderId, state);
const report = (serviceOrderId: string, status: string): Promise<unknown> =>
  post(webhook, statusWebhook({ serviceOrderId, status }));
async function ended(status: string, about?: SampleOptions): Promise<string> {
  const id = await place('sent', about);
  await report(id, status);
  return id;
}
async function refused(): Promise<string> {
  pos.behave = () => ({ status: 422, body: { reason: 'out of buns' } });
  return place('failed').finally(() => (pos.behave = undefined));
}
async function neverRead(): Promise<string> {
  system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
  return place('failed').finally(() => (system.platform.answer = undefined));
}
/** Its deadline passes. */
async function late(id: string): Promise<string> {
  await system.query(
    `UPDATE placements SET deadline_at = now() - interval '1 s', next_attempt_at = now() WHERE service_order_id = $1`,
    [id],
  );
  return turn(id, 'failed');
}

const ENDS: [end: string, told: string, reach: () => Promise<string>][] = [
  ['a pickup is completed', 'notified that the order was picked up', () => ended('COMPLETED')],
  ['a delivery is completed', 'notified that the order was delivered', () => ended('COMPLETED', { type: 'delivery' })],
  ['the POS cancels it', 'notified that the order was cancelled', () => ended('CANCELLED')],
  ['the POS fails it', 'notified that the order failed', () => ended('FAILED')],
  ['the POS refuses it', 'notified that the order failed', refused],
  [
    'its deadline passes before it is at its POS',
    'notified that the order failed',
    async () => late(await place('held', { locationId: 'nowhere' })),
  ],
  ['it fails before it is read', 'notified that the order failed', neverRead],
  [
    'it cannot be read until its deadline',
    'notified that the order failed',
    async () => late(await place('held', { items: [] })),
  ],
  [
    'it failed before it was read, began again, and is completed',
    'notified that the order was picked up',
    async () => {
      const id = await neverRead();
      await system.signal(id);
      await turn(id, 'sent');
      await report(id, 'COMPLETED');
      return id;
    },
  ],
  [
    'it failed before it was read, has begun again, and is held',
    'notified that the order failed. The order has started again since',
    async () => {
      const id = await neverRead();
      system.platform.orders.set(id, { ...sampleOrder({ serviceOrderId: id }), items: [] });
      await system.signal(id);
      return turn(id, 'held');
    },
  ],
  [
    'it fails after the POS reported it',
    'notified that the order is being prepared. The failure of its placement was not reported, because the order had already progressed',
    async () => {
      const id = await ended('IN_PROGRESS');
      await system.query(`UPDATE placements SET state = 'failed', problem = 'x' WHERE service_order_id = $1`, [id]);
      return id;
    },
  ],
  [
    'its POS reports nothing after ready',
    'notified that the order is ready for pickup',
    async () => {
      const id = await ended('READY');
      await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]);
      return id;
    },
  ],
  [
    'it is erased after its end',
    'notified that the order was picked up',
    async () => {
      const memberId = `member-${randomUUID()}`;
      const id = await ended('COMPLETED', { member: { id: memberId, name: 'Ada' } });
      await eraseMember(system.pool, memberId, false);
      return id;
    },
  ],
];

it.each(ENDS)('when %s: API, command line and board say that the member was %s', async (_end, told, reach) => {
  const sentence = `The member was ${told}.`;
  const id = await reach();
  await system.finish('relay');

  const last = system.live(id).at(-1)?.memberState ?? null;
  const placement = await system.placement(id);
  const state = placement?.['state'] as 'sent' | 'failed' | 'held';
  const isRead = (await system.order(id)) !== undefined;
  expect(memberNotified({ placement: state, memberState: last, isRead })).toBe(sentence);

  const { body } = await operator.get(`/orders/${id}`);
  const story = body as unknown as ShownOrder;
  expect(story.notified).toBe(sentence);
  const list = await operator.get(`/orders?limit=100`);
  const listed = (list.body['orders'] as BoardOrder[]).find((order) => order.serviceOrderId === id);
  expect(listed?.memberState).toBe(last);

  expect((await runCli(system.env, ['order', 'show', id])).out).toContain(sentence);
  const retried = state === 'failed' && isRead && (await runCli(system.env, ['order', 'retry', id]));
  if (retried) expect(retried.error).toContain(sentence);

  const advice = whatToDo(story)?.advice;
  if (state === 'failed') expect(advice).toContain(sentence);
  const onBoard = (await readBoard(system.pool)).orders.find((order) => order.serviceOrderId === id);
  if (onBoard === undefined) return expect(story.order?.erasedAt).toEqual(expect.any(String));
  const ticket = ticketOf(onBoard, Date.now(), 0);
  const lists = { ...NO_ORDERS, [ticket.trouble ?? 'none']: [ticket] };
  const needs = needsOf(lists, undefined, { location: '', integration: '', text: '' }, Date.now());
  if (ticket.trouble === 'failed') expect(needs[0]?.needs[0]?.detail).toContain(sentence);
  const isFailed = state === 'failed' || (last === 'failed' && isRead);
  expect(ticket.trouble === 'failed').toBe(isFailed);
  expect(ticket.column === 'failed').toBe(isFailed);
  expect(ticket.column === 'done').toBe(onBoard.endedAt !== null && !isFailed);
});

it('the sentence does not say that the member was notified while messages wait', () => {
  const about = { placement: 'failed', memberState: 'failed', isRead: true } as const;
  expect(memberNotified({ ...about, waiting: 2 })).toBe(
    'The member was not yet notified that the order failed: 2 messages wait.',
  );
});

it.each(['README.md', 'docs/order-life.md'])(
  '%s uses the same sentences about the member as the code',
  async (file) => {
    const text = await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8');
    const sentences = text.match(/“The member was [^”]*”/g) ?? [];
    const known = ENDS.map(([, told]) => `“The member was ${told}.”`);
    expect(sentences.length).toBeGreaterThan(0);
    for (const sentence of sentences) expect(known).toContain(sentence.replaceAll(/\s+/g, ' '));
  },
);
