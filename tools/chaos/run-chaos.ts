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
import type { Message } from '../../world/pubsub/queue-messages.ts';
import type { Receiver } from '../../world/receiver/start-receiver.ts';
import type { Doors } from '../../world/system/fixtures.ts';
import { setStage, type Stage } from './set-stage.ts';

export type Result = Books & {
  /** Share, 0 to 1, of webhooks answered 200 within 1.5 s. Only webhooks with their own location's token count. */
  known200: number;
  /** Webhooks that were answered `accepted`. */
  spilled: number;
  /** The longest time after a fault of Postgres until webhooks were committed again; null if they never were. */
  recoverySeconds: number | null;
  /** The same after a failover, counted from when the address led to the new primary. */
  failoverSeconds: number | null;
  /** The probe's webhooks that were sent during a lasting fault and were not answered 200. */
  refusedBesideLasting: number;
  /** From commit to publication of a live message, in the calm, while the snapshot is held; null without messages. */
  liveLagP99Ms: number | null;
  /** How many times slower than idle the machine was during the whole run. For information only. */
  slowdown: number;
  /** The number of late times that are no complaint, because the machine was too slow. */
  notJudged: number;
  /** Orders that a phone followed. */
  phones: number;
  /** Copies of live messages that had been taken before. */
  repeated: number;
  /** Sales of tills that were answered 200. */
  tillSales: number;
  faults: Partial<Record<Kind, number>>;
};

export type Report = {
  result: Result;
  /** Every broken promise, in words. */
  complaints: string[];
  /** A sentence for each late time that the machine may have caused. */
  notJudged: string[];
  /** The history of the first broken order. */
  story: Entry[];
};

/** A placement's deadline: longer than the lease of a dead process, but short, because a dead POS uses all of it. */
const DEADLINE_S = 45;
/** Runs from this length on have a POS that must be queried before a repeat. */
const FINDABLE_FROM_S = 60;
/** The limit for the lag of live messages: a bit more than the lease of a relay that died just before the calm. */
const LIVE_LAG_MS = 12_000;
/** The same by webhook: the lease is longer, and a receiver that failed is left alone for up to half a minute. */
const WEBHOOK_LAG_MS = 60_000;
/** Only protects against hanging. It is long, because faults may wait for a process or Postgres to be ready. */
const LATE_S = 600;
/** The longest step of kitchens that cook through an outage, as a share of it. */
const SLOWEST_STEP = 0.4;
const ORDERS_A_PHONE = 10;
/** An old snapshot must be held for at least this share of the run. */
const SNAPSHOT_SHARE = 0.5;
/** A failover may take this share of the recovery time: 3 of 5 s. The new primary is already running then. */
const FAILOVER_SHARE = 0.6;

/** Runs once: sets the stage, plays the scripts with faults, waits until all has settled, and checks the books. */
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
    doors: args.doors,
    findable: seconds >= FINDABLE_FROM_S,
    ...(awayAlone && { places: PLACES_WHILE_AWAY, vendors: [CARELESS] }),
  });
  const locationIds = stage.kitchens.map((kitchen) => kitchen.locationId);
  const plan = planFaults(args);
  // Orders from before the outage are cooked slowly, so that webhooks come during it. Later orders wait for Postgres.
  const slowestStepMs = SLOWEST_STEP * args.awayS * 1_000;
  const orderedBefore = awayAlone ? Number(plan[0]?.at) * ordersPerSecond : 0;
  const scripts = Array.from({ length: seconds * ordersPerSecond }, (_, nth) =>
    scriptOrder(seed, nth + 1, locationIds, only, nth < orderedBefore ? { longestStepMs: slowestStepMs } : {}),
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
    if (stage.receiver !== undefined) complaints.push(...checkReceived(stage.receiver));
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
      { slowdown: slowdown.between(...calm), complaint: (by) => lagging(liveLagP99Ms, by, args.doors) },
      { slowdown: whole, complaint: (by) => checkPace(served.answers, only, by) },
    ]);
    complaints.push(...late);
    const held = await snapshot?.release();
    if (held !== undefined && held.seconds < SNAPSHOT_SHARE * seconds) {
      complaints.push(`the snapshot was held for only ${held.seconds.toFixed(0)} s`);
    }
    print(words);
    return {
      result: {
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
        repeated: stage.published().length - new Set(stage.published().map(nameOf)).size,
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

/** Throws after a time limit. Otherwise an injected fault that never ends would look like a slow run. */
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
  if (seconds === undefined) return `webhooks were not committed again after ${name}`;
  return seconds > limitS ? `webhooks were committed again only ${seconds} s after ${name}` : undefined;
}

const suffered = (refused: number): string | undefined =>
  refused > 0 ? `${refused} webhooks were not answered 200 during a lasting fault` : undefined;

const lagging = (lagMs: number | null, slowdown: number, doors: Doors): string | undefined =>
  Number(lagMs) > (doors === 'http' ? WEBHOOK_LAG_MS : LIVE_LAG_MS) * slowdown
    ? `live messages took ${lagMs} ms in the calm`
    : undefined;

const nameOf = ({ orderingKey, attributes }: Message): string => `${orderingKey}/${attributes['sequence']}`;

/** @returns in words: messages with a wrong signature, and repeats that a receiver cannot drop by their ids */
function checkReceived({ received, refused }: Receiver): string[] {
  const idsOf = Map.groupBy(received, ({ subject, sequence }) => `${subject}/${sequence}`);
  const told = [...idsOf].flatMap(([name, copies]) =>
    new Set(copies.map(({ id }) => id)).size === 1 ? [] : [`message ${name} was repeated with another id`],
  );
  if (new Set(received.map(({ id }) => id)).size !== idsOf.size) told.push('two messages had the same id');
  if (refused() > 0) told.push(`${refused()} messages had a wrong signature`);
  return told;
}

/** @returns the longest recovery in seconds; null if one did not end */
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
  return planted.flatMap(([what, text]) => (text !== '' && log.includes(text) ? [`the log contains ${what}`] : []));
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
