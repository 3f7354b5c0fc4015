import type { Figure } from '../report/figures.ts';
import { PEERS, type Peer } from './peers.ts';

const CONNECTIONS = [8, 64, 256] as const;
type Connections = (typeof CONNECTIONS)[number];
export type PeerFigureName = `vs${(typeof PEERS)[Peer]['figure']}${Connections}`;

const QUEUE_GOALS = { 8: 2, 64: 5, 256: 6 };
const GOALS: Record<Peer, Record<Connections, number>> = {
  'node-red': { 8: 1, 64: 1.5, 256: 1.9 },
  'pg-boss': QUEUE_GOALS,
  'graphile-worker': QUEUE_GOALS,
};

/** The comparisons, grouped by the number of connections. */
export const BY_CONNECTIONS = CONNECTIONS.flatMap((connections) =>
  (Object.keys(PEERS) as Peer[]).map((peer) => ({
    peer,
    connections,
    name: `vs${PEERS[peer].figure}${connections}` as const,
  })),
);

export const PEER_FIGURES = Object.fromEntries(
  BY_CONNECTIONS.map(({ peer, connections, name }) => [
    name,
    {
      what: `throughput against ${PEERS[peer].is}, ${connections} connections`,
      goal: { atLeast: GOALS[peer][connections] },
    },
  ]),
) as Record<PeerFigureName, Figure>;
