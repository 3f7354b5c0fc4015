import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { balancePeer, emptyPeer } from '../../tools/bench/peers/balance-peer.ts';
import { comparePeers, IN_JSON, toPeerResults } from '../../tools/bench/peers/compare-peers.ts';
import { PEER_FIGURES } from '../../tools/bench/peers/peer-figures.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { runToEnd, type Ended } from '../../world/processes/run-program.ts';

const BENCH_PEERS = fileURLToPath(new URL('../../tools/bench/peers/bench-peers.ts', import.meta.url));
const benchPeers = (...args: string[]): Promise<Ended> => runToEnd(BENCH_PEERS, {}, args);

describe('npm run bench:peers', () => {
  it('prints its help', async () => {
    const { code, out } = await benchPeers('--help');
    expect(code).toBe(0);
    for (const word of ['--rounds', '--record', '--json', 'node-red', 'pg-boss', 'graphile-worker'])
      expect(out).toContain(word);
  });

  it('refuses unknown options with an explanation', async () => {
    expect(await benchPeers('--rounds', '0')).toMatchObject({
      code: 1,
      error: expect.stringContaining('from 1 to 1000'),
    });
    expect(await benchPeers('--quick')).toMatchObject({ code: 1, error: expect.stringContaining('--quick') });
  });

  it('measures each peer and the service with every number of connections, and prints five ratios', async () => {
    const rates: Record<string, number> = { service: 6_000, 'node-red': 4_000, 'pg-boss': 1_500 };
    const measured: string[] = [];
    const contest = {
      async measure({ variant, connections }: { variant: string; connections: number }) {
        measured.push(`${variant} ${connections}`);
        const perSecond = (rates[variant] ?? 1_000) + connections;
        return { answers: {}, perSecond, p50Ms: 1, p99Ms: 1, nodeUs: 1, postgresUs: 1, senderUs: 1, diskBytes: 1 };
      },
      stop: async () => {},
    };
    const { ratios } = await comparePeers(contest, { rounds: 1, seconds: 1 }, () => {});
    const turn = [8, 64, 256].flatMap((connections) =>
      ['service', 'node-red', 'pg-boss', 'graphile-worker'].map((variant) => `${variant} ${connections}`),
    );
    expect(measured).toEqual([...turn, ...turn]);
    expect([...ratios.keys()]).toEqual(Object.keys(PEER_FIGURES));
    expect(JSON.parse(JSON.stringify(toPeerResults(ratios), IN_JSON))).toEqual({
      vsNodeRed8: 6_008 / 4_008,
      vsNodeRed64: 6_064 / 4_064,
      vsNodeRed256: 6_256 / 4_256,
      vsPgBoss64: 6_064 / 1_564,
      vsGraphileWorker64: 6_064 / 1_064,
    });
  });
});

it('a run fails if a peer answers 200 without storing a row, or stores a row without a 200', async () => {
  const databaseUrl = await createDatabase();
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('CREATE TABLE node_red_webhooks AS SELECT generate_series(1, 3)');
  await client.end();
  await balancePeer(databaseUrl, 'node-red', { requests: 3, answers: { 200: 3 } });
  await expect(balancePeer(databaseUrl, 'node-red', { requests: 4, answers: { 200: 4 } })).rejects.toThrow('"rows":3');
  await expect(balancePeer(databaseUrl, 'node-red', { requests: 3, answers: { 200: 2, 500: 1 } })).rejects.toThrow(
    'the books of node-red do not balance',
  );
  await emptyPeer(databaseUrl, 'node-red');
  await expect(balancePeer(databaseUrl, 'node-red', { requests: 3, answers: { 200: 3 } })).rejects.toThrow('"rows":0');
});
