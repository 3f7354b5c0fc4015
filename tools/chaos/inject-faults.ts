import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import pg from 'pg';
import type { PlatformFault } from '../../world/platform/start-ordering-platform.ts';
import { holdConnections } from '../../world/network/hold-connections.ts';
import type { PosFault, PosRequest } from '../../world/pos/start-pos.ts';
import type { ReceiverFault } from '../../world/receiver/start-receiver.ts';
import { RANK_SENT } from '../../src/core/domain/lifecycle.ts';
import { chance, pick } from './chance.ts';
import { cutSometimes } from './choose-cuts.ts';
import type { History } from './history.ts';
import { holdBodies } from './hold-bodies.ts';
import { holdRow } from './hold-row.ts';
import { ask, neighbour, withNeighbour } from './neighbour.ts';
import type { Fault, Lane, TimedKind } from './plan-faults.ts';
import { FILES, type Instances } from './run-instances.ts';
import { BODY_BUDGET, type Stage } from './set-stage.ts';

const LATENCY_MS = 40;
const TERMINATE_EVERY_MS = 200;
const CUT_PROBABILITY = 0.3;
const ANSWER_MS = 2_000;
/** The number of bodies with which one location fills its share of a process's budget for bodies. */
const BODIES = 4;

/** Injects the planned faults and ends them again. The lanes run in parallel. Resolves when all faults are over. */
export async function injectFaults(
  stage: Stage,
  plan: readonly Fault[],
  seed: number,
  history: History,
): Promise<void> {
  const underWay = new Map<TimedKind, Fault>();
  misbehave(stage, underWay, seed);
  const lanes = Map.groupBy(plan, (fault) => fault.lane);
  await Promise.all(
    [...lanes].map(async ([, faults]) => {
      for (const fault of faults) {
        await sleep(Math.max(0, fault.at * 1_000 - history.now()));
        underWay.set(fault.kind, fault);
        history.note('fault begins', { kind: fault.kind, nth: fault.nth, lasts: fault.lasts });
        await INJECT[fault.lane](stage, fault, seed);
        underWay.delete(fault.kind);
        history.note('fault ends', { kind: fault.kind, nth: fault.nth });
      }
    }),
  );
}

type Inject = (stage: Stage, fault: Fault, seed: number) => Promise<void>;

const INJECT: Record<Lane, Inject> = {
  async processes({ instances }, { kind, nth, lasts }) {
    if (kind === 'kill') await instances.kill(nth);
    else if (kind === 'roll') await instances.roll(nth);
    else await instances.freeze(nth, lasts);
  },
  async database(stage, fault, seed) {
    await DATABASE[fault.kind]?.(stage, fault, seed);
  },
  // All other faults of this lane take effect in `misbehave`, which reads `underWay` at each request.
  async others({ pubsub }, { kind, lasts }) {
    pubsub.faults.publishHangs = kind === 'publish-hang';
    await sleep(lasts * 1_000);
    pubsub.faults.publishHangs = false;
  },
  // What the receiver does while it errs is in `misbehave`.
  async receiver({ receiver }, { kind, lasts }) {
    if (kind === 'receiver-away') await receiver?.leave();
    await sleep(lasts * 1_000);
    await receiver?.comeBack();
  },
  async lasting(stage, fault, seed) {
    await LASTING[fault.kind]?.(stage, fault, seed);
  },
};

const LASTING: Partial<Record<TimedKind, Inject>> = {
  async logstop({ instances }, { lasts }) {
    instances.readLogs(false);
    await sleep(lasts * 1_000);
    instances.readLogs(true);
  },

  async lock({ databaseUrl, kitchens: [, ...others] }, { lasts }) {
    const until = performance.now() + lasts * 1_000;
    const hold = async (client: pg.Client): Promise<void> => {
      const { rows } = await client.query<{ id: string; locationId: string }>(
        `SELECT service_order_id AS id, location_id AS "locationId" FROM orders
         WHERE rank > ${RANK_SENT} AND location_id = ANY ($1::text[]) ORDER BY created_at DESC LIMIT 1`,
        [others.map(({ locationId }) => locationId)],
      );
      const kitchen = others.find(({ locationId }) => locationId === rows[0]?.locationId);
      if (rows[0] === undefined || kitchen === undefined) return;
      const report = { serviceOrderId: rows[0].id, status: 'received' };
      await holdRow(client, rows[0].id, (until - performance.now()) / 1_000, () =>
        kitchen.pos.sendStatus(kitchen.webhookUrl, report, ANSWER_MS),
      );
    };
    while (performance.now() < until) {
      // A fault of Postgres may end the lock, which is then taken again.
      await withNeighbour(databaseUrl, hold).catch(() => {});
      await sleep(100);
    }
  },

  async hogs({ instances, kitchens }, { lasts }) {
    const hogs = kitchens.slice(1, 5);
    const places = instances.urls().length;
    const stop = holdBodies(hogs.length * places * BODIES, BODY_BUDGET / 4 / BODIES, (nth) => {
      const { pathname, search } = new URL(hogs[nth % hogs.length]?.webhookUrl ?? '');
      const url = instances.urls()[Math.floor(nth / hogs.length) % places];
      return url && url + pathname + search;
    });
    await sleep(lasts * 1_000);
    await stop();
  },

  async anonymous({ instances }, { lasts, nth }) {
    const says = nth % 2 === 0 ? 'POST /webhook/standard/x?token=x HTTP/1.1\r\nHost: ' : undefined;
    const port = Number(new URL(instances.urls().at(-1) ?? '').port);
    const held = await holdConnections(port, FILES, { says });
    await sleep(lasts * 1_000);
    held.stop();
  },
};

const DATABASE: Partial<Record<TimedKind, Inject>> = {
  async crash({ postgres }) {
    process.kill(postgres.pid, 'SIGQUIT');
    await postgres.restart();
  },

  async away({ postgres, proxy, instances }, { lasts, nth, kills = 0 }, seed) {
    // A process that starts while Postgres is down knows no tokens, so all must be ready before the first kill.
    if (kills > 0) await instances.untilReady();
    const killing = killInTurn(instances, { first: nth * kills, kills, seconds: lasts });
    const hangs = async (): Promise<void> => {
      proxy.faults.blackhole = true;
      await sleep(lasts * 500);
    };
    const isStopped = async (): Promise<void> => {
      process.kill(postgres.pid, 'SIGQUIT');
      proxy.faults.blackhole = false;
      await sleep(lasts * 500);
    };
    if ((seed + nth) % 2 === 0) {
      await hangs();
      await isStopped();
      await postgres.restart();
    } else {
      await isStopped();
      await Promise.all([postgres.restart(), hangs()]);
      proxy.faults.blackhole = false;
    }
    await killing;
  },

  async failover({ failOver }, { lasts }) {
    await failOver(lasts);
  },

  async terminate({ databaseUrl }, { lasts }) {
    const until = performance.now() + lasts * 1_000;
    while (performance.now() < until) {
      await ask(
        databaseUrl,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'expediter'`,
      );
      await sleep(TERMINATE_EVERY_MS);
    }
  },

  async pause({ databaseUrl, postgres }, { lasts }) {
    const rows = await ask<{ pid: number }>(
      databaseUrl,
      'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
    );
    // The postmaster is stopped first, so that it cannot start new processes, which would not be stopped.
    const all = [postgres.pid, ...rows.map(({ pid }) => pid)];
    signalAll(all, 'SIGSTOP');
    await sleep(lasts * 1_000);
    signalAll(all, 'SIGCONT');
  },

  async exhaust({ databaseUrl }, { lasts }) {
    const neighbours: pg.Client[] = [];
    const until = performance.now() + lasts * 1_000;
    while (performance.now() < until) {
      const client = neighbour(databaseUrl);
      // Connections that the service releases later are taken as well.
      await client.connect().then(
        () => neighbours.push(client),
        () => sleep(100),
      );
    }
    await Promise.all(neighbours.map((client) => client.end()));
  },

  async commit({ proxy }, { lasts, nth }, seed) {
    let drawn = 0;
    proxy.faults.cutAfterCommit = cutSometimes(CUT_PROBABILITY, () => chance(seed, 'commit', nth, (drawn += 1)));
    await sleep(lasts * 1_000);
    proxy.faults.cutAfterCommit = undefined;
  },

  async partition({ proxy }, { lasts }) {
    proxy.faults.blackhole = true;
    await sleep(lasts * 1_000);
    proxy.faults.blackhole = false;
  },

  async latency({ proxy }, { lasts }) {
    proxy.faults.latencyMs = LATENCY_MS;
    await sleep(lasts * 1_000);
    proxy.faults.latencyMs = undefined;
  },
};

/** Kills processes at different places, with equal pauses between them. */
async function killInTurn(
  instances: Instances,
  about: { first: number; kills: number; seconds: number },
): Promise<void> {
  const { first, kills, seconds } = about;
  const kill = async (nth: number): Promise<void> => {
    await sleep((1_000 * seconds * (nth + 1)) / (kills + 1));
    await instances.kill(first + nth);
  };
  await Promise.all(Array.from({ length: kills }, (_, nth) => kill(nth)));
}

/** Makes the POS systems, the platform and Pub/Sub check for current faults before they answer. */
function misbehave(stage: Stage, underWay: ReadonlyMap<TimedKind, Fault>, seed: number): void {
  for (const kitchen of stage.kitchens) {
    const { miscancel } = kitchen.pos;
    const hangs = (): boolean => {
      const fault = underWay.get('hang');
      return fault !== undefined && pick(stage.kitchens, chance(seed, 'hang', fault.nth)) === kitchen;
    };
    kitchen.pos.behave = (request) => (hangs() ? 'hang' : posFault(request, underWay, seed));
    kitchen.pos.miscancel = (...asked) => (hangs() ? 'hang' : miscancel?.(...asked));
  }
  if (stage.receiver !== undefined) {
    stage.receiver.behave = ({ id }) =>
      underWay.has('receiver-errs') ? receiverFault(id, (told += 1), seed) : undefined;
  }
  let told = 0;
  const lagsAfterOutage = replicaThatLags();
  stage.platform.answer = (id) =>
    lagsAfterOutage(id, underWay) ?? platformFault(id, underWay, seed, stage.platform.requests.length);
  let publishes = 0;
  const failsNow = (): boolean => underWay.has('publish') && chance(seed, 'publish', (publishes += 1)) < 0.5;
  stage.pubsub.faults.publishError = () => (failsNow() ? status.UNAVAILABLE : undefined);
  stage.pubsub.faults.publishAnswerError = () => (failsNow() ? status.INTERNAL : undefined);
}

function posFault(
  { order, attempt }: PosRequest,
  underWay: ReadonlyMap<TimedKind, Fault>,
  seed: number,
): PosFault | undefined {
  const drawn = chance(seed, 'pos', order.serviceOrderId, attempt);
  if (underWay.has('drop-answer') && drawn < 0.4) return 'drop-answer';
  if (underWay.has('takes-and-503') && drawn < 0.7) return { status: 503, takes: true };
  if (!underWay.has('refuse') || drawn < 0.4) return undefined;
  return drawn < 0.7 ? { status: 500 } : { status: 429, headers: { 'retry-after': '1' } };
}

const RECEIVER_FAULTS: readonly ReceiverFault[] = [
  'hang',
  'close',
  { status: 500 },
  { status: 429, headers: { 'retry-after': '1' } },
  { status: 503, keeps: true },
  { lateMs: 10_000 },
];

function receiverFault(id: string, nth: number, seed: number): ReceiverFault | undefined {
  if (chance(seed, 'receiver', id, nth) < 0.5) return undefined;
  return pick(RECEIVER_FAULTS, chance(seed, 'receiver errs', id, nth));
}

function platformFault(
  id: string,
  underWay: ReadonlyMap<TimedKind, Fault>,
  seed: number,
  request: number,
): PlatformFault | undefined {
  if (!underWay.has('platform')) return undefined;
  const errors = [{ message: 'the kitchen sink is full', extensions: { code: 'INTERNAL_SERVER_ERROR' } }];
  return pick(['down', 'hang', { errors }, undefined] as const, chance(seed, 'platform', id, request));
}

/** A platform whose replica lags after an outage: its first answer for each waiting order is "no such order". */
function replicaThatLags(): (id: string, underWay: ReadonlyMap<TimedKind, Fault>) => PlatformFault | undefined {
  const waiting = new Set<string>();
  const denied = new Set<string>();
  return (id, underWay) => {
    if (underWay.has('platform-null')) {
      waiting.add(id);
      return 'down';
    }
    if (!waiting.delete(id) || denied.has(id)) return undefined;
    denied.add(id);
    return 'null';
  };
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // The process has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
