import { findable } from '../../world/pos/pos-without-deduplication.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

/** A service with a vendor whose POS may be made silent, a neighbour at the same vendor, and another vendor. */
export type Vendors = {
  system: System;
  /** Where the locations of `openAt` send; another one after `wakeUp`. */
  silent: Pos;
  /** Of the location `neighbour`, which is the same vendor's. */
  pos: Pos;
  /** Locations of one vendor, each with so many orders. */
  openAt(prefix: string, locations: number, orders: number): Promise<void>;
  /** Cuts what hangs, and answers from now on. */
  wakeUp(): Promise<void>;
  /** How many lines of the log hold this. */
  lines(what: string): number;
  opens(): number;
  count(where: string): Promise<number>;
  underWay(): Promise<number>;
  /** Or left to a person. */
  allSent(): Promise<boolean>;
  /** Who has been refused often waits long. */
  makeDue(): Promise<unknown>;
  /** Whether an order of this location is sent before the calls that hang now, if any, have ended. */
  sendsMeanwhile(locationId: string): Promise<boolean>;
  stop(): Promise<void>;
};

export async function startVendors(): Promise<Vendors> {
  const [system, silent, pos, other] = await Promise.all([
    startSystem({ providers: [findable], jobs: 'all' }),
    startPos(),
    startPos(),
    startPos(),
  ]);
  await system.addLocation('other', { ordersUrl: other.ordersUrl }, 'findable');
  await system.addLocation('neighbour', { ordersUrl: pos.ordersUrl });
  const lines = (what: string): number => system.logged.filter((line) => line.includes(what)).length;
  const count = async (where: string): Promise<number> =>
    Number((await system.query(`SELECT count(*) FROM ${where}`))[0]?.['count']);
  const vendors: Vendors = {
    system,
    silent,
    pos,
    lines,
    count,
    async openAt(prefix, locations, orders) {
      const locationIds = Array.from({ length: locations }, (_, nth) => `${prefix}-${nth}`);
      for (const locationId of locationIds) await system.addLocation(locationId, { ordersUrl: silent.ordersUrl });
      for (let each = 0; each < orders; each += 1) {
        await Promise.all(locationIds.map((locationId) => system.placeOrder({ locationId })));
      }
    },
    async wakeUp() {
      await vendors.silent.stop();
      vendors.silent = await startPos({ port: Number(new URL(silent.url).port) });
    },
    opens: () => lines('circuit open'),
    underWay: () => count('placement_attempts WHERE ended_at IS NULL'),
    allSent: async () => (await count(`placements WHERE finished_at IS NULL AND next_attempt_at < 'infinity'`)) === 0,
    makeDue: () =>
      system.query(
        `UPDATE placements SET next_attempt_at = now()
         WHERE finished_at IS NULL AND lease_id IS NULL AND next_attempt_at <> 'infinity'`,
      ),
    async sendsMeanwhile(locationId) {
      const hanging = await system.query(
        'SELECT service_order_id AS id, attempt FROM placement_attempts WHERE ended_at IS NULL',
      );
      const { serviceOrderId } = await system.placeOrder({ locationId });
      await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
      const left = await system.query(
        `SELECT FROM placement_attempts JOIN unnest($1::text[], $2::int[]) AS h (id, nth)
           ON service_order_id = h.id AND attempt = h.nth WHERE ended_at IS NULL`,
        [hanging.map(({ id }) => id), hanging.map(({ attempt }) => attempt)],
      );
      return hanging.length === 0 || left.length > 0;
    },
    stop: async () => void (await Promise.all([system, vendors.silent, pos, other].map((each) => each.stop()))),
  };
  return vendors;
}
