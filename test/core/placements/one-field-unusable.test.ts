/** Orders of which any one field cannot be used: never lost, never final before the deadline, always told. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import type { ShownOrder } from '../../../console/wire.ts';
import { NO_ORDERS } from '../../../console/board/create-board.ts';
import { needsOf } from '../../../console/board/needs-of.ts';
import { ticketOf } from '../../../console/board/ticket-of.ts';
import { readBoard } from '../../../src/core/orders/read-board.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { runCli } from '../../support/run-cli.ts';
import { sampleOrder, type SampleOptions } from '../../../world/platform/sample-order.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';

/** Enough of them to see that it works. UNUSABLE_ORDERS=10000 is the promise. */
const ORDERS = Number(process.env['UNUSABLE_ORDERS'] ?? 40);
const AT_ONCE = 20;

type Fields = Record<string, unknown>;

let system: System;
let pos: Pos;
let operator: Operator;
/** What the platform answers, word for word: its schema may allow anything. */
const answers = new Map<string, unknown>();

beforeAll(async () => {
  [system, pos] = await Promise.all([
    startSystem({ stepped: ['placements', 'relay'], env: { OPERATOR_TOKEN } }),
    startPos(),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  system.platform.answer = (id) => (answers.has(id) ? { order: answers.get(id) } : undefined);
  operator = await askOperator(system.urls[0] ?? '');
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

async function place(about: SampleOptions, change: (order: Fields) => void): Promise<string> {
  const order = structuredClone(sampleOrder(about)) as Fields;
  const id = String(order['serviceOrderId']);
  change(order);
  answers.set(id, order);
  // Pub/Sub comes again, too, where a busy service says 503.
  await until(async () => (await system.signal(id)) === 204);
  return id;
}

const states = async (): Promise<Map<string, string>> =>
  new Map(
    (await system.query('SELECT service_order_id AS id, state FROM placements')).map(({ id, state }) => [
      String(id),
      String(state),
    ]),
  );
function memberStates(): Map<string, string[]> {
  const messages = Map.groupBy(system.pubsub.published('order-status'), ({ orderingKey }) => orderingKey ?? '');
  return new Map(
    Array.from(messages, ([id, of]) => [
      id,
      of.map(({ data }) => (JSON.parse(data.toString()) as LiveMessage).memberState),
    ]),
  );
}

/** The paths of all fields, of objects and lists as well. */
function pathsOf(value: unknown, path: string[] = []): string[][] {
  const inner =
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, field]) => pathsOf(field, [...path, name]))
      : [];
  return path.length === 0 ? inner : [path, ...inner];
}

function textsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? [value] : [];
  return Object.values(value).flatMap(textsOf);
}

const UNUSABLE = [
  null,
  '',
  ' ',
  'none',
  '0151 23456789',
  '12.90',
  `${'x'.repeat(60_000)}@`,
  'a\0b',
  'lone \ud800',
  0,
  -1,
  1.5,
  1e20,
  true,
  [],
  [null],
  {},
  { value: 'Ada' },
] as const;

it(
  `${ORDERS} orders with one unusable field each are placed, or end with a notice to the member`,
  { timeout: 1_800_000 },
  async () => {
    const one = fc.record({
      type: fc.constantFrom('pickup' as const, 'delivery' as const),
      nth: fc.nat(),
      value: fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...UNUSABLE) }, fc.jsonValue({ maxDepth: 2 })),
    });
    const sampled = fc.sample(one, { numRuns: ORDERS, seed: SEED });
    const changed = new Map<string, string>();
    for (let from = 0; from < sampled.length; from += AT_ONCE) {
      await Promise.all(
        sampled.slice(from, from + AT_ONCE).map(async ({ type, nth, value }) => {
          let said = '';
          const id = await place({ type }, (order) => {
            const paths = pathsOf(order);
            const path = paths[nth % paths.length] ?? [];
            const parent = path.slice(0, -1).reduce((at, name) => at[name] as Fields, order);
            parent[path.at(-1) ?? ''] = value;
            said = `${path.join('.')} = ${JSON.stringify(value)?.slice(0, 60)}`;
          });
          changed.set(id, said);
        }),
      );
    }
    await system.finish('placements');
    const settled = await states();
    const odd = [...changed].filter(([id]) => !['sent', 'held'].includes(settled.get(id) ?? 'lost'));
    expect(odd.map(([id, said]) => `${said}: ${settled.get(id)}`)).toEqual([]);

    await system.query(
      `UPDATE placements SET deadline_at = now() - interval '1 s', next_attempt_at = now() WHERE state = 'held'`,
    );
    await system.finish('placements');
    await system.finish('relay');
    const ended = await states();
    const told = memberStates();
    const unnotified = [...changed].filter(([id]) => told.get(id)?.at(-1) !== ended.get(id));
    expect(unnotified.map(([id, said]) => `${said}: ${ended.get(id)}, told ${told.get(id)?.join(', ')}`)).toEqual([]);
    const tickets = Map.groupBy(pos.tickets, (ticket) => ticket.serviceOrderId);
    const wrong = [...changed].filter(([id]) => (tickets.get(id)?.length ?? 0) !== (ended.get(id) === 'sent' ? 1 : 0));
    expect(wrong).toEqual([]);
    const blank = pos.tickets.flatMap(({ order }) => textsOf(order).filter((text) => text.trim() === ''));
    expect(blank).toEqual([]);
    // Else nothing was tried.
    expect(new Set(ended.values())).toEqual(new Set(['sent', 'failed']));
  },
);

it('an order is placed without its unusable optional fields; timeline, log and API name them by code and path', async () => {
  const member = { id: 'm', name: 'Ada', phone: '0151 23456789', email: 'none' };
  const id = await place({}, (order) => Object.assign(order, { member }));
  await system.round('placements');
  const leftOut = [
    { code: 'email_unusable', path: 'member.email' },
    { code: 'phone_unusable', path: 'member.phone' },
  ];
  const { body } = await operator.get(`/orders/${id}`);
  const story = body as unknown as ShownOrder;
  expect(story.order?.leftOut).toEqual(leftOut);
  expect(story.timeline.find(({ what }) => what === 'fetched')?.details).toMatchObject({ leftOut });
  expect((await runCli(system.env, ['order', 'show', id])).out).toContain('member.phone (phone unusable)');
  const line = system.logged.find((each) => each.includes('parts of an order were left out') && each.includes(id));
  expect(JSON.parse(line ?? '')).toMatchObject({ serviceOrderId: id, leftOut });
  const order = (await readBoard(system.pool)).orders.find((each) => each.serviceOrderId === id);
  if (order === undefined) throw new Error('it is not on the board');
  const lists = { ...NO_ORDERS, left_out: [ticketOf(order, Date.now(), 0)] };
  const [group] = needsOf(lists, undefined, { location: '', integration: '', text: '' }, Date.now());
  expect(group?.needs[0]?.detail).toBe(
    'club-1: without member, email (email unusable); member, phone (phone unusable)',
  );
  const { text } = await operator.get('/metrics');
  expect(text).toMatch(/^expediter_order_fields_left_out_total\{code="phone_unusable"\} [1-9]/m);
  expect(text).toMatch(/^expediter_refetches_total\{outcome="unreadable"\} [1-9]/m);
  expect(JSON.stringify([story, line, order])).not.toMatch(/23456789|none/);
});

it('a telephone number in national form is read with the country of its location', async () => {
  const put = ['location', 'put', '--location', 'club-de', '--integration', 'standard', '--settings', '-'];
  const settings = JSON.stringify({ ordersUrl: pos.ordersUrl, unsigned: true });
  expect(await runCli(system.env, [...put, '--country', 'Germany'], settings)).toMatchObject({ code: 2 });
  expect(await runCli(system.env, [...put, '--country', 'de'], settings)).toMatchObject({ code: 0 });
  const change = ['location', 'change', 'club-de', '--name', 'Club'];
  expect(await runCli(system.env, change)).toMatchObject({ code: 0 });
  expect((await runCli(system.env, ['location', 'show', 'club-de'])).out).toMatch(/country +DE/);
  expect((await operator.get('/locations/club-de')).body).toMatchObject({ country: 'DE' });
  const member = { id: 'm', name: 'Ada', phone: '0151 23456789' };
  const id = await place({ locationId: 'club-de' }, (order) => Object.assign(order, { member }));
  await system.round('placements');
  const [row] = await system.query('SELECT contents FROM order_contents WHERE service_order_id = $1', [id]);
  expect(row?.['contents']).toMatchObject({ member: { phone: '+4915123456789' } });
  expect(await system.order(id)).toMatchObject({ left_out: null });
});
