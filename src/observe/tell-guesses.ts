import type { Pool } from 'pg';
import { recordAct } from '../core/operators/audit.ts';
import type { Actor } from '../core/operators/operator.ts';
import type { Log } from '../core/domain/log.ts';
import type { GuessDoor, Observe } from '../core/domain/observed.ts';

/** Sources that are counted, and those of them that are told. What is beyond is told in one. */
const MOST_COUNTED = 1_000;
const MOST_TOLD = 20;
const OTHERS = 'others';
const NOBODY: Actor = { kind: 'nobody', id: 'nobody', name: 'nobody' };
/** What is not an operators' door is not in their audit. */
const OUTSIDE: readonly GuessDoor[] = ['webhook', 'push', 'follow'];

type Count = { refused: number; slowed: number };
type Line = Count & { source: string; door?: GuessDoor };

/**
 * Counts wrong credentials by their source and door, to tell them together: a line in the log for each of the busiest and
 * one for the others, and of operators' doors a row in the audit for each source. So whoever sends a thousand a second
 * fills neither.
 */
export function tellGuesses(pool: Pool, log: Log): { observe: Observe; tell(): Promise<void> } {
  let counts = new Map<string, Map<GuessDoor, Count>>();
  return {
    observe(observed) {
      if (observed.what !== 'guess') return;
      const { door, outcome } = observed;
      const source = counts.has(observed.source) || counts.size < MOST_COUNTED ? observed.source : OTHERS;
      const doors = counts.get(source) ?? new Map<GuessDoor, Count>();
      const count = doors.get(door) ?? { refused: 0, slowed: 0 };
      counts.set(source, doors.set(door, count));
      count[outcome] += 1;
    },
    async tell() {
      const told = counts;
      counts = new Map();
      const lines = [...told].flatMap(([source, doors]) =>
        [...doors].map(([door, count]) => ({ source, door, ...count })),
      );
      for (const line of busiest(lines)) log.warn(line, 'wrong credentials');
      const ofOperators = [...told].flatMap(([source, doors]) => {
        const counted = [...doors].flatMap(([door, count]) => (OUTSIDE.includes(door) ? [] : [count]));
        return counted.length === 0 ? [] : [{ source, ...sum(counted) }];
      });
      for (const { source, refused, slowed } of busiest(ofOperators)) {
        const after = `${refused} wrong, ${slowed} slowed`;
        await recordAct(pool, NOBODY, { did: 'sign in', source }, { outcome: 'refused', after });
      }
    },
  };
}

/** The busiest, and the others as one. */
function busiest(lines: readonly Line[]): Line[] {
  const sorted = lines.toSorted((a, b) => b.refused + b.slowed - a.refused - a.slowed);
  const rest = sorted.slice(MOST_TOLD);
  const told = sorted.slice(0, MOST_TOLD);
  return rest.length === 0 ? told : [...told, { source: OTHERS, ...sum(rest) }];
}

function sum(counts: readonly Count[]): Count {
  const of = (key: keyof Count): number => counts.reduce((total, count) => total + count[key], 0);
  return { refused: of('refused'), slowed: of('slowed') };
}
