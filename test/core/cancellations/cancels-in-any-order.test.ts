import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endOf, findContradictions } from './find-contradictions.ts';
import { ORDERS, startPlayers, type Played, type Players } from './start-players.ts';
import { KINDS, nameOf } from './scripted-tills.ts';
import { anyScript, otherwise, shorter, type Script } from './any-script.ts';

/** How many are played at once, of all kinds of till alike. Each may have a twin. */
const AT_ONCE = ORDERS / 2;
/** How often a script that fails is made shorter. */
const SHORTEN = 8;
/** Others each time. One alone is `SEED=<its own> SEEDS=1`. */
const SEEDS = Number(process.env['SEEDS'] ?? 200);
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

let players: Players;
beforeAll(async () => {
  players = await startPlayers();
});
afterAll(() => players?.stop());

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

type Problem = { script: Script; nth: number; problem: string };

/** Plays scripts, and each calm one in another order as well. @returns what must not be, with its story */
async function findProblems(name: string, scripts: ReadonlyMap<number, Script>): Promise<Problem[]> {
  const all = new Map(scripts);
  for (const [nth, each] of scripts) if (each.calm) all.set(nth + AT_ONCE, otherwise(each));
  const played = new Map((await players.play(name, all)).map((each) => [each.nth, each]));
  return [...scripts].flatMap(([nth, each]) => {
    const [one, twin] = [played.get(nth), played.get(nth + AT_ONCE)].filter((which) => which !== undefined);
    if (one === undefined) throw new Error('it was not played');
    const problems = [one, twin].flatMap((which) =>
      which === undefined ? [] : findContradictions(which).map((what) => `${what}\n${storyOf(which)}`),
    );
    if (twin !== undefined && !isDeepStrictEqual(endOf(one), endOf(twin))) {
      problems.push(`in another order it ends otherwise\n${storyOf(one)}\n${storyOf(twin)}`);
    }
    return problems.map((problem) => ({ script: each, nth, problem }));
  });
}

/** Finds the shortest script that still fails, each time of those with one thing less. */
async function shorten(name: string, { script: from, nth, problem }: Problem): Promise<string> {
  const kind = nth % KINDS.length;
  let shortest = { script: from, nth, problem };
  for (let time = 0; time < SHORTEN; time++) {
    const candidates = shorter(shortest.script).slice(0, AT_ONCE / KINDS.length);
    const places = new Map(candidates.map((each, place) => [kind + place * KINDS.length, each]));
    const [failing] = await findProblems(`${name}-${time}`, places);
    if (failing === undefined) break;
    shortest = failing;
  }
  return shortest.problem;
}

describe('cancels, changes, lost answers and POS events in any order', () => {
  it(`${SEEDS} random orders at all kinds of POS, over two processes, come to a good end (SEED=${SEED})`, async () => {
    for (let from = 0; from < SEEDS; from += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, SEEDS - from) }, (_, nth) => SEED + from + nth);
      const scripts = seeds.flatMap((seed) => fc.sample(anyScript, { numRuns: 1, seed }));
      // A seed's till is always of the same kind.
      const places = new Map(scripts.map((each, nth) => [(SEED + from + nth) % AT_ONCE, each]));
      const problems = await findProblems(`any-${SEED}-${from}`, places);
      const [first] = problems;
      if (first === undefined) continue;
      const all = problems.map(
        ({ nth, problem }) => `SEED=${seeds.find((seed) => seed % AT_ONCE === nth)} ${problem.split('\n')[0]}`,
      );
      expect.fail(`${all.join('\n')}\n${first.problem}\nShortened: ${await shorten(`short-${SEED}-${from}`, first)}`);
    }
  }, 2_000_000);
});
