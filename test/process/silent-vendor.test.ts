import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../world/processes/until.ts';
import { startVendors, type Vendors } from './start-vendors.ts';

/** Between two looks at what takes seconds. */
const PAUSE_MS = 200;

let vendors: Vendors;

beforeAll(async () => {
  vendors = await startVendors();
});
afterAll(() => vendors?.stop());

it('a vendor whose POS is silent everywhere never delays the orders of other vendors', async () => {
  const { system, silent, openAt, count, opens, underWay, allSent, lines, sendsMeanwhile } = vendors;
  silent.behave = () => 'hang';
  // More than there are workers, and no more at first: the vendor is known to hang once a call has timed out.
  await openAt('hung', 240, 1);
  await until(async () => {
    await sleep(PAUSE_MS);
    return silent.requests >= 168 && (await count('placements WHERE location_id IS NULL')) === 0;
  });
  await until(() => sendsMeanwhile('other'));
  await Promise.all(Array.from({ length: 240 }, (_, nth) => system.placeOrder({ locationId: `hung-${nth}` })));

  await until(async () => {
    await sleep(PAUSE_MS);
    // Each location is called once before it counts as silent.
    return opens() === 1 && silent.requests >= 240 && (await underWay()) <= 4;
  });
  const requests = silent.requests;
  for (let each = 0; each < 20; each += 1) {
    await system.placeOrder({ locationId: `hung-${each}` });
    // Again, if the machine was so slow that the calls timed out first.
    await until(() => sendsMeanwhile('other'));
    expect(await underWay()).toBeLessThanOrEqual(4);
  }
  expect(silent.requests - requests).toBeLessThanOrEqual(8);

  silent.behave = undefined;
  await until(async () => {
    await sleep(PAUSE_MS);
    return allSent();
  });
  expect(lines('circuit closed')).toBe(1);
  expect(opens()).toBe(1);
  expect(silent.tickets).toHaveLength(500);
});
