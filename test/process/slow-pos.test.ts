import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Provider } from '../../src/core/domain/provider.ts';
import { standard } from '../../src/providers/standard/index.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { startToast } from '../../world/pos/toast/start-toast.ts';
import { findable } from '../../world/pos/pos-without-deduplication.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const slow = standard as Provider;
/** Providers that differ in how long they are waited for. */
const hasty: Provider = { ...slow, integration: 'hasty', attemptWithinS: 0.3 };
const patient: Provider = { ...slow, integration: 'patient', attemptWithinS: 100, deduplicatesForS: 3_600 };
/** One that knows its repeats, and can be asked as well. */
const knowing: Provider = { ...slow, integration: 'knowing', findOrder: (findable as Provider).findOrder! };

let system: System;
let pos: Pos;
let toast: Simulator;
/** Sends what hangs its answers. */
let release: () => void;

beforeAll(async () => {
  [system, pos, toast] = await Promise.all([
    startSystem({ providers: [hasty, patient, knowing], processes: 2, jobs: 'all' }),
    startPos(),
    startToast(),
  ]);
  for (const integration of ['standard', 'hasty', 'patient', 'knowing']) {
    await system.addLocation(integration, { ordersUrl: pos.ordersUrl, unsigned: true }, integration);
  }
  await system.addLocation('toast', toast.settings, 'toast');
});
afterEach(() => {
  vi.restoreAllMocks();
  pos.behave = undefined;
  pos.onTicket = undefined;
  toast.behave = undefined;
  release?.();
});
afterAll(() => Promise.all([system?.stop(), pos?.stop(), toast?.stop()]));

const attempts = (serviceOrderId: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [serviceOrderId]);
const tickets = (serviceOrderId: string): number =>
  pos.tickets.filter((ticket) => ticket.serviceOrderId === serviceOrderId).length;
const reaches = (serviceOrderId: string, about: Record<string, unknown>): Promise<Record<string, unknown>> =>
  until(async () => {
    const placement = await system.placement(serviceOrderId);
    const is = Object.entries(about).every(([column, value]) => placement?.[column] === value);
    return is && placement;
  });
const change = (serviceOrderId: string, set: string): Promise<unknown> =>
  system.query(`UPDATE placements SET ${set} WHERE service_order_id = $1`, [serviceOrderId]);
/** The POS makes its tickets, and answers none before `release`. */
function hold(): void {
  const { promise, resolve } = Promise.withResolvers<void>();
  release = resolve;
  pos.onTicket = () => promise;
}
/** An order whose call is under way. */
async function calling(locationId: string): Promise<string> {
  hold();
  const { serviceOrderId } = await system.placeOrder({ locationId });
  await until(() => tickets(serviceOrderId) === 1);
  return serviceOrderId;
}

describe('a POS that answers slowly', () => {
  it('gets exactly as much time as its provider allows', async () => {
    pos.onTicket = () => sleep(800);
    const [impatient, waited] = await Promise.all([
      system.placeOrder({ locationId: 'hasty' }),
      system.placeOrder({ locationId: 'patient' }),
    ]);
    await Promise.all([impatient, waited].map((order) => reaches(order.serviceOrderId, { state: 'sent' })));
    expect(await attempts(waited.serviceOrderId)).toMatchObject([{ outcome: 'placed' }]);
    expect(await attempts(impatient.serviceOrderId)).toMatchObject([
      { outcome: 'TryAgain', error: 'no answer in 0.3 s' },
      { outcome: 'placed' },
    ]);
    expect(tickets(impatient.serviceOrderId)).toBe(1);
  });

  it.each([
    ['standard', 14_000, 15_000],
    ['patient', 99_000, 100_000],
  ])('with the integration %s gets at least %i ms, and at most %i ms', async (locationId, yet, limit) => {
    const serviceOrderId = await calling(locationId);
    const { now } = Date;
    let ahead = yet;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
    await sleep(600);
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'started' }]);
    ahead = limit;
    await until(async () => (await attempts(serviceOrderId))[0]?.['outcome'] === 'TryAgain');
    expect((await attempts(serviceOrderId)).slice(0, 1)).toMatchObject([{ error: `no answer in ${limit / 1000} s` }]);
  });

  it('gets no repeat of an order that it may have forgotten', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'patient' });
    await until(async () => (await attempts(serviceOrderId)).length === 2);
    await reaches(serviceOrderId, { lease_until: null });
    await system.query(
      `UPDATE placement_attempts SET started_at = started_at - interval '3500 s' WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    pos.behave = undefined;
    await change(serviceOrderId, 'next_attempt_at = now()');
    expect(await reaches(serviceOrderId, { next_attempt_at: Infinity })).toMatchObject({
      cause: { code: 'repeat_unrecognised' },
    });
    expect(await attempts(serviceOrderId)).toHaveLength(2);
  });
});

describe('an order that may be at a POS', () => {
  const LATE = `deadline_at = now() - interval '1 s', next_attempt_at = now()`;

  it('is sent if a lookup at Toast finds it after its deadline', async () => {
    toast.behave = () => (toast.requests === 1 ? 'drop-answer' : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'toast' });
    await until(async () => (await attempts(serviceOrderId)).length === 2);
    await reaches(serviceOrderId, { state: 'in_doubt', lease_until: null });
    await change(serviceOrderId, LATE);
    expect(await reaches(serviceOrderId, { state: 'sent' })).toMatchObject({
      provider_order_id: toast.tickets[0]?.providerOrderId,
    });
    expect((await attempts(serviceOrderId)).at(-1)).toMatchObject({ call: 'findOrder', outcome: 'placed' });
    expect(toast.tickets).toHaveLength(1);
  });

  it('stays in doubt after its deadline if a lookup does not find it, until a person answers', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status: 504 } : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'knowing' });
    await until(async () => (await attempts(serviceOrderId)).length === 2);
    await reaches(serviceOrderId, { state: 'in_doubt', lease_until: null });
    await change(serviceOrderId, LATE);
    await until(async () => (await attempts(serviceOrderId)).at(-1)?.['outcome'] === 'absent');
    expect(await reaches(serviceOrderId, { lease_until: null })).toMatchObject({ cause: { code: 'order_absent_yet' } });
    await change(serviceOrderId, `request_ended_at = request_ended_at - interval '60 s', next_attempt_at = now()`);
    expect(await reaches(serviceOrderId, { next_attempt_at: Infinity })).toMatchObject({
      state: 'in_doubt',
      cause: { code: 'deadline_passed_in_doubt' },
    });
    expect(tickets(serviceOrderId)).toBe(0);
  });
});
