import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/database/migrate.ts';
import { chance } from './chance.ts';
import { checkAnswers, countAnswers } from './check-answers.ts';
import type { Books } from './check-books.ts';
import { startFaultyPostgres } from './faulty-postgres.ts';
import { recordHistory } from './history.ts';
import { injectFaults } from './inject-faults.ts';
import { playOut } from './play-out.ts';
import { buildVersion, findPrevious } from './previous-version.ts';
import { scriptOrder } from './script-order.ts';
import type { Answer } from './send-status.ts';
import { measureSlowdown } from './measure-slowdown.ts';
import { setStage } from './set-stage.ts';

export type VersionsResult = Books & {
  /** The previous version, and its commit. */
  previous: string;
  /** Processes replaced by one of the other version, and processes killed by SIGKILL. */
  rolls: number;
  kills: number;
  /** Webhooks that were spilled while both versions ran, which both then drained. */
  spilled: number;
  /** Webhooks that were answered 5xx or not at all, although no process was being killed and Postgres was there. */
  answers5xx: number;
  /** The same while the machine was over four times slower, which may be the cause. */
  answersNotJudged: number;
  /** The same while a process was killed or Postgres was away. */
  answers5xxBesideKills: number;
  /** How many times slower than idle the machine was during the whole run. For information only. */
  slowdown: number;
  /** Tickets, webhooks and cancels that were doubled. */
  doubled: number;
  /** Orders without an end, and whatever did not settle. */
  stuck: number;
  seconds: number;
};

const PLACES = 2;
const [PREVIOUS, OURS] = [0, 1];
const ORDERS_A_SECOND = 4;
/** More than any roll takes: the orders must not end before the rolls. */
const ROLL_AT_MOST_S = 30;
const DEADLINE_S = 120;
/** Before and after the migration, only the previous version runs. */
const BEFORE_MS = 5_000;
/** Both versions run side by side, undisturbed, and Postgres is away in the middle. */
const SIDE_BY_SIDE_S = 20;
const AWAY_S = 5;
const A_KILL_PER_ROLL = 0.3;
/** A kill strikes within this time after a roll begins: while a process starts, while another drains, or later. */
const ROLL_MS = 6_000;
/** The load balancer polls each process at intervals, so it learns this late of a kill. */
const MARGIN_MS = 2_000;
/** If the machine was more than this many times slower, an answer proves nothing. The run itself takes two cores. */
const TOO_SLOW = 4;
/** The machine's speed counts from this long before an answer until this long after it. */
const AROUND_MS = 2_500;
/** Events of which the last one before an unexplained answer is printed. */
const EVENT = /^(fault|migration|process|roll)/;
const KINDS = new Set(['cancel', 'delay', 'duplicate', 'early', 'foreign', 'reorder'] as const);

/** Replaces processes of the previous version by ours and back, on one database, and checks the books at the end. */
export async function runVersions(
  seed: number,
  print: (line: string) => void,
  rolls: number,
): Promise<{ result: VersionsResult; complaints: string[] }> {
  const found = findPrevious();
  print(`seed ${seed}: ${rolls} rolls between version ${found.name} (${found.commit}) and this one`);
  const previous = await buildVersion(found);
  // Each process starts in half the time.
  process.env['NODE_COMPILE_CACHE'] ??= join(previous.folder, '.compiled');
  const history = recordHistory();
  const database = await startFaultyPostgres();
  const stage = await setStage({
    seed,
    history,
    database,
    previous,
    deadlineS: DEADLINE_S,
    places: PLACES,
  });
  const slowdown = measureSlowdown(history);
  const { instances } = stage;
  /** When requests may break, because a process was killed or Postgres is away. */
  const excused: { from: number; until: number }[] = [];
  const excuse = async (what: () => Promise<void>): Promise<void> => {
    const span = { from: performance.now(), until: Infinity };
    excused.push(span);
    await what();
    span.until = performance.now() + MARGIN_MS;
  };
  let kills = 0;
  const killLater = async (nth: number): Promise<void> => {
    await sleep(ROLL_MS * chance(seed, 'kill at', nth));
    kills += 1;
    history.note('process is killed', { nth });
    await excuse(() => instances.killAny(chance(seed, 'kill', nth)));
  };
  try {
    const locationIds = stage.kitchens.map(({ locationId }) => locationId);
    const scripts = Array.from({ length: (60 + rolls * ROLL_AT_MOST_S) * ORDERS_A_SECOND }, (_, nth) =>
      // The previous version cannot read an order that its platform has emptied.
      scriptOrder(seed, nth + 1, locationIds, KINDS, { emptied: 0 }),
    );
    /** Each place in turn goes forward, then each goes back, and so on. */
    const roll = async (nth: number): Promise<void> => {
      const killed = chance(seed, 'kills', nth) < A_KILL_PER_ROLL ? killLater(nth) : undefined;
      history.note('roll begins', { nth });
      await instances.roll(nth, Math.ceil(nth / PLACES) % 2 === 1 ? OURS : PREVIOUS);
      await killed;
    };
    // The last round goes forward.
    const isLast = (nth: number): boolean => nth >= rolls && nth % (2 * PLACES) === PLACES;
    let rolled = 1;
    const disturb = async (): Promise<void> => {
      await sleep(BEFORE_MS);
      history.note('migration begins');
      const migrated = await migrate(database.databaseUrl);
      print(`${migrated.length} migrations ran while version ${found.name} worked`);
      await sleep(BEFORE_MS);
      await roll(1);
      await sleep(SIDE_BY_SIDE_S * 500);
      const at = history.now() / 1_000;
      const away = [{ lane: 'database', kind: 'away', nth: 1, at, lasts: AWAY_S } as const];
      await excuse(() => injectFaults(stage, away, seed, history));
      await sleep(SIDE_BY_SIDE_S * 500);
      while (!isLast(rolled)) await roll((rolled += 1));
    };
    const { served, books, complaints, broken, words } = await playOut({
      stage,
      scripts,
      ordersPerSecond: ORDERS_A_SECOND,
      history,
      disturb,
      endsWithFaults: true,
      print,
    });
    const unsettled = complaints.length - broken.length;
    const calm = served.answers.filter((answer) => !excused.some((span) => overlap(answer, span)));
    const began = performance.now() - history.now();
    /** How many times slower the machine was around an answer. */
    const slowdownAt = ({ at, tookMs }: Answer): number =>
      slowdown.between(at - began - AROUND_MS, at - began + tookMs + AROUND_MS);
    const unexplained = calm.filter(isBroken);
    const judged = unexplained.filter((answer) => slowdownAt(answer) <= TOO_SLOW);
    const answers5xx = judged.length;
    for (const [second, answers] of Map.groupBy(unexplained, ({ at }) => Math.floor((at - began) / 1_000))) {
      const statuses = [...countAnswers(answers)].map(([status, count]) => `${count} × ${status}`).join(', ');
      const last = history.entries.findLast(({ at, what }) => at < second * 1_000 && EVENT.test(what));
      print(
        `second ${second}: ${statuses}, ${Math.max(...answers.map(slowdownAt))} times slower, after "${last?.what}" at ${last?.at} ms`,
      );
    }
    complaints.push(...checkAnswers(served.answers, new Set(['kill'])), ...checkAnswers(judged, new Set(['roll'])));
    if (answers5xx > 0) complaints.push(`${answers5xx} webhooks were refused, and no kill explains it`);
    complaints.push(...instances.misbehaved);
    print(words);
    const { ticketsDoubled, webhooksDoubled, cancelsDoubled, ticketsMissing, liveMissing, cancelsLost } = books;
    return {
      result: {
        previous: `${found.name} (${found.commit.slice(0, 8)})`,
        rolls: rolled,
        kills,
        spilled: served.answers.filter(({ outcome }) => outcome === 'accepted').length,
        answers5xx,
        answersNotJudged: unexplained.length - answers5xx,
        answers5xxBesideKills: served.answers.filter(isBroken).length - unexplained.length,
        slowdown: slowdown.between(0, history.now()),
        doubled: ticketsDoubled + webhooksDoubled + cancelsDoubled,
        stuck: ticketsMissing + liveMissing + cancelsLost + unsettled,
        seconds: Math.round(history.now() / 1_000),
        ...books,
      },
      complaints,
    };
  } finally {
    await slowdown.stop();
    await stage.stop();
    await previous.remove();
  }
}

const isBroken = ({ status }: Answer): boolean => status === 'timeout' || status >= 500;

const overlap = ({ at, tookMs }: Answer, { from, until }: { from: number; until: number }): boolean =>
  at < until && at + tookMs > from;
