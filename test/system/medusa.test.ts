import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toCanonicalOrder, type MedusaOrder } from '../../examples/platforms/medusa/map-order.ts';
import { readCanonicalOrder } from '../../src/core/domain/read-canonical-order.ts';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import { SEED } from '../../world/inputs/seed.ts';
import { freePort } from '../../world/network/free-port.ts';
import { readBody, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { until } from '../../world/processes/until.ts';
import { startPos, type Pos, type Ticket } from '../../world/pos/start-pos.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { setUpMedusa, type AdminOrder, type Basket, type MedusaShop } from './medusa-shop.ts';
import { needsPostgres } from './needs-tool.ts';
import { installShop, startShop, type Shop } from './start-shop.ts';

const CLI = '../../node_modules/@medusajs/cli/cli.js';
/** Medusa has one thread, and answers each question in a tenth of a second. */
const POLL_MS = 200;
const RUNS = 1_000;
/** What the sums do not depend on. */
const SAMPLE = {
  id: 'order_1',
  status: 'pending',
  created_at: '2026-11-30T18:00:00Z',
  canceled_at: null,
  email: null,
  metadata: null,
  customer: null,
  sales_channel: { name: 'Trattoria Nord' },
  shipping_address: { first_name: 'Ada', last_name: 'Lovelace' },
};
const SAMPLE_ITEM = { title: 'Burger', variant_title: null, variant_sku: 'burger', metadata: null };
const SAMPLE_WAY = { name: 'At the counter', shipping_option: { type: { code: 'pickup' } } };
const USER = { email: 'staff@example.com', password: randomBytes(12).toString('hex') };
const STATUS_WEBHOOK_SECRET = `whsec_${randomBytes(32).toString('base64')}`;

let postgres: Postgres;
let pos: Pos;
/** The way of the shop's signals to Expediter. While it is cut, they get no answer. */
let way: HttpServer;
let isCut = true;
/** Ids of orders whose signals came to the cut. */
const cutOff: string[] = [];
let system: System;
/** Where the POS reports to, and where Medusa takes the statuses. */
let webhook: string;
let statusUrl: string;
let medusa: Shop;
let shop: MedusaShop;
/** Starts Medusa with the same database and port. */
let startMedusa: () => Promise<Shop>;
let folder: string;
/** Where Medusa is compiled to. */
let server: string;
let tokenFile: string;
let key: { id: string; token: string };

beforeAll(async () => {
  const began = performance.now();
  server = join(installShop('medusa'), '.medusa/server');
  const installed = performance.now();
  const bin = needsPostgres().at(-1) ?? '';
  [postgres, pos, folder, way] = await Promise.all([
    startPostgres({ binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') } }),
    startPos(),
    mkdtemp(join(tmpdir(), 'expediter-medusa-')),
    serveHttp(async (request, response) => {
      const body = (await readBody(request)).toString();
      if (isCut) {
        cutOff.push((JSON.parse(body) as { orderId: string }).orderId);
        request.socket.destroy();
        return;
      }
      const { status } = await fetch(system.signalUrl(), { method: 'POST', body });
      response.writeHead(status).end();
    }),
  ]);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    DATABASE_URL: postgres.url,
    JWT_SECRET: 'secret-of-a-test',
    COOKIE_SECRET: 'secret-of-a-test',
    SIGNAL_URL: way.url,
    STATUS_WEBHOOK_SECRET,
    NODE_ENV: 'production',
    MEDUSA_DISABLE_TELEMETRY: 'true',
  };
  for (const args of [
    ['db:migrate', '--execute-safe-links'],
    ['user', '--email', USER.email, '--password', USER.password],
  ]) {
    const { code, out, error } = await runProgram(process.execPath, [CLI, ...args], env, { cwd: server });
    if (code !== 0) throw new Error(`medusa ${args[0]} failed: ${(out + error).slice(-4_000)}`);
  }
  const args = ['start', '--host', '127.0.0.1', '--port', String(port)];
  startMedusa = () => startShop({ folder: server, script: CLI, args, env, ready: /Server is ready/ });
  medusa = await startMedusa();
  shop = await setUpMedusa(url, USER);
  key = await shop.issueKey();
  tokenFile = join(folder, 'token');
  await writeFile(tokenFile, key.token);
  statusUrl = `${url}/expediter/statuses`;
  system = await startSystem({
    doors: 'http',
    jobs: 'all',
    env: {
      ORDER_MODULE: './examples/platforms/medusa/map-order.ts',
      ORDER_API_URL: url,
      ORDER_API_TOKEN_FILE: tokenFile,
      STATUS_WEBHOOK_URL: statusUrl,
      STATUS_WEBHOOK_SECRET,
    },
  });
  isCut = false;
  await system.addLocation('nord', { ordersUrl: pos.ordersUrl, cancelUrl: pos.cancelUrl });
  webhook = await system.webhookUrl('nord');
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  process.stdout.write(
    `Medusa: installed and compiled in ${seconds(installed - began)}, running with a menu after ${seconds(performance.now() - installed)} more\n`,
  );
}, 600_000);

afterAll(async () => {
  await medusa?.stop();
  await system?.stop();
  await Promise.all([way?.stop(), pos?.stop(), postgres?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

/** Waits for an order's ticket at the POS. */
async function ticketOf(id: string): Promise<Omit<Ticket, 'order'> & { order: KitchenOrder }> {
  const ticket = await until(() => pos.tickets.find(({ serviceOrderId }) => serviceOrderId === id));
  return { ...ticket, order: ticket.order as unknown as KitchenOrder };
}

/** Waits until Medusa has what a status says. */
async function untilSaid(id: string, said: Record<string, unknown>): Promise<AdminOrder> {
  let order = await shop.order(id);
  await until(async () => {
    const { expediter = {} } = order.metadata;
    if (Object.entries(said).every(([name, value]) => expediter[name] === value)) return true;
    await sleep(POLL_MS);
    order = await shop.order(id);
    return false;
  }).catch(() => expect(order.metadata.expediter).toMatchObject(said));
  return order;
}

async function report(id: string, ...statuses: string[]): Promise<void> {
  for (const status of statuses) {
    const answer = await pos.sendStatus(webhook, { serviceOrderId: id, status });
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
  }
}

/** Takes the money of an order. @returns the payment's id */
async function capture(id: string): Promise<string> {
  const payment = (await shop.order(id)).payment_collections[0]?.payments[0]?.id ?? expect.unreachable(id);
  await shop.admin(`payments/${payment}/capture`, {});
  return payment;
}

type MedusaSums = Pick<AdminOrder, 'currency_code' | 'total' | 'tax_total' | 'credit_line_total'>;

/** That the ticket's amounts are whole minor units which add up to what Medusa says, which has fractions of a cent. */
function expectSums({ order }: { order: KitchenOrder }, placed: MedusaSums): void {
  const unit = placed.currency_code === 'jpy' ? 1 : 100;
  const { money, items, discounts = [], fees = [], taxes = [] } = order;
  const sum = (parts: readonly { amount: number }[]): number => parts.reduce((all, { amount }) => all + amount, 0);
  expect(money.currency).toBe(placed.currency_code.toUpperCase());
  expect(money.pricesIncludeTax).toBe(placed.currency_code !== 'usd');
  // Half a cent is rounded up, as Medusa's payment by Stripe does. In binary, 1.245 * 100 is below 124.5.
  const exact = Number(((placed.total + placed.credit_line_total) * unit).toFixed(6));
  expect(money.total).toBe(Math.round(exact));
  expect(items.reduce((all, { unitPrice = 0, quantity }) => all + unitPrice * quantity, 0)).toBe(money.subtotal);
  expect(sum(discounts)).toBe(money.discount ?? 0);
  expect(sum(fees)).toBe(money.fee);
  expect(sum(taxes)).toBe(money.tax);
  const onTop = money.pricesIncludeTax ? 0 : money.tax;
  expect(money.subtotal - (money.discount ?? 0) + money.fee + onTop).toBe(money.total);
  expect(Math.abs(money.tax - placed.tax_total * unit)).toBeLessThan(1);
}

describe("an order of Medusa's checkout", () => {
  it('is cooked, and every status changes its fulfillment', async () => {
    const wanted_at = new Date(Date.now() + 3_600_000).toISOString();
    const id = await shop.checkOut({
      codes: ['TEN'],
      notes: 'no onions',
      metadata: { wanted_at, notes: 'ring twice' },
    });
    const ticket = await ticketOf(id);
    expectSums(ticket, await shop.order(id));
    expect(ticket.order).toMatchObject({
      fulfillment: { type: 'delivery', requestedAt: wanted_at, destination: { line1: 'Torstraße 1', country: 'DE' } },
      member: { id, name: 'Ada Lovelace', email: 'ada@example.com', phone: '+493012345678' },
      notes: 'ring twice',
      discounts: [{ name: 'TEN', amount: 351 }],
      fees: [{ name: 'Courier', amount: 390 }],
      money: { subtotal: 3510, tax: 310, tip: 0, total: 3549 },
    });
    expect(ticket.order.items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ serviceItemId: 'burger', name: 'Classic Burger, Regular', notes: 'no onions' }),
        expect.objectContaining({ serviceItemId: 'fries', name: 'Fries', unitPrice: 450 }),
      ]),
    );

    const { callOutCode } = ticket.order;
    expect(await untilSaid(id, { memberState: 'sent', callOutCode })).toMatchObject({
      fulfillment_status: 'not_fulfilled',
    });
    await report(id, 'IN_PROGRESS');
    expect(await untilSaid(id, { memberState: 'preparing' })).toMatchObject({ fulfillment_status: 'fulfilled' });
    await report(id, 'READY');
    const trackingUrl = 'https://courier.example.com/4711';
    await post(webhook, statusWebhook({ serviceOrderId: id, status: 'EN_ROUTE', trackingUrl }));
    expect(await untilSaid(id, { memberState: 'out_for_delivery' })).toMatchObject({
      fulfillment_status: 'shipped',
      fulfillments: [{ labels: [{ tracking_url: trackingUrl }] }],
    });
    await report(id, 'COMPLETED');
    const delivered = await untilSaid(id, { memberState: 'delivered', problem: null });
    expect(delivered).toMatchObject({ status: 'pending', fulfillment_status: 'delivered', metadata: { wanted_at } });
  });

  const GUESTS: [string, Basket, object][] = [
    ['without a telephone number', { phone: null }, { money: { total: 3900, tax: 337 } }],
    [
      'in USD, without the tax in the prices',
      { currency: 'usd', codes: ['TEN'] },
      { money: { subtotal: 3622, total: 4012, tax: 327 } },
    ],
    ['in JPY', { currency: 'jpy', codes: ['TEN'] }, { money: { subtotal: 3710, total: 3689 } }],
    [
      'with a discount of 100 %',
      { codes: ['FREE', 'FREESHIP'] },
      { money: { subtotal: 3510, discount: 3510, fee: 0, tax: 0, total: 0 } },
    ],
    ['to be picked up', { way: 'pickup' }, { fulfillment: { type: 'pickup' }, money: { fee: 0, total: 3510 } }],
  ];
  it.each(GUESTS)('of a guest %s has the same amounts on its ticket', async (_, basket, expected) => {
    const id = await shop.checkOut(basket);
    const ticket = await ticketOf(id);
    expectSums(ticket, await shop.order(id));
    expect(ticket.order).toMatchObject(expected);
    if (basket.phone === null) expect(ticket.order.member).not.toHaveProperty('phone');
    if (basket.way !== 'pickup') return;
    await report(id, 'COMPLETED');
    expect(await untilSaid(id, { memberState: 'picked_up', problem: null })).toMatchObject({
      fulfillment_status: 'delivered',
    });
  });
});

describe("an order with Medusa's own arithmetic", () => {
  const RATES = [0, 7, 8, 8.875, 19];
  const rate = fc.constantFrom(...RATES);
  const percent = fc.constantFrom(0, 0, 10, 33, 50, 100);
  const baskets = fc.record({
    currency: fc.constantFrom('eur', 'usd', 'jpy'),
    lines: fc.array(
      fc.record({ price: fc.integer({ min: 1, max: 9_999 }), quantity: fc.integer({ min: 1, max: 9 }), rate, percent }),
      {
        minLength: 1,
        maxLength: 8,
      },
    ),
    way: fc.record({ price: fc.integer({ min: 0, max: 999 }), rate, percent }),
  });

  it(`keeps its amounts in ${RUNS} random baskets`, () => {
    const { decorateCartTotals } = createRequire(join(server, 'package.json'))('@medusajs/framework/utils') as {
      decorateCartTotals(cart: object): MedusaSums;
    };
    const check = ({
      currency,
      lines,
      way,
    }: typeof baskets extends fc.Arbitrary<infer Basket> ? Basket : never): void => {
      const unit = currency === 'jpy' ? 1 : 100;
      const is_tax_inclusive = currency !== 'usd';
      const taxed = (price: number, quantity: number, { rate, percent }: { rate: number; percent: number }) => ({
        is_tax_inclusive,
        tax_lines: rate === 0 ? [] : [{ rate, code: `T${rate}`, description: null }],
        // A discount is without the tax, as Medusa stores it.
        adjustments:
          percent === 0
            ? []
            : [
                {
                  code: `P${percent}`,
                  amount: ((price / unit) * quantity * percent) / (is_tax_inclusive ? 100 + rate : 100),
                },
              ],
      });
      const cart = {
        ...SAMPLE,
        currency_code: currency,
        items: lines.map((line, nth) => ({
          ...SAMPLE_ITEM,
          id: `item_${nth}`,
          quantity: line.quantity,
          unit_price: line.price / unit,
          ...taxed(line.price, line.quantity, line),
        })),
        shipping_methods: [{ ...SAMPLE_WAY, amount: way.price / unit, ...taxed(way.price, 1, way) }],
        credit_lines: [],
      };
      const placed = JSON.parse(JSON.stringify(decorateCartTotals(cart))) as MedusaOrder & MedusaSums;
      const { order } = readCanonicalOrder(toCanonicalOrder({ order: placed }), { serviceOrderId: SAMPLE.id });
      expectSums({ order }, placed);
    };
    fc.assert(fc.property(baskets, check), { seed: SEED, numRuns: RUNS });
  });
});

describe('an order', () => {
  it('that staff change and then cancel is cancelled at the POS, and Medusa hears of it', async () => {
    const id = await shop.checkOut();
    const ticket = await ticketOf(id);
    await shop.edit(id, { quantities: [['Classic Burger', 1]], more: [['fries', 1]] });
    const [{ changes } = {}] = await until(async () => {
      const rows = await system.query('SELECT changes FROM order_changes WHERE service_order_id = $1', [id]);
      return rows.length > 0 && rows;
    });
    expect(await untilSaid(id, { change: 'not_applied' })).toMatchObject({ total: 30.6 });
    expect(changes).toEqual(
      expect.arrayContaining([
        {
          path: 'items',
          was: ticket.order.items,
          is: expect.arrayContaining([expect.objectContaining({ quantity: 1 })]),
        },
        { path: 'money.total', was: 3900, is: 3060 },
      ]),
    );

    await shop.admin(`orders/${id}/cancel`, {});
    await untilSaid(id, { memberState: 'cancelled', problem: null });
    expect(pos.tickets.find(({ serviceOrderId }) => serviceOrderId === id)?.cancelled).toBeDefined();
  });

  it('that was part-refunded costs as much as before, and continues', async () => {
    const id = await shop.checkOut();
    const ticket = await ticketOf(id);
    await shop.admin(`payments/${await capture(id)}/refund`, { amount: 5.25 });
    expect(await system.signal(id)).toBe(204);
    await until(
      async () => (await system.query('SELECT 1 FROM refreshes WHERE service_order_id = $1', [id])).length === 0,
    );
    const refunded = await shop.order(id);
    expect(refunded).toMatchObject({ payment_status: 'partially_refunded', total: 33.75, credit_line_total: 5.25 });
    expectSums(ticket, refunded);
    await report(id, 'COMPLETED');
    await untilSaid(id, { memberState: 'delivered' });
    expect(await system.query('SELECT 1 FROM order_changes WHERE service_order_id = $1', [id])).toEqual([]);
  });

  it('that staff cancel after it is ready is made, and they see that the kitchen refused', async () => {
    const id = await shop.checkOut();
    await ticketOf(id);
    await report(id, 'READY');
    // Medusa cancels no order with a fulfillment.
    const { fulfillments } = await untilSaid(id, { memberState: 'ready_for_delivery' });
    await shop.admin(`orders/${id}/fulfillments/${fulfillments[0]?.id}/cancel`, {});
    await shop.admin(`orders/${id}/cancel`, {});
    await untilSaid(id, { memberState: 'ready_for_delivery', cancellation: 'refused' });
    await report(id, 'COMPLETED');
    expect(await untilSaid(id, { memberState: 'delivered' })).toMatchObject({ status: 'canceled' });
  });
});

describe('an order that the kitchen', () => {
  it.each([
    ['refuses', 'CANCELLED', 'cancelled'],
    ['fails to make', 'FAILED', 'failed'],
  ])('%s is cancelled in Medusa, which gives the money back', async (_, status, memberState) => {
    const id = await shop.checkOut();
    await ticketOf(id);
    await capture(id);
    await report(id, 'IN_PROGRESS', status);
    const order = await untilSaid(id, { memberState, problem: null });
    expect(order).toMatchObject({ status: 'canceled', payment_status: 'refunded' });
  });

  it('cancels after it was shipped stays shipped, and its metadata say what Medusa refuses', async () => {
    const id = await shop.checkOut();
    await ticketOf(id);
    await report(id, 'EN_ROUTE', 'CANCELLED');
    const order = await untilSaid(id, { memberState: 'cancelled' });
    expect(order).toMatchObject({ status: 'pending', fulfillment_status: 'shipped' });
    expect(order.metadata.expediter?.['problem']).toMatch(/already been shipped/);
  });
});

describe('Medusa', () => {
  it('refuses a status without a signature, and drops a repeat', async () => {
    const id = await shop.checkOut();
    await ticketOf(id);
    const { metadata } = await untilSaid(id, { memberState: 'sent' });
    const data = { serviceOrderId: id, sequence: 99, memberState: 'cancelled' };
    const send = async (body: string, signature: string): Promise<number> => {
      const headers = { 'webhook-id': 'm1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) };
      const response = await fetch(statusUrl, {
        method: 'POST',
        headers: { ...headers, 'webhook-signature': signature, 'content-type': 'application/cloudevents+json' },
        body,
      });
      return response.status;
    };
    const signed = (body: string): string => new Webhook(STATUS_WEBHOOK_SECRET).sign('m1', new Date(), body);
    const type = 'expediter.order.status-changed.v1';
    expect(await send(JSON.stringify({ type, data }), signed('another body'))).toBe(401);
    const repeat = JSON.stringify({ type, data: { ...data, sequence: 1 } });
    expect(await send(repeat, signed(repeat))).toBe(204);
    expect(await shop.order(id)).toMatchObject({ status: 'pending', metadata });
  });

  it('that dies before its signal signals when it is back, and then gets what it has missed', async () => {
    const known = await shop.checkOut();
    await ticketOf(known);
    isCut = true;
    const id = await shop.checkOut();
    await until(() => cutOff.includes(id));
    await medusa.kill();
    await report(known, 'IN_PROGRESS', 'READY');
    isCut = false;
    medusa = await startMedusa();
    expectSums(await ticketOf(id), await shop.order(id));
    expect(await untilSaid(known, { memberState: 'ready_for_delivery' })).toMatchObject({
      fulfillment_status: 'fulfilled',
    });
  });

  it('whose API key was replaced is asked by the new one, which is in the file of the token', async () => {
    const next = await shop.issueKey();
    await writeFile(tokenFile, next.token);
    await shop.admin(`api-keys/${key.id}/revoke`, { revoke_in: 0 });
    const id = await shop.checkOut();
    expectSums(await ticketOf(id), await shop.order(id));
  });
});
