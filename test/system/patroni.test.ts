import { expect, it } from 'vitest';
import { checkAnswers, countAnswers } from '../../tools/chaos/check-answers.ts';
import { recordHistory } from '../../tools/chaos/history.ts';
import { playOut } from '../../tools/chaos/play-out.ts';
import { scriptOrder } from '../../tools/chaos/script-order.ts';
import { setStage } from '../../tools/chaos/set-stage.ts';
import { startPatroni, type PatroniCluster } from '../../world/postgres/start-patroni.ts';
import { needsPostgres, needsTool } from './needs-tool.ts';

const KILLS = 5;
const SEED = 7;
const SECONDS = 85;
const ORDERS_PER_SECOND = 5;
/** Seconds until webhooks are spilled no more after the new primary takes writes. */
const BACK_WITHIN_S = 3;
const VARIETY = new Set(['duplicate', 'delay', 'reorder', 'early'] as const);

function startCluster(): Promise<PatroniCluster> {
  return startPatroni({
    patroni: needsTool('patroni', 'patroni'),
    etcd: needsTool('etcd', 'etcd-server'),
    haproxy: needsTool('haproxy', 'haproxy'),
    postgresBin: needsPostgres().at(-1) ?? '',
  });
}

it('a cluster whose leader is killed five times loses no order, and accepts webhooks again within three seconds', async () => {
  const cluster = await startCluster();
  const { url, stop } = cluster;
  const history = recordHistory();
  const stage = await setStage({
    seed: SEED,
    history,
    database: { databaseUrl: url, serviceUrl: url, stopDatabase: stop },
    deadlineS: 90,
    deadPos: false,
    clocks: false,
    findable: false,
  }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  try {
    const locationIds = stage.kitchens.map(({ locationId }) => locationId);
    const scripts = Array.from({ length: SECONDS * ORDERS_PER_SECOND }, (_, nth) =>
      scriptOrder(SEED, nth + 1, locationIds, VARIETY),
    );
    const newPrimaries: number[] = [];
    const killLeaders = async (): Promise<void> => {
      for (let kill = 0; kill < KILLS; kill += 1) {
        await cluster.killLeader();
        newPrimaries.push(history.now());
        await cluster.mend();
      }
    };
    const { books, complaints, served, probe, calm } = await playOut({
      stage,
      scripts,
      ordersPerSecond: ORDERS_PER_SECOND,
      history,
      disturb: killLeaders,
      print: () => {},
    });
    expect([
      ...complaints,
      ...stage.instances.misbehaved,
      ...checkAnswers(served.answers, new Set(['failover'])),
    ]).toEqual([]);
    expect(books.acknowledged).toBeGreaterThan(1_000);
    expect([...countAnswers(served.answers).keys()]).toEqual([200]);
    expect(served.answers.filter(({ outcome }) => outcome === 'accepted').length).toBeGreaterThan(100);
    const seconds = newPrimaries.map((at) => probe.recoverySeconds(at, calm[1]) ?? Number.POSITIVE_INFINITY);
    expect(seconds).toHaveLength(KILLS);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(BACK_WITHIN_S);
  } finally {
    await stage.stop();
  }
}, 600_000);
