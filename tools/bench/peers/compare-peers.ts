import { cell, compareInTurn, type Compared, type Comparison } from '../measure/compare-in-turn.ts';
import type { Contest } from '../variants/start-contest.ts';
import { median } from '../measure/summarize.ts';
import { BY_CONNECTIONS, type PeerFigureName } from './peer-figures.ts';

/** The figures that `--json` prints. */
export const IN_JSON: PeerFigureName[] = [
  'vsNodeRed8',
  'vsNodeRed64',
  'vsNodeRed256',
  'vsPgBoss64',
  'vsGraphileWorker64',
];

const COMPARISONS = BY_CONNECTIONS.map(({ peer, connections, name }): Comparison<PeerFigureName> => ({
  figure: name,
  of: cell('service', connections),
  against: cell(peer, connections),
  by: 'perSecond',
}));

/** Compares the service with its peers. @param about.seconds the length of each measurement */
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
