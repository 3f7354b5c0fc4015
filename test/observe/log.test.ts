import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { fanOut } from '../../src/observe/start-observing.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { hurried } from '../../world/system/fixtures.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

type Line = Record<string, unknown>;

const TRACE = '0af7651916cd43dd8448eb211c80319c';
let system: System;
let pos: Pos;
let url: string;

beforeAll(async () => {
  [system, pos] = await Promise.all([startSystem({ stepped: 'all' }), startPos()]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  url = await system.webhookUrl('club-1');
});
afterEach(() => {
  pos.behave = undefined;
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

async function seeded(): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
  return serviceOrderId;
}

/** Signals an order, and tries to place it. */
async function place(about: Parameters<System['placeOrder']>[0] = {}): Promise<string> {
  const { serviceOrderId } = await system.placeOrder(about);
  await system.round('placements');
  return serviceOrderId;
}

/** The lines that an act leaves behind, once there is one with this message. */
async function linesAbout(message: string, action: () => Promise<unknown>): Promise<Line[]> {
  system.logged.length = 0;
  await action();
  return until(() => {
    const lines = system.logged.map((line) => JSON.parse(line) as Line).filter((line) => line['message'] === message);
    return lines.length > 0 && lines;
  });
}

describe('the log line of a webhook', () => {
  it('has its request, location, integration, webhook, order, outcome and time', async () => {
    const serviceOrderId = await seeded();
    let answer: Line = {};
    const lines = await linesAbout('webhook', async () => {
      ({ body: answer } = await post(url, statusWebhook({ serviceOrderId, status: 'READY' })));
    });
    expect(lines).toEqual([
      expect.objectContaining({
        severity: 'INFO',
        level: 30,
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        reqId: expect.stringMatching(/^[\w-]{8}-\d+$/),
        locationId: 'club-1',
        integration: 'standard',
        webhookId: answer['webhookId'],
        serviceOrderId,
        outcome: 'applied',
        milliseconds: expect.any(Number),
      }),
    ]);
    expect(system.logged.filter((line) => line.includes(serviceOrderId))).toHaveLength(1);
  });

  it('has the id of the order even if the webhook has only the POS id', async () => {
    const [serviceOrderId, providerOrderId] = [`order-${randomUUID()}`, `pos-${randomUUID()}`];
    await system.seedOrder({ serviceOrderId, locationId: 'club-1', providerOrderId });
    const [line] = await linesAbout('webhook', () => post(url, statusWebhook({ providerOrderId, status: 'READY' })));
    expect(line).toMatchObject({ serviceOrderId, outcome: 'applied' });
  });

  it('has no id of an unknown order, because the POS may send any text', async () => {
    await linesAbout('webhook', () => post(url, statusWebhook({ serviceOrderId: 'Ada Lovelace', status: 'READY' })));
    expect(system.logged.join('')).not.toContain('Ada');
  });

  it('has the trace of the request if the trace is valid', async () => {
    const tracedBy = async (headers: Record<string, string>): Promise<unknown> => {
      const [line] = await linesAbout('webhook', () => post(url, { eventType: 'x' }, headers));
      return line?.['trace'];
    };
    expect(await tracedBy({ traceparent: `00-${TRACE}-b7ad6b7169203331-01` })).toBe(TRACE);
    expect(await tracedBy({ 'x-cloud-trace-context': `${TRACE}/123;o=1` })).toBe(TRACE);
    for (const wrong of [`00-${TRACE}`, `00-${TRACE.toUpperCase()}-b7ad6b7169203331-01`, 'Ada', `${TRACE}Ada`]) {
      expect(await tracedBy({ traceparent: wrong })).toBeUndefined();
      expect(await tracedBy({ 'x-cloud-trace-context': `-${wrong}` })).toBeUndefined();
    }
    expect(system.logged.join('')).not.toContain('Ada');
  });

  it('is a warning with the reason if the webhook is dropped', async () => {
    const [line] = await linesAbout('webhook dropped', () => post(url, 'no JSON'));
    expect(line).toMatchObject({
      severity: 'WARNING',
      outcome: 'dropped',
      reason: expect.stringContaining('unreadable'),
      cause: { code: 'not_json', wanted: 'an object with eventType and order' },
    });
  });

  it('has no part of the URL if the webhook is refused with 401', async () => {
    const [line] = await linesAbout('webhook refused', () =>
      post(`${system.urls[0]}/webhook/made-up/somewhere?token=made-up-too`, {}),
    );
    expect(line).toMatchObject({
      outcome: 'unauthorized',
      reqId: expect.any(String),
      milliseconds: expect.any(Number),
    });
    expect(system.logged.join('')).not.toMatch(/made-up|somewhere/);
  });

  it('is written for only a few of many refused webhooks, with the number of the others', async () => {
    const wrong = `${system.urls[0]}/webhook/standard/club-1?token=wrong`;
    system.logged.length = 0;
    const began = performance.now();
    await Promise.all(Array.from({ length: 60 }, () => post(wrong, {})));
    const seconds = (performance.now() - began) / 1_000;
    const lines = (): Line[] => system.logged.map((line) => JSON.parse(line) as Line);
    const told = (): number => lines().filter(({ message }) => message === 'webhook refused').length;
    const beside = (): number => lines().reduce((sum, { more }) => sum + Number(more ?? 0), 0);
    await until(() => told() + beside() === 60);
    expect(told()).toBeLessThanOrEqual(20 * (1 + Math.ceil(seconds)));
  });

  it('is an error with its cause if the webhook is not committed', async () => {
    const blocker = await system.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE');
    const [line] = await linesAbout('webhook not committed', () => hurried(() => post(url, { eventType: 'x' })));
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(line).toMatchObject({
      severity: 'ERROR',
      outcome: 'not_committed',
      locationId: 'club-1',
      err: { message: 'was not committed in time' },
    });
  });
});

describe("the log lines of an order's signal and attempts", () => {
  it('have the order, location, integration, outcome and both times', async () => {
    let serviceOrderId = '';
    const [sent] = await linesAbout('order sent', async () => {
      serviceOrderId = await place();
    });
    expect(sent).toMatchObject({ serviceOrderId, locationId: 'club-1', integration: 'standard', outcome: 'sent' });
    expect(sent?.['milliseconds']).toBeGreaterThanOrEqual(0);
    expect(sent?.['sinceSignalMs']).toBeGreaterThanOrEqual(Number(sent?.['milliseconds']));
    const about = system.logged
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line['serviceOrderId'] === serviceOrderId);
    expect(about.map((line) => line['message'])).toEqual(['signal', 'order sent']);
    expect(about[0]).toMatchObject({ outcome: 'recorded', reqId: expect.any(String), messageId: '1' });
  });

  it('are also written for attempts that will be repeated', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status: 429 } : undefined);
    const [line] = await linesAbout('order not placed yet; it will be retried', place);
    expect(line).toMatchObject({
      outcome: 'waiting',
      integration: 'standard',
      problem: expect.stringContaining('429'),
      cause: { code: 'pos_busy', httpStatus: 429 },
    });
  });

  it('are one error for a held order, however often the order is tried', async () => {
    let serviceOrderId = '';
    const [line] = await linesAbout('order held: needs an operator', async () => {
      serviceOrderId = await place({ locationId: 'not-configured' });
    });
    expect(line).toMatchObject({
      severity: 'ERROR',
      outcome: 'held',
      problem: 'the location is not configured',
      cause: { code: 'no_location' },
    });
    await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [serviceOrderId]);
    await system.round('placements');
    const due = 'SELECT FROM placements WHERE service_order_id = $1 AND next_attempt_at <= now()';
    expect(await system.query(due, [serviceOrderId]), 'not yet tried').toEqual([]);
    expect(system.logged.filter((each) => each.includes('order held'))).toHaveLength(1);
  });

  it('have no member data', async () => {
    await linesAbout('order sent', () => place({ type: 'delivery' }));
    expect(system.logged.join('')).not.toMatch(/Ada|Lovelace|example\.com|3012345678|Lindenstra|terrace/);
  });
});

it('an observer that fails is reported once, and does not stop the other observers or the caller', () => {
  const [said, heard]: [string[], string[]] = [[], []];
  const { observe, add } = fanOut({ error: (_about, message) => void said.push(message) });
  add('broken', () => {
    throw new Error('broken');
  });
  add('sound', ({ what }) => void heard.push(what));
  observe({ what: 'claim', serviceOrderId: '1', dueAt: '' });
  observe({ what: 'claim', serviceOrderId: '2', dueAt: '' });
  expect(heard).toEqual(['claim', 'claim']);
  expect(said).toEqual(['a reader of events failed']);
});
