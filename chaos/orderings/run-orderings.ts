import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { anyScript, otherwise, shorter, type Script } from './any-script.ts';
import { endOf, findContradictions } from './find-contradictions.ts';
import { KINDS, nameOf } from './scripted-tills.ts';
import { ORDERS, startPlayers, type Played, type Players } from './start-players.ts';
import { drawTellings, startTelling, withOneLess } from './tell-events.ts';

export type OrderingsResult = {
  seed: number;
  ok: boolean;
  /** Orders that only got events, and how many of them had a wrong result. */
  told: number;
  toldWrong: number;
  /** Orders with cancels, changes and lost answers, and how many of them had a wrong result. */
  played: number;
  playedWrong: number;
};

/** How many scripts are played, evenly at all kinds of till. A calm script is also played in another order. */
const SCRIPTS = ORDERS / 2;
/** How often a failing case is shortened. */
const SHORTEN = 8;

type Failing<Case> = { it: Case; problem: string };
type At = { kind: number; script: Script };

/** Plays random orders of events, then of cancels, changes, lost answers and events, over two processes. */
export async function runOrderings(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: OrderingsResult; complaints: string[] }> {
  const players = await startPlayers();
  try {
    const tellings = drawTellings(seed);
    print(`seed ${seed}: ${tellings.length} orders get events in any order`);
    const told = await complain(tellings, await startTelling(players), withOneLess);
    const scripts = fc.sample(anyScript, { numRuns: SCRIPTS, seed });
    print(`${SCRIPTS} orders get cancels, changes and events in any order`);
    const played = await complain(
      scripts.map((script, nth) => ({ kind: nth % KINDS.length, script })),
      (cases) => playAll(players, cases),
      ({ kind, script }) => shorter(script).map((each) => ({ kind, script: each })),
    );
    const complaints = [...told, ...played];
    return {
      result: {
        seed,
        ok: complaints.length === 0,
        told: tellings.length,
        toldWrong: told.length,
        played: SCRIPTS,
        playedWrong: played.length,
      },
      complaints,
    };
  } finally {
    await players.stop();
  }
}

/** Plays all cases. @returns the problem of each failing case. The first includes its shortest version that fails */
async function complain<Case>(
  cases: readonly Case[],
  play: (cases: readonly Case[]) => Promise<Failing<Case>[]>,
  less: (from: Case) => Case[],
): Promise<string[]> {
  const [first, ...others] = await play(cases);
  if (first === undefined) return [];
  let shortest = first;
  for (let time = 0; time < SHORTEN; time++) {
    const [failing] = await play(less(shortest.it).slice(0, ORDERS / 2 / KINDS.length));
    if (failing === undefined) break;
    shortest = failing;
  }
  const [ownWords] = first.problem.split('\n');
  return [`${ownWords}\nShortened: ${shortest.problem}`, ...others.map(({ problem }) => problem.split('\n')[0] ?? '')];
}

let rounds = 0;

/** Plays scripts, each at a till of its kind. Plays each calm script in another order too, and compares the ends. */
async function playAll(players: Players, cases: readonly At[]): Promise<Failing<At>[]> {
  const taken = new Map<number, number>();
  const placed = cases.map((it) => {
    const place = taken.get(it.kind) ?? 0;
    taken.set(it.kind, place + 1);
    return { it, nth: it.kind + place * KINDS.length };
  });
  const all = new Map(placed.map(({ it, nth }) => [nth, it.script]));
  for (const { it, nth } of placed) if (it.script.calm) all.set(nth + SCRIPTS, otherwise(it.script));
  const played = new Map((await players.play(`any-${(rounds += 1)}`, all)).map((each) => [each.nth, each]));
  return placed.flatMap(({ it, nth }) => {
    const [one, twin] = [played.get(nth), played.get(nth + SCRIPTS)];
    if (one === undefined) throw new Error('it was not played');
    const whats = [one, ...(twin === undefined ? [] : [twin])].flatMap((which) =>
      findContradictions(which).map((what) => `${which.serviceOrderId}: ${what}\n${storyOf(which)}`),
    );
    if (twin !== undefined && !isDeepStrictEqual(endOf(one), endOf(twin))) {
      whats.push(`${one.serviceOrderId}: in another order it has another end\n${storyOf(one)}\n${storyOf(twin)}`);
    }
    return whats.slice(0, 1).map((problem) => ({ it, problem }));
  });
}

/** Everything that happened to one order, for the person who looks for the cause. */
const storyOf = ({ row, till, script: { steps, ...about }, live }: Played): string =>
  JSON.stringify(
    {
      kind: nameOf(till.kind),
      ...about,
      steps,
      row,
      sent: till.sent.map(({ order, fault }) => `${order.notes} ${fault.how} ${fault.taken}`),
      tickets: till.tickets.map(
        ({ providerOrderId, live: isLive }) => `${providerOrderId} ${isLive ? 'live' : 'over'}`,
      ),
      asked: till.asked,
      live: live.map(({ memberState, cancellation }) => `${memberState} ${cancellation ?? ''}`.trim()),
    },
    undefined,
    1,
  );
