import { expect, it } from 'vitest';
import { PROCESSOR, processorMsAt, type Plan } from '../../src/cli/plan-installation.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';

const planOf = (locations: number, env: Record<string, string> = {}, ...more: string[]): Promise<Plan> =>
  runJson(env, ['plan', '--locations', String(locations), '--orders-per-location', '100', ...more]);

it('expediter plan computes processes, disk and cost for ten thousand locations', async () => {
  const plan = await planOf(10_000);
  expect(plan).toMatchObject({ ordersPerDay: 1_000_000, processes: 2, postgres: { machine: 'db-custom-2-7680' } });
  // A seventh of a day's orders in the busiest hour.
  expect(plan.perSecond.orders).toBeCloseTo(39.7, 1);
  expect(plan.perSecond.webhooks).toBeCloseTo(5 * plan.perSecond.orders);
  // As docs/scaling.md says.
  expect([plan.disk.afterAYear, plan.disk.afterFive].map(Math.round)).toEqual([732, 848]);
  const { total, ...parts } = plan.money;
  expect(total).toBeCloseTo(Object.values(parts).reduce((sum, each) => sum + each));
});

it('expediter plan adds one process to the processes that the orders need', async () => {
  const plans = await Promise.all([1, 100, 10_000, 100_000, 1_000_000].map((locations) => planOf(locations)));
  for (const [nth, plan] of plans.slice(1).entries()) {
    const before = plans[nth] ?? plan;
    expect(plan.cores.service).toBeGreaterThanOrEqual(before.cores.service);
    expect(plan.processes).toBeGreaterThanOrEqual(before.processes);
    expect(plan.money.total).toBeGreaterThanOrEqual(before.money.total);
    // If one process dies, each of the others has a bit more than its part.
    const { node } = PROCESSOR;
    expect(processorMsAt(node, plan.perSecond.orders / (plan.processes - 1))).toBeLessThanOrEqual(600);
    expect(plan.cores.service).toBeCloseTo(
      (plan.processes * processorMsAt(node, plan.perSecond.orders / plan.processes)) / 1_000,
    );
    expect(plan.cores.postgres / plan.postgres.vcpus).toBeLessThan(0.6);
  }
  expect(plans[0]?.processes).toBe(2);
  expect(plans.map(({ doubts }) => doubts.length)).toEqual([0, 0, 0, 1, 2]);
});

it("expediter plan uses the service's variables and --busiest-hour", async () => {
  const usual = await planOf(10_000);
  const more = await planOf(10_000, { WEBHOOK_RETENTION_DAYS: '28', POOL_SIZE: '20' });
  // 14 days more of 5 million webhooks of 1,710 bytes.
  expect(more.disk.afterAYear - usual.disk.afterAYear).toBeCloseTo(119.7);
  expect(more.postgres.connections - usual.postgres.connections).toBe(2 * 2 * 10);
  expect((await planOf(10_000, { HISTORY_DAYS: '100' })).disk.afterFive).toBeLessThan(usual.disk.afterFive / 1.5);
  const even = await planOf(10_000, {}, '--busiest-hour', '0.05');
  expect(even.perSecond.orders).toBeCloseTo((usual.perSecond.orders * 0.05) / 0.143);
});

it.each([
  [['--locations', '0'], /'--locations <n>' argument '0' is invalid. Use a number above 0/],
  [['--locations', 'many'], /'--locations <n>' argument 'many' is invalid. Use a whole number/],
  [['--locations', '0.5'], /'--locations <n>' argument '0.5' is invalid. Use a whole number/],
  [['--locations', '1', '--busiest-hour', '2'], /argument '2' is invalid. Use a share from 0.05 to 1, such/],
  [['--locations', '1'], /required option '--orders-per-location <n>' not specified/],
])('expediter plan exits 2 and explains what is wrong with %j', async (args, error) => {
  expect(await runCli({}, ['plan', ...args])).toEqual({ code: 2, out: '', error: expect.stringMatching(error) });
});

it('expediter plan prints rates and disk sizes as text', async () => {
  const { out } = await runCli({}, ['plan', '--locations', '10000', '--orders-per-location', '100']);
  expect(out).toContain('39.7 orders, 198.6 webhooks and 238.3 live messages a second');
  expect(out).toContain('732 GB after a year, 848 GB after five; provision 1,212 GB');
  const { out: help } = await runCli({}, ['plan', '--help']);
  expect(help.match(/\(default: 0\.143\)/g)).toHaveLength(1);
});
