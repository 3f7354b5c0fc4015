import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../world/network/free-port.ts';
import { readBody, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { startPos, type Pos, type Ticket } from '../../world/pos/start-pos.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { until } from '../../world/processes/until.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { minorDigits } from '../../src/core/domain/money.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import { needsPostgres } from './needs-tool.ts';
import { repeatably } from '../support/repeatably.ts';
import { installShop, startShop, type Shop } from './start-shop.ts';
import {
  checkout,
  logIn,
  makeApiKey,
  OUTCOME,
  setUpShop,
  type Ask,
  type Channel,
  type Placed,
} from './vendure-shop.ts';

const MODULE = './examples/platforms/vendure/map-order.ts';
const STATUS_WEBHOOK_SECRET = `whsec_${randomBytes(32).toString('base64')}`;

let postgres: Postgres;
let folder: string;
let shopPort: number;
let url: string;
let shop: Shop;
/** What is between the shop and Expediter. */
let gate: HttpServer;
let isGateOpen = true;
let held = 0;
let channels: Channel[];
let pos: Pos;
let system: System;
let admin: Ask;
/** Of the API key. */
let key: { apiKey: string; entityId: string };
let tokenFile: string;

const runShop = (): Promise<Shop> =>
  startShop({
    folder,
    script: 'dist/start-shop.js',
    env: {
      DATABASE_URL: postgres.url,
      PORT: String(shopPort),
      SIGNAL_URL: gate.url,
      STATUS_WEBHOOK_SECRET,
      VENDURE_DISABLE_TELEMETRY: 'true',
    },
    ready: /Vendure listens/,
  });

beforeAll(async () => {
  const begun = performance.now();
  folder = installShop('vendure');
  const installed = performance.now();
  const bin = needsPostgres().at(-1) ?? '';
  postgres = await startPostgres({
    binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') },
    // Vendure's statements are long and short-lived: to compile them costs more than to run them.
    settings: { jit: 'off' },
  });
  gate = await serveHttp(async (request, response) => {
    if (!isGateOpen) {
      held += 1;
      return;
    }
    const answer = await fetch(system.signalUrl(), {
      method: 'POST',
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      body: new Uint8Array(await readBody(request)),
    });
    response.writeHead(answer.status).end();
  });
  shopPort = await freePort();
  url = `http://127.0.0.1:${shopPort}`;
  shop = await runShop();
  const running = performance.now();
  channels = await setUpShop(url);
  admin = await logIn(url);
  key = await makeApiKey(url);
  tokenFile = join(await mkdtemp(join(tmpdir(), 'expediter-vendure-')), 'token');
  await writeFile(tokenFile, key.apiKey);
  pos = await startPos();
  system = await startSystem({
    doors: 'http',
    jobs: 'all',
    env: {
      ORDER_API_URL: `${url}/admin-api`,
      ORDER_API_TOKEN_FILE: tokenFile,
      ORDER_MODULE: MODULE,
      STATUS_WEBHOOK_URL: `${url}/expediter/statuses`,
      STATUS_WEBHOOK_SECRET,
    },
  });
  for (const { code } of channels)
    await system.addLocation(code, { ordersUrl: pos.ordersUrl, cancelUrl: pos.cancelUrl });
  const s = (from: number, to: number): string => `${((to - from) / 1_000).toFixed(1)} s`;
  process.stdout.write(
    `Vendure: installed and compiled in ${s(begun, installed)}, running after ${s(installed, running)}, ` +
      `filled in ${s(running, performance.now())}\n`,
  );
}, 300_000);

afterAll(async () => {
  if (process.env['DEBUG_SHOP']) process.stdout.write(shop.output().slice(-3000) + system.logged.slice(-30).join(''));
  await system?.stop();
  await shop?.stop();
  await Promise.all([pos?.stop(), gate?.stop()]);
  await postgres?.stop();
  if (tokenFile !== undefined) await rm(dirname(tokenFile), { recursive: true });
});

type Seen = Placed & {
  state: string;
  customFields: { kitchen: string | null };
  fulfillments: { state: string }[];
  lines: { id: string; quantity: number }[];
  payments: { id: string; amount: number }[];
};

/** An order as Vendure's staff see it. */
async function seen(id: string): Promise<Seen> {
  const { order } = await admin<{ order: Seen }>(
    `query Order($id: ID!) { order(id: $id) { id code state totalWithTax currencyCode customFields { kitchen }
      fulfillments { state } lines { id quantity } payments { id amount } } }`,
    { id },
  );
  return order;
}

const channel = (code: string): Channel => channels.find((each) => each.code === code) ?? expect.unreachable(code);
const ticketOf = (code: string): Promise<Ticket> =>
  until(() => pos.tickets.find(({ serviceOrderId }) => serviceOrderId === code));
const printed = ({ order }: Ticket): KitchenOrder => order as KitchenOrder;

const webhooks = new Map<string, string>();
async function report(ticket: Ticket, status: string, reason?: string): Promise<void> {
  const { locationId } = printed(ticket);
  const { serviceOrderId, providerOrderId } = ticket;
  const webhookUrl = webhooks.get(locationId) ?? (await system.webhookUrl(locationId));
  webhooks.set(locationId, webhookUrl);
  const answer = await pos.sendStatus(webhookUrl, {
    serviceOrderId,
    providerOrderId,
    status,
    ...(reason !== undefined && { reason }),
  });
  expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
}

/** Vendure's order once the last status has arrived there. */
const once = (placed: Placed, is: (order: Seen) => boolean): Promise<Seen> =>
  until(async () => {
    const order = await seen(placed.id);
    if (is(order)) return order;
    // Vendure needs a while for a question.
    await sleep(200);
    return undefined;
  });
const inKitchen = (placed: Placed, kitchen: string): Promise<Seen> =>
  once(placed, ({ customFields }) => customFields.kitchen === kitchen);

it("a paid order becomes a ticket with Vendure's amounts, and each status moves Vendure's order", async () => {
  const wantedAt = new Date(Date.now() + 3_600_000).toISOString();
  const about = { way: 'delivery', phone: '030 901820', wantedAt, note: 'Ring twice', lineNote: 'no onions' } as const;
  const placed = await checkout(url, channel('berlin'), { basket: [1, 2, 0, 1], ...about });
  const ticket = await ticketOf(placed.code);
  expect(printed(ticket)).toMatchObject({
    serviceOrderId: placed.code,
    member: { name: 'Kim Guest', phone: '+4930901820' },
    fulfillment: { type: 'delivery', destination: { line1: '1 Main Street', country: 'DE' }, requestedAt: wantedAt },
    items: [
      { serviceItemId: 'berlin-burger', quantity: 1, unitPrice: 1290, notes: 'no onions' },
      { serviceItemId: 'berlin-fries', quantity: 2, unitPrice: 350 },
      { serviceItemId: 'berlin-lemonade', quantity: 1, unitPrice: 449 },
    ],
    money: { subtotal: 2439, fee: 390, total: placed.totalWithTax, currency: 'EUR', pricesIncludeTax: true },
    fees: [{ name: 'delivery', amount: 390 }],
    notes: 'Ring twice',
  });
  expect(await inKitchen(placed, 'sent')).toMatchObject({ state: 'PaymentSettled', fulfillments: [] });
  for (const [status, kitchen, state, fulfillments] of [
    ['IN_PROGRESS', 'preparing', 'PaymentSettled', []],
    ['READY', 'ready_for_delivery', 'PaymentSettled', [{ state: 'Pending' }]],
    ['EN_ROUTE', 'out_for_delivery', 'Shipped', [{ state: 'Shipped' }]],
    ['COMPLETED', 'delivered', 'Delivered', [{ state: 'Delivered' }]],
  ] as const) {
    await report(ticket, status);
    expect(await inKitchen(placed, kitchen)).toMatchObject({ state, fulfillments });
  }
});

it('a guest without a telephone, prices without tax, a coupon, and a skipped step', async () => {
  const placed = await checkout(url, channel('austin'), { basket: [2, 1, 1, 0], coupons: ['TEN'] });
  const ticket = await ticketOf(placed.code);
  expect(printed(ticket)).toMatchObject({
    member: { name: 'Kim Guest' },
    fulfillment: { type: 'pickup' },
    money: { subtotal: 4018, discount: 402, tax: 274, fee: 0, total: placed.totalWithTax, pricesIncludeTax: false },
    discounts: [{ name: 'TEN', amount: 402 }],
    taxes: [{ name: 'Tax 8.25 %', rate: 8.25, amount: 274 }, { rate: 0 }, { name: 'shipping tax', amount: 0 }],
  });
  expect(printed(ticket).member).not.toHaveProperty('phone');
  await report(ticket, 'COMPLETED');
  const fulfillments = [{ state: 'Delivered' }];
  expect(await inKitchen(placed, 'picked_up')).toMatchObject({ state: 'Delivered', fulfillments });
});

it('an order in yen has whole yen or is held, and one with a discount of 100 % costs nothing', async () => {
  const yen = await checkout(url, channel('tokyo'), { basket: [1, 2, 0, 0], way: 'delivery' });
  expect(yen.totalWithTax).toBe(219_000);
  const money = { subtotal: 1690, fee: 500, total: 2190, currency: 'JPY' };
  expect(printed(await ticketOf(yen.code))).toMatchObject({ money, items: [{ unitPrice: 990 }, { unitPrice: 350 }] });
  // A third off 350 yen: nobody can pay Vendure's total of 234.5 yen.
  const broken = await checkout(url, channel('tokyo'), { basket: [0, 1, 0, 0], coupons: ['THIRD'] });
  expect(broken.totalWithTax).toBe(23_450);
  const held = await until(async () => {
    const placement = await system.placement(broken.code);
    return placement?.['state'] === 'held' && placement;
  });
  expect(held['problem']).toContain('amount_too_exact');
  const free = await checkout(url, channel('berlin'), { basket: [1, 1, 0, 0], way: 'delivery', coupons: ['FREE'] });
  const nothing = { subtotal: 1640, discount: 1640, tax: 0, fee: 0, total: 0 };
  expect(printed(await ticketOf(free.code)).money).toMatchObject(nothing);
});

/** Adds one more of a line, and takes the money for it, as staff do in the dashboard. */
async function addOne({ id }: Placed, during: () => Promise<void>): Promise<void> {
  const staff = await logIn(url, 'berlin');
  const move = (state: string): Promise<unknown> =>
    staff(
      `mutation Move($id: ID!, $state: String!) { transitionOrderToState(id: $id, state: $state) { ${OUTCOME} } }`,
      { id, state },
    );
  await move('Modifying');
  await during();
  const { lines } = await seen(id);
  const adjustOrderLines = lines.slice(0, 1).map((line) => ({ orderLineId: line.id, quantity: line.quantity + 1 }));
  await staff(`mutation Modify($input: ModifyOrderInput!) { modifyOrder(input: $input) { ${OUTCOME} } }`, {
    input: { dryRun: false, orderId: id, adjustOrderLines },
  });
  await move('ArrangingAdditionalPayment');
  await staff(`mutation Pay($input: ManualPaymentInput!) { addManualPaymentToOrder(input: $input) { ${OUTCOME} } }`, {
    input: { orderId: id, method: 'cash', transactionId: 'till', metadata: {} },
  });
  await move('PaymentSettled');
}

it('a change by staff is not applied until the restaurant says so, and statuses wait for its end', async () => {
  const placed = await checkout(url, channel('berlin'), { basket: [1, 1, 0, 0] });
  const ticket = await ticketOf(placed.code);
  await inKitchen(placed, 'sent');
  await addOne(placed, () => report(ticket, 'READY'));
  await inKitchen(placed, 'ready_for_pickup, change not_applied');
  await report(ticket, 'COMPLETED');
  const changed = await once(placed, ({ state }) => state === 'Delivered');
  expect(changed).toMatchObject({ totalWithTax: 2930, lines: [{ quantity: 2 }, { quantity: 1 }] });
});

const cancel = (placed: Placed): Promise<unknown> =>
  admin(`mutation Cancel($input: CancelOrderInput!) { cancelOrder(input: $input) { ${OUTCOME} } }`, {
    input: { orderId: placed.id, reason: 'Guest called', cancelShipping: true },
  });

const cancelledInKitchen = (placed: Placed): Promise<Seen> =>
  once(placed, ({ customFields }) => customFields.kitchen?.startsWith('cancelled') === true);

it('an order that Vendure cancels has no ticket, or its ticket is cancelled', async () => {
  isGateOpen = false;
  const early = await checkout(url, channel('berlin'), { basket: [1, 0, 0, 0] });
  await cancel(early);
  isGateOpen = true;
  await cancelledInKitchen(early);
  expect(pos.tickets.some(({ serviceOrderId }) => serviceOrderId === early.code)).toBe(false);

  const late = await checkout(url, channel('berlin'), { basket: [1, 0, 0, 0] });
  const ticket = await ticketOf(late.code);
  await cancel(late);
  await until(() => ticket.cancelled);
  expect(ticket.cancelled).toEqual({ reason: 'Guest called' });
  expect(await cancelledInKitchen(late)).toMatchObject({ state: 'Cancelled', lines: [{ quantity: 0 }] });
});

it('a restaurant that refuses a cancel, cancels, or takes no order', async () => {
  const cooked = await checkout(url, channel('berlin'), { basket: [1, 0, 0, 0] });
  const ready = await ticketOf(cooked.code);
  await report(ready, 'READY');
  await inKitchen(cooked, 'ready_for_pickup');
  await cancel(cooked);
  await inKitchen(cooked, 'ready_for_pickup, cancel refused');

  const soldOut = await checkout(url, channel('berlin'), { basket: [0, 1, 0, 0] });
  await report(await ticketOf(soldOut.code), 'CANCELLED', 'No more potatoes');
  expect(await once(soldOut, ({ state }) => state === 'Cancelled')).toMatchObject({ lines: [{ quantity: 0 }] });

  pos.behave = () => ({ status: 422 });
  const refused = await checkout(url, channel('berlin'), { basket: [0, 0, 1, 0] });
  const failed = await once(refused, ({ customFields }) => customFields.kitchen?.startsWith('failed') === true);
  pos.behave = undefined;
  // Its money is with the shop: staff decide.
  expect(failed).toMatchObject({ state: 'PaymentSettled', lines: [{ quantity: 1 }] });
});

it('an order that is refunded in part is cooked', async () => {
  const placed = await checkout(url, channel('berlin'), { basket: [1, 0, 0, 0] });
  const ticket = await ticketOf(placed.code);
  const [payment] = (await seen(placed.id)).payments;
  await admin(`mutation Refund($input: RefundOrderInput!) { refundOrder(input: $input) { ${OUTCOME} } }`, {
    input: { paymentId: payment?.id, lines: [], shipping: 0, adjustment: 0, amount: 100, reason: 'Late' },
  });
  await report(ticket, 'COMPLETED');
  expect(await inKitchen(placed, 'picked_up')).toMatchObject({ state: 'Delivered', totalWithTax: 1290 });
});

it('a shop that is killed while it signals an order signals it when it runs again, and takes the statuses', async () => {
  isGateOpen = false;
  held = 0;
  const placed = await checkout(url, channel('austin'), { basket: [0, 1, 0, 0] });
  await until(() => held > 0);
  const next = await checkout(url, channel('austin'), { basket: [0, 0, 1, 0] });
  await shop.kill();
  isGateOpen = true;
  shop = await runShop();
  const tickets = await Promise.all([placed, next].map(({ code }) => ticketOf(code)));
  await shop.kill();
  for (const ticket of tickets) await report(ticket, 'READY');
  shop = await runShop();
  for (const each of [placed, next]) await inKitchen(each, 'ready_for_pickup');
});

it('a key that Vendure has replaced is read again from its file', async () => {
  const { rotateApiKey } = await admin<{ rotateApiKey: { apiKey: string } }>(
    `mutation Rotate($id: ID!) { rotateApiKey(id: $id) { apiKey } }`,
    { id: key.entityId },
  );
  const refused = await fetch(`${url}/admin-api`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'vendure-api-key': key.apiKey },
    body: JSON.stringify({ query: '{ orders { totalItems } }' }),
  });
  expect(await refused.json()).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  await writeFile(tokenFile, rotateApiKey.apiKey);
  const placed = await checkout(url, channel('berlin'), { basket: [1, 0, 0, 0] });
  expect((await ticketOf(placed.code)).requests).toBe(1);
});

const ORDERS = 200;
const AT_ONCE = 4;
const SEED = 70;

const sum = (parts: readonly { amount: number }[] | undefined): number =>
  (parts ?? []).reduce((total, { amount }) => total + amount, 0);

/** Does them some at a time, as several guests would. */
async function inParallel<Each, Result>(all: readonly Each[], run: (each: Each) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  const left = all.entries();
  const work = async (): Promise<void> => {
    for (const [nth, each] of left) results[nth] = await run(each);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return results;
}

/** The orders of a state, by code. Vendure lists a hundred at a time. */
async function listed(state: string): Promise<Map<string, Seen>> {
  const found = new Map<string, Seen>();
  for (let skip = 0; ; skip += 100) {
    const { orders } = await admin<{ orders: { items: Seen[] } }>(
      `query Orders($options: OrderListOptions!) { orders(options: $options) { items { code totalWithTax payments { amount } } } }`,
      { options: { filter: { state: { eq: state } }, sort: { id: 'ASC' }, skip, take: 100 } },
    );
    for (const order of orders.items) found.set(order.code, order);
    if (orders.items.length < 100) return found;
  }
}

it(
  `${ORDERS} random orders: amounts are equal from Vendure's checkout to the ticket and back`,
  { timeout: 900_000 },
  async () => {
    const next = repeatably(SEED);
    const one = <Value>(of: readonly Value[]): Value => of[Math.floor(next() * of.length)] ?? expect.unreachable();
    const plans = Array.from({ length: ORDERS }, () => {
      const of = one(channels);
      const basket = of.prices.map(() => one([0, 0, 1, 2, 3, 5]));
      if (!basket.some((quantity) => quantity > 0)) basket[0] = 1;
      // A third of 350 yen has a fraction, and so has Vendure's total: nobody can pay it.
      const some =
        of.currency === 'JPY' ? [[], ['TEN'], ['FREE']] : [[], ['TEN'], ['THIRD'], ['THIRD', 'TEN'], ['FREE']];
      return { of, basket, coupons: one(some), way: one(['delivery', 'pickup'] as const) };
    });
    const begun = performance.now();
    const all = await inParallel(plans, ({ of, ...about }) => checkout(url, of, about));
    const tickets = await inParallel(all, ({ code }) => ticketOf(code));
    await inParallel(tickets, (ticket) => report(ticket, 'COMPLETED'));
    const back = await until(async () => {
      const found = await listed('Delivered');
      return all.every(({ code }) => found.has(code)) && found;
    }, 600_000);
    const wrong = all.flatMap(({ code, totalWithTax: total }, nth) => {
      const { items, money, discounts, fees, taxes } = printed(tickets[nth] ?? expect.unreachable());
      const goods = items.reduce((total, { quantity, unitPrice = 0 }) => total + quantity * unitPrice, 0);
      const due = goods - sum(discounts) + sum(fees) + (money.pricesIncludeTax === true ? 0 : sum(taxes));
      const hundredths = (amount: number): number => (amount * 100) / 10 ** minorDigits(money.currency);
      const amounts = {
        'total of the ticket': hundredths(money.total),
        "sum of the ticket's lines": hundredths(due),
        'total in the end': back.get(code)?.totalWithTax,
        'paid in the end': sum(back.get(code)?.payments),
      };
      return Object.values(amounts).every((amount) => amount === total)
        ? []
        : [{ ...plans[nth], total, ...amounts, money }];
    });
    const seconds = Math.round((performance.now() - begun) / 1_000);
    process.stdout.write(
      `Vendure: ${ORDERS - wrong.length} of ${ORDERS} orders are equal, in ${seconds} s (seed ${SEED})\n`,
    );
    expect(wrong).toEqual([]);
  },
);
