import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../world/processes/until.ts';
import { startVendors, type Vendors } from './start-vendors.ts';

describe('the open circuit of a vendor whose POS is silent everywhere', () => {
  let vendors: Vendors;

  beforeAll(async () => {
    vendors = await startVendors();
  });
  afterEach(async () => {
    await vendors.wakeUp();
    await until(async () => {
      await vendors.makeDue();
      await sleep(100);
      return vendors.allSent();
    });
  });
  afterAll(() => vendors?.stop());

  /** Opens the circuit by refusals, which cost no time-out, and then lets all probes hang. */
  const open = async (prefix: string): Promise<void> => {
    const before = vendors.opens();
    vendors.silent.behave = () => ({ status: 503 });
    await vendors.openAt(prefix, 12, 2);
    // A location that has not failed yet is tried in addition to the probes.
    await until(
      async () =>
        (await vendors.count(
          `(SELECT DISTINCT location_id FROM placements JOIN placement_attempts USING (service_order_id)
            WHERE outcome = 'TryAgain' AND location_id LIKE '${prefix}-%') AS l`,
        )) === 12,
    );
    await until(async () => vendors.opens() > before && (await vendors.underWay()) === 0);
    vendors.silent.behave = () => 'hang';
    await vendors.makeDue();
    await until(async () => (await vendors.underWay()) === 4);
  };

  it('does not delay a location that has not failed, and its answer closes the circuit', async () => {
    const before = vendors.lines('circuit closed');
    await open('quiet');
    // The next one of a silent location waits, and says why.
    const { serviceOrderId } = await vendors.system.placeOrder({ locationId: 'quiet-0' });
    const waiting = await until(async () => {
      const placement = await vendors.system.placement(serviceOrderId);
      return placement?.['cause'] !== null && placement;
    });
    expect(waiting).toMatchObject({ state: 'waiting', attempts: 0, cause: { code: 'circuit_open' } });
    await until(() => vendors.sendsMeanwhile('neighbour'));
    expect(vendors.lines('circuit closed')).toBe(before + 1);
  });

  it('does not delay an order past its deadline, nor an order of a location with new settings', async () => {
    await open('late');
    await vendors.system.query(
      `UPDATE placements SET deadline_at = now() - interval '1 s', next_attempt_at = now()
       WHERE location_id LIKE 'late-%' AND finished_at IS NULL AND lease_id IS NULL`,
    );
    const late = (when: string): Promise<number> =>
      vendors.count(`placements WHERE deadline_at < now() AND next_attempt_at ${when}`);
    expect(await late(`< 'infinity'`)).toBeGreaterThan(4);
    await until(async () => (await late(`< 'infinity' AND finished_at IS NULL`)) === 0);
    // They may have a ticket.
    expect(await vendors.count('cancellations WHERE fails_with IS NOT NULL')).toBeGreaterThan(4);
    expect(await vendors.underWay()).toBeLessThanOrEqual(4);

    // An order that hangs would be in doubt at the POS before, and wait for an operator.
    const [idle] = await vendors.system.query(
      `SELECT location_id FROM placements WHERE location_id LIKE 'late-%'
       GROUP BY location_id HAVING bool_and(next_attempt_at = 'infinity') LIMIT 1`,
    );
    const locationId = String(idle?.['location_id']);
    await vendors.system.addLocation(locationId, { ordersUrl: vendors.pos.ordersUrl });
    const { serviceOrderId } = await vendors.system.placeOrder({ locationId });
    await until(() => vendors.pos.tickets.some((ticket) => ticket.serviceOrderId === serviceOrderId));
  });
});
