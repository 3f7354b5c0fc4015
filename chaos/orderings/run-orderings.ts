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
  /** Orders that were told events, and those of which something else came than in another order. */
  told: number;
  toldWrong: number;
  /** Orders with cancels, changes and lost answers, and those that came to a bad end. */
  played: number;
  playedWrong: number;
};

/** How many scripts are played, at all kinds of till alike. Each may have a twin. */
const SCRIPTS = ORDERS / 2;
/** How often what fails is made shorter. */
const SHORTEN = 8;

type Failing<Case> = { it: Case; problem: string };
type At = { kind: number; script: Script };

/** Plays events, and then cancels, changes, lost answers and events, in any order, over two processes. */
export async function runOrderings(
  seed: number,
  print: (line: string) => void,
): Promise<{ result: OrderingsResult; complaints: string[] }> {
  const players = await startPlayers();
  try {
    const tellings = drawTellings(seed);
    print(`seed ${seed}: ${tellings.length} orders are told events in any order`);
    const told = await complain(tellings, await startTelling(players), withOneLess);
    const scripts = fc.sample(anyScript, { numRuns: SCRIPTS, seed });
    print(`${SCRIPTS} orders are cancelled, changed and told in any order`);
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

/** Plays all. @returns the problem of each that fails, the first with the shortest that still fails */
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

/** Plays scripts, each at a till of its kind, and each calm one in another order as well. */
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
      whats.push(`${one.serviceOrderId}: in another order it ends otherwise\n${storyOf(one)}\n${storyOf(twin)}`);
    }
    return whats.slice(0, 1).map((problem) => ({ it, problem }));
  });
}

/** What happened to one order, for whoever has to find out why. */
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
