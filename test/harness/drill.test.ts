import { expect, it } from 'vitest';
import { judgeDrill, runDrill, type Case, type Drilled } from '../../tools/chaos/run-drill.ts';

const drill = async (name: Case, recovers = true): Promise<Drilled> => {
  const small = { cases: [name], orders: 100, perSecond: 5, seconds: 3, lostS: 3, recovers, print: () => {} };
  const [drilled] = await runDrill(small);
  if (drilled === undefined) throw new Error('no case');
  return drilled;
};

it('a synchronous standby loses nothing', { timeout: 240_000 }, async () => {
  const drilled = await drill('synchronous standby');
  expect(judgeDrill(drilled)).toEqual([]);
});

it('what a restore has lost is settled', { timeout: 300_000 }, async () => {
  const drilled = await drill('base backup and WAL');
  expect(drilled.ordersLost).toBeGreaterThan(0);
  expect(judgeDrill(drilled)).toEqual([]);
});

it('without the recovery, the drill says what is lost', { timeout: 300_000 }, async () => {
  const drilled = await drill('base backup and WAL', false);
  expect(judgeDrill(drilled)).toEqual(
    ['orders are not settled', 'statuses that were answered 200 are lost'].map(
      (words) => `base backup and WAL: ${words}`,
    ),
  );
});
