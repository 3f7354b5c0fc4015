import { expect, it } from 'vitest';
import type { Plan } from '../../src/cli/plan-installation.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';

const planOf = (locations: number, env: Record<string, string> = {}, ...more: string[]): Promise<Plan> =>
  runJson(env, ['plan', '--locations', String(locations), '--orders-per-location', '100', ...more]);

it('plans ten thousand locations from their number and their orders alone', async () => {
  const plan = await planOf(10_000);
  expect(plan).toMatchObject({ ordersPerDay: 1_000_000, processes: 2, postgres: { machine: 'db-custom-2-7680' } });
  // 15 % of a day's orders in the busiest hour.
  expect(plan.perSecond.orders).toBeCloseTo(41.7, 1);
  expect(plan.perSecond.webhooks).toBeCloseTo(5 * plan.perSecond.orders);
  // As the table of docs/scaling.md.
  expect([plan.disk.afterAYear, plan.disk.afterFive].map(Math.round)).toEqual([732, 848]);
  const { total, ...parts } = plan.money;
  expect(total).toBeCloseTo(Object.values(parts).reduce((sum, each) => sum + each));
});

it('plans more for more orders, and a process that may fail', async () => {
  const plans = await Promise.all([1, 100, 10_000, 100_000, 1_000_000].map((locations) => planOf(locations)));
  for (const [nth, plan] of plans.entries()) {
    const before = plans[nth - 1] ?? plan;
    expect(plan.cores.service).toBeGreaterThanOrEqual(before.cores.service);
    expect(plan.processes).toBeGreaterThanOrEqual(before.processes);
    expect(plan.money.total).toBeGreaterThanOrEqual(before.money.total);
    // One process does not use more than one core.
    expect(plan.cores.service / (plan.processes - 1)).toBeLessThan(0.7);
    expect(plan.cores.postgres / plan.postgres.vcpus).toBeLessThan(0.6);
  }
  expect(plans[0]?.processes).toBe(2);
  expect(plans.at(-1)?.processes).toBeGreaterThan(10);
});

it('goes by the environment of the service, and the busiest hour', async () => {
  const usual = await planOf(10_000);
  const more = await planOf(10_000, { WEBHOOK_RETENTION_DAYS: '28', POOL_SIZE: '20' });
  // 14 days more of 5 million webhooks of 1,710 bytes.
  expect(more.disk.afterAYear - usual.disk.afterAYear).toBeCloseTo(119.7);
  expect(more.postgres.connections - usual.postgres.connections).toBe(3 * 10);
  expect((await planOf(10_000, { HISTORY_DAYS: '100' })).disk.afterFive).toBeLessThan(usual.disk.afterFive / 1.5);
  expect((await planOf(10_000, { LIVE_ORDER: 'sequence' })).traffic.pubsub).toBeLessThan(usual.traffic.pubsub);
  const even = await planOf(10_000, {}, '--busiest-hour', '0.05');
  expect(even.perSecond.orders).toBeCloseTo(usual.perSecond.orders / 3);
});

it.each([
  [['--locations', '0'], /'--locations <n>' argument '0' is invalid. Use a number above 0/],
  [['--locations', 'many'], /'--locations <n>' argument 'many' is invalid. Use a number above 0/],
  [['--locations', '1', '--busiest-hour', '2'], /argument '2' is invalid. Use a share from 0.05 to 1/],
  [['--locations', '1'], /required option '--orders-per-location <n>' not specified/],
])('says what is wrong with %j', async (args, error) => {
  expect(await runCli({}, ['plan', ...args])).toEqual({ code: 2, out: '', error: expect.stringMatching(error) });
});

it('says in a text what the JSON says', async () => {
  const { out } = await runCli({}, ['plan', '--locations', '10000', '--orders-per-location', '100']);
  expect(out).toContain('41.7 orders, 208.3 webhooks and 250.0 live messages a second');
  expect(out).toContain('732 GB after a year, 848 GB after five; provision 1,212 GB');
});
