import { setTimeout as sleep } from 'node:timers/promises';
import type { Books, Broken } from './check-books.ts';
import { recordHistory, type Entry, type History } from './history.ts';
import { holdSnapshot } from './hold-snapshot.ts';
import { startFaultyPostgres } from './faulty-postgres.ts';
import { followByPhone } from './follow-by-phone.ts';
import { injectFaults } from './inject-faults.ts';
import { checkAnswers, checkPace, known200 } from './check-answers.ts';
import { judgeTimes, type Timed } from './judge-times.ts';
import { lastingAlone } from './lasting-alone.ts';
import { measureSlowdown } from './measure-slowdown.ts';
import { LANES, PLACES_WHILE_AWAY, isAwayAlone, planFaults, type Kind } from './plan-faults.ts';
import { playOut, type Played } from './play-out.ts';
import type { Probe } from './probe-endpoint.ts';
import type { Arguments } from './read-chaos-arguments.ts';
import { scriptOrder, type Script } from './script-order.ts';
import { TILL_LOCATIONS, sellAtTills, type Tills } from './sell-at-tills.ts';
import { CARELESS } from './send-webhook.ts';
import { CANCEL_REASON, MEMBER, NOTES } from './serve-orders.ts';
import { setStage, type Stage } from './set-stage.ts';

export type Result = Books & {
  seed: number;
  ok: boolean;
  /** Share of the webhooks sent with a token of their own location that were answered 200 within 1.5 s, 0 to 1. */
  known200: number;
  /** Webhooks that were answered `accepted`. */
  spilled: number;
  /** The longest time until webhooks went to Postgres again after a fault of it; null if they did not. */
  recoverySeconds: number | null;
  /** The same after a failover, since the name led to the new primary. */
  failoverSeconds: number | null;
  /** Webhooks of other orders that the door did not take at once beside a lasting fault. */
  refusedBesideLasting: number;
  /** Of the live messages in the calm after the faults, beside the snapshot; null if there were none. */
  liveLagP99Ms: number | null;
  /** How many times slower the machine was than undisturbed, during all of it; by what it was meanwhile, times are judged. */
  slowdown: number;
  /** Times that were late, and are no complaint, since the machine was too slow. */
  notJudged: number;
  /** Orders that a phone followed. */
  phones: number;
  /** Sales of tills that were answered 200. */
  tillSales: number;
  faults: Partial<Record<Kind, number>>;
};

export type Report = {
  result: Result;
  /** Every broken promise, in words. */
  complaints: string[];
  /** What was late, and may be the machine's fault. */
  notJudged: string[];
  /** The history of the first broken order. */
  story: Entry[];
};

/** A placement's deadline: longer than a dead process's lease, and short, since a dead POS is waited for as long. */
const DEADLINE_S = 45;
/** The shortest run with a POS that has to be asked. */
const FINDABLE_FROM_S = 60;
/** The lease of a relay that died just before the calm, and some. */
const LIVE_LAG_MS = 12_000;
/** Only protects against hanging, so it is long: a process has to be ready, a Postgres starts again. */
const LATE_S = 600;
/** The longest step of kitchens that cook through an outage, as a share of it. */
const SLOWEST_STEP = 0.4;
const ORDERS_A_PHONE = 10;
/** Least share of the run in which there has to be an old snapshot. */
const SNAPSHOT_SHARE = 0.5;
/** Of the time to recover, what a failover may take: 3 of 5 s. The new primary is there already. */
const FAILOVER_SHARE = 0.6;

/** Runs once: sets the stage, plays, lets it settle, and checks the books. */
export async function runChaos(args: Arguments, print: (line: string) => void): Promise<Report> {
  const { seed, seconds, ordersPerSecond, only } = args;
  const history = recordHistory();
  const awayAlone = isAwayAlone(only);
  const slowdown = measureSlowdown(history);
  const stage = await setStage({
    seed,
    history,
    database: await startFaultyPostgres(),
    // An outage of Postgres alone must not end an order.
    deadlineS: DEADLINE_S + (awayAlone ? args.awayS : 0),
    deadPos: only.has('dead-pos'),
    clocks: only.has('clock'),
    findable: seconds >= FINDABLE_FROM_S,
    ...(awayAlone && { places: PLACES_WHILE_AWAY, vendors: [CARELESS] }),
  });
  const locationIds = stage.kitchens.map((kitchen) => kitchen.locationId);
  const plan = planFaults(args);
  // They are cooked while Postgres is away: orders that are placed then are not at a POS before it is back.
  const slowestStepMs = SLOWEST_STEP * args.awayS * 1_000;
  const orderedBefore = awayAlone ? Number(plan[0]?.at) * ordersPerSecond : 0;
  const scripts = Array.from({ length: seconds * ordersPerSecond }, (_, nth) =>
    scriptOrder(seed, nth + 1, locationIds, only, nth < orderedBefore ? slowestStepMs : undefined),
  );
  const phones = followByPhone({ url: `${stage.url}/follow`, every: ORDERS_A_PHONE });
  const snapshot = only.has('snapshot') ? holdSnapshot(() => stage.databaseUrl) : undefined;
  try {
    print(`seed ${seed}: ${scripts.length} orders, ${plan.length} faults in ${seconds} s`);
    let tills: Tills | undefined;
    const disturb = async (served: Played['served']): Promise<void> => {
      if (only.has('tills')) tills = sellAtTills(stage.kitchens, seed, served);
      await Promise.race([injectFaults(stage, plan, seed, history), overdue(seconds)]);
      await sleep(Math.max(0, seconds * 1_000 - history.now()));
      await tills?.stop();
    };
    const { served, probe, calm, books, broken, complaints, liveLagP99Ms, words } = await playOut({
      stage,
      scripts,
      ordersPerSecond,
      history,
      disturb,
      phones,
      print,
    });
    complaints.push(...checkAnswers(served.answers, only), ...stage.instances.misbehaved, ...leaks(stage));
    complaints.push(...(tills?.misjudged() ?? []));
    const [, ended] = calm;
    const whole = slowdown.between(0, ended);
    const recoveries = recoveriesOf(probe, history.entries, ended);
    const lasting = lastingAlone(history.entries, args.recoveryS * whole);
    const { complaints: late, notJudged } = judgeTimes([
      ...recoveries.map((each): Timed => {
        const limitS = args.recoveryS * (each.kind === 'failover' ? FAILOVER_SHARE : 1);
        const until = each.seconds === undefined ? ended : each.at + each.seconds * 1_000;
        return { slowdown: slowdown.between(each.at, until), complaint: (by) => tooLong(each, limitS * by) };
      }),
      ...lasting.map((span): Timed => ({
        slowdown: slowdown.between(...span),
        complaint: () => suffered(probe.refused([span])),
      })),
      { slowdown: slowdown.between(...calm), complaint: (by) => lagging(liveLagP99Ms, by) },
      { slowdown: whole, complaint: (by) => checkPace(served.answers, only, by) },
    ]);
    complaints.push(...late);
    const held = await snapshot?.release();
    if (held !== undefined && held.seconds < SNAPSHOT_SHARE * seconds) {
      complaints.push(`the snapshot was held for ${held.seconds.toFixed(0)} s alone`);
    }
    print(words);
    return {
      result: {
        seed,
        ok: complaints.length === 0,
        ...books,
        known200: known200(served.answers),
        spilled: served.answers.filter(({ outcome }) => outcome === 'accepted').length,
        recoverySeconds: longest(recoveries.filter(({ kind }) => kind !== 'failover')),
        failoverSeconds: longest(recoveries.filter(({ kind }) => kind === 'failover')),
        refusedBesideLasting: probe.refused(lasting),
        liveLagP99Ms,
        slowdown: whole,
        notJudged: notJudged.length,
        phones: phones.all.size,
        tillSales: tills?.sales() ?? 0,
        faults: {
          ...countFaults(plan, scripts, stage, only),
          ...(held === undefined ? {} : { snapshot: held.taken }),
        },
      },
      complaints,
      notJudged,
      story: storyOf(broken, history),
    };
  } finally {
    await slowdown.stop();
    await snapshot?.release();
    await stage.stop();
  }
}

/** Without it a fault of the harness's own that never ends would look like a run that takes its time. */
async function overdue(seconds: number): Promise<never> {
  await sleep((seconds + LATE_S) * 1_000, undefined, { ref: false });
  throw new Error(`the faults are not over ${LATE_S} s after their time`);
}

type Recovery = { kind: string; name: string; at: number; seconds: number | undefined };

function recoveriesOf(probe: Probe, entries: readonly Entry[], ended: number): Recovery[] {
  return entries.flatMap(({ at, what, kind, nth }) =>
    what === 'fault ends' && Object.hasOwn(LANES.database, String(kind))
      ? [{ kind: String(kind), name: `${String(kind)} ${String(nth)}`, at, seconds: probe.recoverySeconds(at, ended) }]
      : [],
  );
}

function tooLong({ name, seconds }: Recovery, limitS: number): string | undefined {
  if (seconds === undefined) return `the door did not come back after ${name}`;
  return seconds > limitS ? `the door took ${seconds} s to come back after ${name}` : undefined;
}

const suffered = (refused: number): string | undefined =>
  refused > 0 ? `${refused} webhooks suffered from a lasting fault` : undefined;

const lagging = (lagMs: number | null, slowdown: number): string | undefined =>
  Number(lagMs) > LIVE_LAG_MS * slowdown ? `live messages of the calm took ${lagMs} ms` : undefined;

/** @returns null if one of them did not end */
const longest = (times: readonly Recovery[]): number | null =>
  times.some(({ seconds }) => seconds === undefined) ? null : Math.max(0, ...times.map(({ seconds }) => seconds ?? 0));

function countFaults(
  plan: ReturnType<typeof planFaults>,
  scripts: readonly Script[],
  stage: Stage,
  only: ReadonlySet<Kind>,
): Partial<Record<Kind, number>> {
  const counts: Partial<Record<Kind, number>> = {};
  const all = [...plan.map((fault) => fault.kind), ...scripts.flatMap((script) => script.faults)];
  for (const kind of all) counts[kind] = (counts[kind] ?? 0) + 1;
  const kills = plan.reduce((sum, fault) => sum + (fault.kills ?? 0), counts.kill ?? 0);
  if (kills > 0) counts.kill = kills;
  if (only.has('dead-pos')) counts['dead-pos'] = stage.kitchens.filter((kitchen) => kitchen.dead).length;
  if (only.has('clock')) counts.clock = 1 + plan.filter(({ kind }) => kind === 'kill' || kind === 'roll').length;
  if (only.has('tills')) counts.tills = TILL_LOCATIONS;
  return counts;
}

/** Finds secrets and member data in the log. */
function leaks({ instances, secrets }: Stage): string[] {
  const log = instances.log();
  const ofMember = Object.entries({ ...MEMBER, notes: NOTES, 'reason to cancel': CANCEL_REASON }).map(
    ([what, text]) => [`a member's ${what}`, text],
  );
  const planted = [...secrets.map((secret) => ['a secret', secret]), ...ofMember] as [string, string][];
  return planted.flatMap(([what, text]) => (text !== '' && log.includes(text) ? [`the log holds ${what}`] : []));
}

function storyOf(broken: readonly Broken[], history: History): Entry[] {
  const order = broken.find((each) => each.order !== undefined)?.order;
  if (order === undefined) return [];
  const about = ({ what, order: of }: Entry): boolean =>
    of === order || what.startsWith('fault') || what.startsWith('process');
  const own = history.entries.filter((entry) => entry.order === order);
  const [from, to] = [own[0]?.at ?? 0, own.at(-1)?.at ?? 0];
  return history.entries.filter((entry) => about(entry) && entry.at >= from - 5_000 && entry.at <= to + 5_000);
}
