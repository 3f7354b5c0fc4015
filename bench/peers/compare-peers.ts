import { cell, compareInTurn, type Compared, type Comparison } from '../compare-in-turn.ts';
import type { Figure } from '../figures.ts';
import type { Contest } from '../start-contest.ts';
import { median } from '../summarize.ts';
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

/** All at the same number of connections follow each other. */
const ALL = CONNECTIONS.flatMap((connections) =>
  (Object.keys(PEERS) as Peer[]).map((peer) => ({
    peer,
    connections,
    name: `vs${PEERS[peer].figure}${connections}` as const,
  })),
);

export const PEER_FIGURES = Object.fromEntries(
  ALL.map(({ peer, connections, name }) => [
    name,
    {
      what: `throughput against ${PEERS[peer].is}, ${connections} connections`,
      goal: { atLeast: GOALS[peer][connections] },
    },
  ]),
) as Record<PeerFigureName, Figure>;

/** What `--json` tells. */
export const IN_JSON: PeerFigureName[] = [
  'vsNodeRed8',
  'vsNodeRed64',
  'vsNodeRed256',
  'vsPgBoss64',
  'vsGraphileWorker64',
];

const COMPARISONS = ALL.map(({ peer, connections, name }): Comparison<PeerFigureName> => ({
  figure: name,
  of: cell('service', connections),
  against: cell(peer, connections),
  by: 'perSecond',
}));

/** Compares the service with its peers. @param about.seconds of each measurement */
export function comparePeers(
  contest: Contest,
  about: { rounds: number; seconds: number },
  say: (line: string) => void,
): Promise<Compared<PeerFigureName>> {
  return compareInTurn(contest, COMPARISONS, about, say);
}

/** The median of each figure. */
export function toPeerResults(ratios: Compared<PeerFigureName>['ratios']): Record<PeerFigureName, number> {
  return Object.fromEntries([...ratios].map(([name, each]) => [name, median(each)])) as Record<PeerFigureName, number>;
}
