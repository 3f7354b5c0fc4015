import { expect, it } from 'vitest';
import { judgeDrill, runDrill, type Case, type Drilled } from '../../tools/chaos/run-drill.ts';

const drill = async (name: Case, recovers = true): Promise<Drilled> => {
  const small = { cases: [name], orders: 100, perSecond: 5, seconds: 3, lostS: 3, recovers, print: () => {} };
  const [drilled] = await runDrill(small);
  if (drilled === undefined) throw new Error('no case');
  return drilled;
};

it('a failover to a synchronous standby loses no order and no status', { timeout: 240_000 }, async () => {
  const drilled = await drill('synchronous standby');
  expect(judgeDrill(drilled)).toEqual([]);
});

it('a recovery settles the orders that a restore has lost', { timeout: 300_000 }, async () => {
  const drilled = await drill('base backup and WAL');
  expect(drilled.ordersLost).toBeGreaterThan(0);
  expect(judgeDrill(drilled)).toEqual([]);
});

it('without a recovery, the drill reports unsettled orders and lost statuses', { timeout: 300_000 }, async () => {
  const drilled = await drill('base backup and WAL', false);
  expect(judgeDrill(drilled)).toEqual(
    ['orders are not settled', 'statuses that were answered 200 are lost'].map(
      (words) => `base backup and WAL: ${words}`,
    ),
  );
});
