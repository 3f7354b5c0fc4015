import fc from 'fast-check';
import { STATUSES, type Status } from '../../src/core/domain/lifecycle.ts';
import type { Fault, TillScript } from './scripted-tills.ts';

/** Something that happens to one order. Its request goes to one of two processes. */
export type Step = {
  /** The clock is moved forward before each round. */
  round: number;
  /** Milliseconds since the beginning of the round. */
  afterMs: number;
  process: 0 | 1;
  do:
    | 'signal'
    /** The member does this on the platform, which signals it. */
    | 'cancel'
    | 'change'
    /** An operator requests a cancel. */
    | 'operator'
    /** A person does the work that waits for a person: checks the POS, or phones the restaurant. */
    | 'person'
    /** The kitchen changes the status. The POS reports it with our id, its own id, or both. */
    | { status: Status; by: 'ours' | 'pos' | 'both'; again?: true };
};
/** `calm`: each step waits until the previous step has had all its effects. */
export type Script = TillScript & { steps: readonly Step[]; calm: boolean };

export const ROUNDS = 8;

const often = <const T>(value: T, weight: number): { arbitrary: fc.Arbitrary<T>; weight: number } => ({
  arbitrary: fc.constant(value),
  weight,
});

const fault: fc.Arbitrary<Fault> = fc.record({
  how: fc.oneof(
    often('answered', 4),
    often('lost', 4),
    often('500', 1),
    often('died', 1),
    often('unreachable', 1),
    often('unauthorised', 1),
    often('refused', 1),
  ),
  taken: fc.constantFrom('at once', 'later', 'never'),
  afterMs: fc.oneof(often(0, 2), { arbitrary: fc.integer({ min: 1, max: 300 }), weight: 1 }),
});
const faults = fc.array(fault, { maxLength: 3 });
/** A read changes nothing. So its answer can only be normal, late or lost. */
const reads = fc.array(
  fault.map(({ how, afterMs }): Fault => ({ how: how === 'lost' ? how : 'answered', taken: 'never', afterMs })),
  { maxLength: 3 },
);

const what: fc.Arbitrary<Step['do']> = fc.oneof(
  often('cancel', 6),
  often('change', 4),
  often('signal', 3),
  often('operator', 1),
  often('person', 2),
  {
    arbitrary: fc.record({
      status: fc.constantFrom(...STATUSES),
      by: fc.constantFrom('ours' as const, 'pos' as const, 'both' as const),
    }),
    weight: 4,
  },
);

const till = { creates: faults, cancels: faults, finds: reads, reads };

const any: fc.Arbitrary<Script> = fc
  .record({
    ...till,
    tooLateFrom: fc.oneof(often('completed', 3), {
      arbitrary: fc.constantFrom<Status>('received', 'in_progress'),
      weight: 1,
    }),
    confirms: fc.oneof(often(false, 3), often(true, 1)),
    needsPosId: fc.oneof(often(false, 4), often(true, 1)),
    calm: fc.oneof(often(false, 3), often(true, 1)),
    steps: fc.array(
      fc.record({
        round: fc.integer({ min: 0, max: ROUNDS - 2 }),
        afterMs: fc.oneof(often(0, 1), { arbitrary: fc.integer({ min: 1, max: 400 }), weight: 3 }),
        process: fc.constantFrom<0 | 1>(0, 1),
        do: what,
      }),
      { minLength: 1, maxLength: 6 },
    ),
  })
  .map((each) => (each.calm ? calmed(each) : each));

/** A script in which the first answer is lost. The POS is then queried, answers slowly, and a step comes meanwhile. */
const inDoubt: fc.Arbitrary<Script> = fc
  .tuple(any, fc.integer({ min: 0, max: 250 }), fc.constantFrom<Step['do']>('cancel', 'change', 'signal'))
  .map(([each, afterMs, does]) => {
    const slow: Fault = { how: 'answered', taken: 'never', afterMs: 250 };
    return {
      ...each,
      calm: false,
      creates: [{ how: 'lost', taken: 'never', afterMs: 0 }],
      finds: [slow, slow],
      // Round 2 is the first in which the answer "there is no ticket" counts.
      steps: [{ round: 2, afterMs, process: 0, do: does }, ...each.steps.filter(({ round }) => round > 1)],
    };
  });

/** A script with a signal, then a cancel or change while the order is fetched because of that signal. */
const hasty: fc.Arbitrary<Script> = fc
  .tuple(any, fc.integer({ min: 1, max: 300 }), fc.constantFrom<Step['do']>('cancel', 'change'))
  .map(([each, afterMs, does]) => ({
    ...each,
    calm: false,
    steps: [
      ...each.steps.filter(({ round }) => round < ROUNDS - 1),
      { round: ROUNDS - 1, afterMs: 0, process: 0, do: 'signal' },
      { round: ROUNDS - 1, afterMs, process: 1, do: does },
    ],
  }));

/** Any script. One in six is calm. */
export const anyScript: fc.Arbitrary<Script> = fc.oneof(
  { arbitrary: any, weight: 4 },
  { arbitrary: inDoubt, weight: 1 },
  { arbitrary: hasty, weight: 1 },
);

/**
 * Keeps one step in every other round, and one fault for each kind of request. So all effects of a step are over before
 * the next step, however long the back-offs are.
 */
function calmed({ steps, creates, cancels, finds, reads: readFaults, ...about }: Script): Script {
  return {
    ...about,
    creates: creates.slice(0, 1),
    cancels: cancels.slice(0, 1),
    finds: finds.slice(0, 1),
    reads: readFaults.slice(0, 1),
    steps: steps.slice(0, ROUNDS / 2).map((step, nth) => ({ ...step, round: 2 * nth + 1, afterMs: 0 })),
  };
}

/**
 * Returns a calm script with the same meaning in another order. Requests go to the other process. Signals come more
 * often, and at other times than their causes. The POS reports each status twice, and the first one again at the end.
 */
export function otherwise({ steps, ...about }: Script): Script {
  const others = steps.map((step): Step => ({ ...step, process: step.process === 0 ? 1 : 0 }));
  const again = others.flatMap((step): Step[] =>
    typeof step.do === 'object' ? [{ ...step, afterMs: 20, do: { ...step.do, again: true } }] : [],
  );
  const signals = steps.flatMap((step): Step[] => [
    { ...step, afterMs: 0, do: 'signal' },
    { ...step, round: Math.min(step.round + 2, ROUNDS), afterMs: 5, do: 'signal' },
  ]);
  return {
    ...about,
    steps: [...others, ...again, ...again.slice(0, 1).map((step) => ({ ...step, round: ROUNDS })), ...signals],
  };
}

/** Returns scripts with one step or fault less, to find the shortest script that still fails. */
export function shorter(from: Script): Script[] {
  const without = <T>(list: readonly T[]): T[][] => list.map((_, nth) => list.toSpliced(nth, 1));
  return [
    ...without(from.steps).map((steps) => ({ ...from, steps })),
    ...(['creates', 'cancels', 'finds', 'reads'] as const).flatMap((about) =>
      from[about].length === 0
        ? []
        : [
            { ...from, [about]: [] },
            { ...from, [about]: from[about].slice(0, -1) },
          ],
    ),
  ];
}
