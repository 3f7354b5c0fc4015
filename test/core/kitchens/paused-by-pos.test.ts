import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KitchenReport, TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { applyWebhooks } from '../../../src/core/statuses/apply-webhooks.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { startDeliverect, type Deliverect } from '../../../world/pos/deliverect/start-deliverect.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { runCli } from '../../support/run-cli.ts';
import { sendJson, serveHttp } from '../../../world/network/serve-http.ts';
import { post, startSystem, type System } from '../../../world/system/start-system.ts';
import { translatedWebhook, type Said } from '../../support/translated-webhook.ts';

const HOUR_MS = 3_600_000;

let system: System;
let operator: Operator;
let pos: Deliverect;
let locationId: string;
let webhook: string;
let nth = 0;

beforeAll(async () => {
  const PUBLIC_URL = 'https://expediter.test';
  system = await startSystem({ env: { OPERATOR_TOKEN, PUBLIC_URL }, stepped: ['placements'] });
  operator = await askOperator(system.urls[0] ?? '');
});
afterAll(() => system?.stop());

/** Each test has a location, whose channel link is activated by the answer that `provider connect` prints. */
beforeEach(async () => {
  nth += 1;
  locationId = `kitchen-${nth}`;
  pos = await startDeliverect();
  await system.addLocation(locationId, pos.settings, 'deliverect');
  const { out } = await runCli(system.env, ['provider', 'connect', locationId]);
  const answer = (/\{.*\}/.exec(out)?.[0] ?? '').replaceAll('https://expediter.test', system.urls[0] ?? '');
  const registration = await serveHttp(async (_request, response) => sendJson(response, 200, JSON.parse(answer)));
  await pos.activate(registration.url);
  await registration.stop();
  webhook = (JSON.parse(answer) as { busyModeURL: string }).busyModeURL;
});
afterEach(() => pos.stop());

const busy = (status: string): ReturnType<Deliverect['tell']> => pos.tell('busyModeURL', { status });
async function shown(): Promise<{ pausedAt: string | null; pausedUntil: string | null }> {
  return (await operator.get(`/locations/${locationId}`)).body as {
    pausedAt: string | null;
    pausedUntil: string | null;
  };
}
/** Tries what is due. @returns the state of an order */
async function tried(id: string): Promise<unknown> {
  await system.round('placements');
  return (await system.placement(id))?.['state'];
}
async function placed(wanted: 'held' | 'sent'): Promise<string> {
  const { serviceOrderId } = await system.placeOrder({ locationId });
  expect(await tried(serviceOrderId)).toBe(wanted);
  return serviceOrderId;
}
const endPauses = (): Promise<unknown> => system.round('end of pauses');
async function endNow(): Promise<void> {
  await system.query('UPDATE locations SET pos_paused_until = now() WHERE location_id = $1', [locationId]);
  await endPauses();
}
async function mustBeOpen(): Promise<void> {
  await endPauses();
  expect(await shown()).toMatchObject({ pausedAt: null, pausedUntil: null });
}
const saidOf = (action: string): Record<string, unknown>[] =>
  system.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['action'] === action && line['locationId'] === locationId);
const replay = async (body: unknown, about = {}): Promise<Record<string, unknown>> =>
  (await operator.post(`/webhooks/${(body as { webhookId: string }).webhookId}/replay`, about)).body;

describe("the POS's busy mode", () => {
  it('makes orders wait until the busy mode ends, and the wait does not count for their deadline', async () => {
    const before = Date.now();
    expect(await busy('PAUSED')).toMatchObject({ status: 200, body: { status: 'PAUSED', outcome: 'applied' } });
    const { pausedUntil } = await shown();
    expect(Date.parse(pausedUntil ?? '') - before).toBeGreaterThan(4 * HOUR_MS - 1_000);
    expect(Date.parse(pausedUntil ?? '') - before).toBeLessThan(4 * HOUR_MS + 60_000);

    const serviceOrderId = await placed('held');
    expect(await system.placement(serviceOrderId)).toMatchObject({
      cause: { code: 'location_paused_by_pos', until: pausedUntil },
      problem: `the location is paused by its POS until ${pausedUntil}`,
    });
    expect(pos.requests).toBe(0);
    // It waits for nobody's help, so nobody is called.
    const said = system.logged.find((line) => line.includes(serviceOrderId) && line.includes('held'));
    expect(JSON.parse(said ?? '')).toMatchObject({
      severity: 'INFO',
      message: 'order waits: its POS has paused the location',
    });
    // Two hours pass.
    await system.query(
      `UPDATE placements SET deadline_at = deadline_at - interval '2 h', signalled_at = signalled_at - interval '2 h'
       WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    await system.query(`UPDATE locations SET pos_paused_at = now() - interval '2 h' WHERE location_id = $1`, [
      locationId,
    ]);

    expect(await busy('ONLINE')).toMatchObject({ status: 200, body: { status: 'ONLINE', outcome: 'applied' } });
    await mustBeOpen();
    expect(await tried(serviceOrderId)).toBe('sent');
    expect(pos.tickets.map((ticket) => ticket.serviceOrderId)).toEqual([serviceOrderId]);
    const message = 'a pause of a location began or ended';
    expect(saidOf('pause')).toEqual([
      expect.objectContaining({ by: 'deliverect', until: pausedUntil, webhookId: expect.any(String), message }),
    ]);
    expect(saidOf('resume')).toEqual([expect.objectContaining({ by: 'deliverect', message })]);
  });

  it('ends automatically if the POS does not report that the kitchen is open again', async () => {
    await busy('PAUSED');
    const serviceOrderId = await placed('held');
    await endNow();
    expect(await tried(serviceOrderId)).toBe('sent');
    expect(await shown()).toMatchObject({ pausedAt: null, pausedUntil: null });
    expect(saidOf('resume')).toHaveLength(1);
  });

  it('does not pause the location if the POS only asks for more time for each order', async () => {
    await busy('PAUSED');
    expect(await pos.tell('busyModeURL', { status: 'BUSY', delay: 30 })).toMatchObject({
      status: 200,
      body: { status: 'BUSY', outcome: 'applied' },
    });
    await mustBeOpen();
  });
});

describe('pauses by an operator and by the POS', () => {
  it("the POS neither ends nor prolongs an operator's pause", async () => {
    await operator.post(`/locations/${locationId}/pause`);
    const { pausedAt } = await shown();
    await busy('PAUSED');
    expect(await shown()).toMatchObject({ pausedAt, pausedUntil: null });
    await busy('ONLINE');
    await endPauses();
    expect(await shown()).toMatchObject({ pausedAt, pausedUntil: null });
    expect(saidOf('resume')).toEqual([]);
  });

  it("an operator's pause stays when the POS's pause ends, and keeps the earlier of the two beginnings", async () => {
    await busy('PAUSED');
    const { pausedAt } = await shown();
    await operator.post(`/locations/${locationId}/pause`);
    await endNow();
    expect(await shown()).toMatchObject({ pausedAt, pausedUntil: null });
  });

  it("an operator's resume ends the POS's pause, and a replay of the POS's webhook does not begin the pause again", async () => {
    const { body } = await busy('PAUSED');
    const serviceOrderId = await placed('held');
    expect((await operator.post(`/locations/${locationId}/resume`)).body).toMatchObject({ paused: false });
    expect(await tried(serviceOrderId)).toBe('sent');
    expect(await replay(body)).toMatchObject({ outcome: 'stale' });
    expect(await shown()).toMatchObject({ pausedAt: null });
  });
});

describe('a webhook about busy mode', () => {
  it('that is older than the last one changes nothing at its replay', async () => {
    const { body: paused } = await busy('PAUSED');
    const { body: online } = await busy('ONLINE');
    await mustBeOpen();
    expect(await replay(paused)).toMatchObject({ outcome: 'stale' });
    expect(await shown()).toMatchObject({ pausedAt: null });
    await busy('PAUSED');
    expect(await replay(online)).toMatchObject({ outcome: 'stale' });
    expect(await shown()).toMatchObject({ pausedAt: expect.any(String) });
  });

  it('that was dropped pauses the kitchen at its replay, for the four hours after its arrival', async () => {
    await system.addLocation(locationId, { ...pos.settings, hmacSecret: 'another' }, 'deliverect');
    const { body } = await busy('PAUSED');
    const { webhookId } = body as { webhookId: string };
    expect(body).toMatchObject({ outcome: 'dropped' });
    expect(body).not.toHaveProperty('status');
    expect(await shown()).toMatchObject({ pausedAt: null });
    await system.addLocation(locationId, pos.settings, 'deliverect');
    const came = Date.now() - 3 * HOUR_MS;
    await system.query('UPDATE webhooks SET first_received_at = $2 WHERE id = $1', [webhookId, new Date(came)]);

    const { body: dry } = await operator.get(`/webhooks/${webhookId}`);
    expect(dry).toMatchObject({ today: { events: [], pausedUntil: new Date(came + 4 * HOUR_MS).toISOString() } });
    expect(await replay(body, { dryRun: true })).toMatchObject({ outcome: 'applied', webhookId: null });
    expect(await shown()).toMatchObject({ pausedAt: null });
    expect(await replay(body)).toMatchObject({ outcome: 'applied' });
    expect(await shown()).toMatchObject({ pausedUntil: new Date(came + 4 * HOUR_MS).toISOString() });
  });

  it('whose pause is already over does not pause the kitchen at its replay', async () => {
    await system.addLocation(locationId, { ...pos.settings, hmacSecret: 'another' }, 'deliverect');
    const { body } = await busy('PAUSED');
    await system.addLocation(locationId, pos.settings, 'deliverect');
    await system.query(`UPDATE webhooks SET first_received_at = now() - interval '5 h' WHERE id = $1`, [
      (body as { webhookId: string }).webhookId,
    ]);
    expect(await replay(body)).toMatchObject({ outcome: 'stale' });
    expect(await shown()).toMatchObject({ pausedAt: null });
  });

  it('is stale if another webhook in its batch arrived later', async () => {
    const serviceOrderId = await placed('sent');
    const at = (ms: number): Date => new Date(Date.now() + ms);
    const told = (kitchen: KitchenReport | undefined, receivedAt: Date, ...events: Said[]): TranslatedWebhook =>
      translatedWebhook(events, { locationId, integration: 'deliverect', receivedAt, kitchen });
    const batch = [
      told({ state: 'open' }, at(-10)),
      told(undefined, at(0)),
      told({ state: 'closed', until: at(HOUR_MS) }, at(-20)),
      told(undefined, at(0), { status: 'received', serviceOrderId }),
    ];
    const { webhooks, events: outcomes } = await withClient(system.pool, (client) => applyWebhooks(client, batch));
    expect(webhooks).toEqual(['applied', 'ignored', 'stale', 'applied']);
    expect(outcomes).toEqual(['applied']);
    expect(await shown()).toMatchObject({ pausedAt: null });
    const stored = await system.query('SELECT outcome FROM webhooks WHERE id = ANY ($1::uuid[]) ORDER BY outcome', [
      batch.map(({ id }) => id),
    ]);
    expect(stored.map(({ outcome }) => outcome)).toEqual(['applied', 'applied', 'ignored', 'stale']);
  });
});

it('a webhook about busy mode without a valid signature is dropped, and does not pause the kitchen', async () => {
  const { headers, body } = pos.signAbout({ status: 'PAUSED' });
  const forged = { ...headers, 'x-server-authorization-hmac-sha256': '0'.repeat(64) };
  expect(await post(webhook, body, forged)).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
  expect(await shown()).toMatchObject({ pausedAt: null });
});

it('a webhook that we do not support is answered 200 as ignored, and does not pause the kitchen', async () => {
  const ignored = async (): Promise<number> => {
    const { text } = await operator.get('/metrics');
    return Number(
      /^expediter_webhooks_total\{integration="deliverect",outcome="ignored"\} (\d+)/m.exec(text)?.[1] ?? 0,
    );
  };
  const before = await ignored();
  const answers = [
    await pos.tell('menuUpdateURL', { menu: 'Dinner', menuId: '63ee', products: {}, snoozedProducts: {} }),
    await pos.tell('snoozeUnsnoozeURL', {
      operations: [{ action: 'snooze', data: { items: [{ plu: 'PIE1', snoozeEnd: '2026-03-24T22:21:54.955Z' }] } }],
    }),
    await pos.tell('paymentUpdateURL', { paymentId: 'pay-1', status: 'authorized' }),
    await pos.tell('busyModeURL', { status: 'PAUSED', channelLinkId: '5eabc11dec00019b' }),
    await pos.tell('busyModeURL', { status: 'CLOSED' }),
  ];
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { outcome: 'ignored' } });
  expect(await ignored()).toBe(before + answers.length);
  expect(await shown()).toMatchObject({ pausedAt: null });
});

it('a webhook with a new preparation time moves the order to the status in the webhook', async () => {
  const serviceOrderId = await placed('sent');
  const update = { channelOrderId: serviceOrderId, orderId: pos.tickets[0]?.providerOrderId, status: '20' };
  const answer = await pos.tell('updatePrepTimeURL', { ...update, pickupTime: '2026-07-18T05:55:30.015034Z' });
  expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
  expect(await system.order(serviceOrderId)).toMatchObject({ status: 'received' });
});

it('the answer to a stale webhook about busy mode has no `status`', async () => {
  await system.query(`UPDATE locations SET pos_said_at = now() + interval '1 h' WHERE location_id = $1`, [locationId]);
  const { status, body } = await busy('PAUSED');
  expect({ status, body }).toMatchObject({ status: 200, body: { outcome: 'stale' } });
  expect(body).not.toHaveProperty('status');
});

it('a location that has moved to another POS is not paused by the previous POS', async () => {
  await busy('PAUSED');
  await system.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
  await mustBeOpen();
});

it('`location show`, `location list` and `doctor` say until when the POS has paused the location', async () => {
  await busy('PAUSED');
  const { pausedUntil } = await shown();
  const said = pausedUntil?.replace('T', ' ').replace(/\.\d+Z/, 'Z');
  for (const args of [
    ['location', 'show', locationId],
    ['location', 'list'],
  ]) {
    const { out } = await runCli(system.env, args);
    expect(out).toMatch(new RegExp(`since .*, by its POS until ${said}`));
  }
  const { out } = await runCli(system.env, ['doctor', '--only', 'locations']);
  expect(out).toContain(`reaches its POS, and is paused by its POS until ${pausedUntil}`);
});
