import { setTimeout as sleep } from 'node:timers/promises';
import type { Books, Broken } from './check-books.ts';
import { recordHistory, type Entry, type History } from './history.ts';
import { holdSnapshot } from './hold-snapshot.ts';
import { startFaultyPostgres } from './faulty-postgres.ts';
import { followByPhone } from './follow-by-phone.ts';
import { injectFaults } from './inject-faults.ts';
import { checkAnswers, known200 } from './check-answers.ts';
import { lastingAlone } from './lasting-alone.ts';
import { LANES, PLACES_WHILE_AWAY, isAwayAlone, planFaults, type Kind } from './plan-faults.ts';
import { playOut, type Played } from './play-out.ts';
import type { Probe } from './probe-door.ts';
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
  /** The history of the first broken order. */
  story: Entry[];
};

/** A placement's deadline: longer than a dead process's lease, and short, since a dead POS is waited for as long. */
const DEADLINE_S = 45;
/** The shortest run with a POS that has to be asked. */
const FINDABLE_FROM_S = 60;
/** The lease of a relay that died just before the calm, and some. */
const LIVE_LAG_MS = 12_000;
/** For faults that take longer than planned: a process that has to be ready, a Postgres that starts again. */
const LATE_S = 120;
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
      await Promise.race([injectFaults(stage, plan, seed, history), late(seconds)]);
      await sleep(Math.max(0, seconds * 1_000 - history.now()));
      await tills?.stop();
    };
    const { served, probe, ended, books, broken, complaints, liveLagP99Ms, words } = await playOut({
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
    const recoveries = recoveriesOf(probe, history.entries, ended);
    const { failovers = [], others = [] } = Object.groupBy(recoveries, ({ kind }) =>
      kind === 'failover' ? 'failovers' : 'others',
    );
    const recovery = longest(others, args.recoveryS, complaints);
    const failover = longest(failovers, args.recoveryS * FAILOVER_SHARE, complaints);
    const refusedBesideLasting = probe.refused(lastingAlone(history.entries, args.recoveryS));
    if (refusedBesideLasting > 0) complaints.push(`${refusedBesideLasting} webhooks suffered from a lasting fault`);
    const held = await snapshot?.release();
    if (held !== undefined && held.seconds < SNAPSHOT_SHARE * seconds) {
      complaints.push(`the snapshot was held for ${held.seconds.toFixed(0)} s alone`);
    }
    if (Number(liveLagP99Ms) > LIVE_LAG_MS) complaints.push(`live messages of the calm took ${liveLagP99Ms} ms`);
    print(words);
    return {
      result: {
        seed,
        ok: complaints.length === 0,
        ...books,
        known200: known200(served.answers),
        spilled: served.answers.filter(({ outcome }) => outcome === 'accepted').length,
        recoverySeconds: recovery,
        failoverSeconds: failover,
        refusedBesideLasting,
        liveLagP99Ms,
        phones: phones.all.size,
        tillSales: tills?.sales() ?? 0,
        faults: {
          ...countFaults(plan, scripts, stage, only),
          ...(held === undefined ? {} : { snapshot: held.taken }),
        },
      },
      complaints,
      story: storyOf(broken, history),
    };
  } finally {
    await snapshot?.release();
    await stage.stop();
  }
}

/** Without it a fault of the harness's own that never ends would look like a run that takes its time. */
async function late(seconds: number): Promise<never> {
  await sleep((seconds + LATE_S) * 1_000, undefined, { ref: false });
  throw new Error(`the faults are not over ${LATE_S} s after their time`);
}

type Recovery = { kind: string; name: string; seconds: number | undefined };

function recoveriesOf(probe: Probe, entries: readonly Entry[], ended: number): Recovery[] {
  return entries.flatMap(({ at, what, kind, nth }) =>
    what === 'fault ends' && Object.hasOwn(LANES.database, String(kind))
      ? [{ kind: String(kind), name: `${String(kind)} ${String(nth)}`, seconds: probe.recoverySeconds(at, ended) }]
      : [],
  );
}

function longest(times: readonly Recovery[], limitS: number, complaints: string[]): number | null {
  for (const { name, seconds } of times) {
    if (seconds === undefined) complaints.push(`the door did not come back after ${name}`);
    else if (seconds > limitS) complaints.push(`the door took ${seconds} s to come back after ${name}`);
  }
  return times.some(({ seconds }) => seconds === undefined)
    ? null
    : Math.max(0, ...times.map(({ seconds }) => seconds ?? 0));
}

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
