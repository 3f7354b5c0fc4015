/** Runs one seed: two processes, their world, the faults, and the books at the end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { checkBooks } from '../chaos/check-books.ts';
import { chance, pick, shuffle } from '../chaos/chance.ts';
import { followByPhone, type Phones } from '../chaos/follow-by-phone.ts';
import type { Entry, History } from '../chaos/history.ts';
import { ALWAYS } from '../chaos/plan-faults.ts';
import { scriptOrder, type Script } from '../chaos/script-order.ts';
import type { Kitchen } from '../chaos/send-status.ts';
import { CARELESS, VENDORS } from '../chaos/send-webhook.ts';
import { serveOrders, type Served } from '../chaos/serve-orders.ts';
import type { StageDatabase } from '../chaos/faulty-postgres.ts';
import type { Stage } from '../chaos/set-stage.ts';
import { resolveDoubts, settle, telephone } from '../chaos/settle.ts';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { LiveMessage } from '../../src/core/domain/live-message.ts';
import { liveProcesses } from '../../src/core/domain/live-processes.ts';
import { RANK_FAILED, RANK_SENT, rankOf } from '../../src/core/domain/lifecycle.ts';
import { readConfig } from '../../src/config/config.ts';
import { ALLOW_PRIVATE_HOSTS, allowedHosts } from '../../world/network/allowed-loopback.ts';
import { FOLLOW_ENV } from '../../world/members/member-token.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { POS_NAMES, type PosName } from '../../world/pos/index.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { planFaults, type Applied, type Faults, type Held, type Moment } from './faults.ts';
import { noteTickets, readHistories, type OrderOfRun } from './order-histories.ts';
import { operate, type KitchenOfRun } from './operate.ts';
import { setNetwork, simulateNetwork, type Network, type OriginOfRun } from './network.ts';
import { beginSchedule, newParty, type Party, type Schedule } from './schedule.ts';
import { beginServing } from './serve-in-memory.ts';
import { startProcess, type ServiceProcess } from './service-process.ts';
import { labelOf, setWire } from './simulated-connection.ts';
import type { PostgresServer, SimulatedPostgres } from './simulated-postgres.ts';
import { PUBSUB, startBroker, type Broker } from './simulated-pubsub.ts';
import { watchInvariants, type Invariants } from './invariants.ts';
import { loadCode, SLOW, type Code } from './load-code.ts';
import { checkPager, CONTACTS, GATEWAY_SECRET, startGateway, type Told } from './tell-people.ts';
import { restorer, type Restoring } from './restore.ts';
import { startVendorPos } from './vendor-pos.ts';

export type RunOptions = {
  seed: number;
  orders: number;
  /** Only these orders, by their numbers from 1. */
  onlyOrders?: ReadonlySet<number> | undefined;
  /** Only these faults, by their ids. */
  onlyFaults?: ReadonlySet<string> | undefined;
  keepLines?: boolean;
  /** The run ends when this is broken. */
  untilBroken?: string | undefined;
  /** The version before. A process that was killed may start again as this version. */
  previous?: Code | undefined;
};
export type RunResult = {
  seed: number;
  /** The numbers of the orders that were placed. */
  orders: readonly number[];
  complaints: readonly Complaint[];
  applied: readonly Applied[];
  digest: string;
  /** Virtual seconds. */
  seconds: number;
  events: number;
  entries: readonly Entry[];
  lines: readonly string[];
  histories: readonly OrderOfRun[];
};
/** `what` names the promise or the invariant, and is the same in each run that breaks it. */
export type Complaint = { what: string; order?: string | undefined; why: string };

const ORIGIN = 'https://expediter.test';
const PLATFORM_TOKEN = 'platform-token';
const POS_SECRET = `whsec_${Buffer.from('the secret of the simulation').toString('base64')}`;
/** Some seeds are a rush, in which many webhooks are in one batch. */
const ORDERS_PER_SECOND = [5, 20, 20, 40];
/** The share of orders that their member cancels, and of those that are changed. */
const CANCELS = [0.1, 0.5];
/** The share of these cancels by which the platform empties the order. The version before cannot read them. */
const EMPTIED = 0.5;
const DEADLINE_S = 45;
/** The longest time until a member cancels or changes an order. */
const DOING_MS = [300, 3_000, 15_000];
/** The share of seeds in which a person looks at the board during the faults too, every few seconds. */
const WATCHFUL = { share: 0.5, everyMs: 3_000 };
/** The share of seeds in which the platform takes up to so long each time. */
const SLOW_PLATFORM = { share: 0.2, mostMs: 4_000 };
/**
 * The share of seeds that go on until POS systems were asked about each order without any webhook. There, these
 * POS systems do not send this share of their reports.
 */
const PATIENT = { share: 0.1, forMs: 960_000, lost: 0.6 };
/** The share of seeds in which some POS systems never answer a request to cancel, so that a person telephones. */
const IGNORED_CANCELS = 0.1;
/** A location is asked about one order each minute, and about none in the first minutes. */
const MOST_ASKED = 6;
const isPatient = (seed: number): boolean => chance(seed, 'patient') < PATIENT.share;
/** The share of seeds in which all kitchens report at full seconds, as if one hand moved all tickets. */
const TOGETHER = 0.2;
/** Faults go on for this long after the last order was placed. */
const FAULTS_AFTER_MS = 10_000;
/** A wall clock is set ahead or back by at most half of this. */
const MOST_CLOCK_MS = 1_200_000;
/** The longest time in which the platform says of an order that it does not have it. A fifteenth of the deadline is more. */
const STALE_MS = 2_500;
const SETTLE_S = 700;
/** The invariants are checked at this interval. */
const CHECK_MS = 2_000;
/** After the faults, if nobody has called anybody for some time, all that happens is polls: time then leaps. */
const LEAP = { afterMs: 3_000, byMs: 20_000 };
const MOST_VIRTUAL_MS = 3_600_000;
const INTEGRATIONS = ['standard', 'standard', 'blind', 'findable', 'standard', 'slow'];
/** Each seed has some of the vendors. */
const VENDORS_OF = POS_NAMES.filter((name) => name !== 'standard');
const VENDORS_EACH = 2;
/** One of this many members follows the order. */
const PHONE_EVERY = 4;
const PLACES = ['A', 'B'];

const ENVIRONMENT = {
  DATABASE_URL: 'postgres://expediter@postgres.test/expediter',
  HOST: '127.0.0.1',
  PUBLIC_URL: ORIGIN,
  ORDER_API_TOKEN: PLATFORM_TOKEN,
  ORDER_MODULE: fileURLToPath(new URL('../../examples/order-with-cancels.ts', import.meta.url)),
  GOOGLE_CLOUD_PROJECT: 'simulated',
  SPILL_TOPIC: 'spill',
  PUSH_AUTH: 'off',
  SETTINGS_KEY: `simulated:${Buffer.alloc(32, 7).toString('base64')}`,
  ALLOW_PRIVATE_HOSTS,
  PROVIDER_MODULES: '',
  ...FOLLOW_ENV,
  PLACEMENT_DEADLINE_S: String(DEADLINE_S),
  ATTENTION_TOPIC: 'attention',
};
/** The folder of the project. */
export const OURS = fileURLToPath(new URL('../..', import.meta.url));
/** Where a version before is known, how often a process that starts again has it. */
const PREVIOUS = 0.5;
const PER_ORDER = new Set(ALWAYS);

/** @param server a server prepared for runs */
export async function runSeed(server: PostgresServer, options: RunOptions): Promise<RunResult> {
  const { seed, orders: count, onlyOrders, onlyFaults } = options;
  // What a process knows from a run before would change this one.
  liveProcesses.count = 1;
  const schedule = beginSchedule(seed, options.keepLines === true);
  const ordersPerSecond = pick(ORDERS_PER_SECOND, chance(seed, 'rush'));
  const untilMs = (count / ordersPerSecond) * 1_000 + FAULTS_AFTER_MS;
  const faults = planFaults(schedule, { untilMs, only: onlyFaults });
  const complaints: Complaint[] = [];
  let isOver = false;
  const complain = (complaint: Complaint): void => {
    if (complaints.length < 100) complaints.push(complaint);
    if (complaint.what === options.untilBroken) isOver = true;
    schedule.note(`complaint ${complaint.what} ${complaint.why}`);
  };
  beginServing();
  const postgres = await server.open(schedule, (pids) =>
    complain({ what: 'invariant 1', why: `${pids} sessions wait for each other's locks` }),
  );
  const code = await loadCode(OURS);
  const world = newParty('world');
  const history = historyOf(schedule);
  const kitchens: KitchenOfRun[] = [];
  const invariants = watchInvariants({ schedule, pool: postgres.pool, kitchens, complain });
  const processes = new Map<string, ServiceProcess>();
  const origins: WorldAbout['origins'] = new Map();
  const checkAgain = (): void =>
    void schedule.after(CHECK_MS, undefined, async () => {
      await invariants.check();
      checkAgain();
    });
  checkAgain();
  const parts = { schedule, faults, history, postgres, code, invariants, kitchens, origins, processes, complain };
  const { kill, network, broker } = connectParts(parts);
  const integrations = [...INTEGRATIONS, ...shuffle(VENDORS_OF, seed, 'vendors').slice(0, VENDORS_EACH)];
  leapWhenIdle(parts, network, world, untilMs);
  const locationIds = integrations.map((_, nth) => `club-${nth + 1}`);
  const numbers = Array.from({ length: count }, (_, nth) => nth + 1).filter((nth) => onlyOrders?.has(nth) !== false);
  const emptied = options.previous === undefined ? EMPTIED : 0;
  const scripts = scriptsOf(seed, numbers, locationIds, emptied);
  const play = (): Promise<void> =>
    schedule.play(() => {
      if (schedule.now() <= MOST_VIRTUAL_MS) return isOver;
      complain({ what: 'the run does not end', why: `${MOST_VIRTUAL_MS / 60_000} minutes have passed` });
      return true;
    });

  const { begin, stop } = starter(parts, kill, options.previous);
  let histories: RunResult['histories'] = [];
  try {
    schedule.after(0, world, () => {
      void playWorld({
        ...parts,
        seed,
        count,
        integrations,
        scripts,
        ordersPerSecond,
        broker,
        network,
        untilMs,
        begin,
        stop,
      }).then(
        () => (isOver = true),
        (error: unknown) => {
          complain({ what: 'world', why: (error as Error).stack ?? String(error) });
          isOver = true;
        },
      );
    });
    await play();
    await invariants.check();
    histories = await readHistories(postgres.pool);
  } finally {
    for (const { party } of processes.values()) party.isDead = true;
    world.isDead = true;
    setWire(undefined);
    await postgres.close();
  }
  return {
    seed,
    orders: numbers,
    complaints,
    applied: faults.applied,
    digest: schedule.digest(),
    seconds: schedule.now() / 1_000,
    events: schedule.events(),
    entries: history.entries,
    lines: schedule.lines(),
    histories,
  };
}

/** What a run has before its processes start. */
type Parts = Pick<
  WorldAbout,
  'schedule' | 'faults' | 'history' | 'postgres' | 'code' | 'invariants' | 'kitchens' | 'origins' | 'complain'
> & { processes: Map<string, ServiceProcess> };

/** Connects the processes with their database, Pub/Sub and the world. */
function connectParts(parts: Parts): { kill: Kill; network: Network; broker: Broker } {
  const { schedule, faults, history, postgres, invariants, processes, origins } = parts;
  const leave = (party: Party): void => {
    broker.leave(party);
    network.drop(party);
  };
  const kill = killer({ schedule, faults, history, processes, leave });
  const mayDie = (party: Party, label: string, moment: Moment): void => {
    if (!isService(party)) return;
    if (faults.kills(party, label, moment)) kill(party);
    const ms = faults.freezes(party, label, moment);
    if (ms > 0) party.frozenUntil = Math.max(party.frozenUntil, schedule.now() + ms);
  };
  const network = simulateNetwork({
    faults,
    onSend: mayDie,
    async onCall(from, request, when) {
      if (isService(from)) await invariants.onCall(from, request, when);
    },
    origins,
    onAnswer(from, { method, url }, answer) {
      schedule.note(`${from.name} ${method} ${url.host}${url.pathname} ${answer === 'cut' ? answer : answer.status}`);
    },
  });
  setNetwork(network);
  setWire({
    postgres,
    faults,
    onSend: mayDie,
    onResult(party, query, outcome) {
      const became = 'error' in outcome ? outcome.error.message : `${outcome.result.rowCount ?? 0} rows`;
      schedule.note(`${party.name} ${labelOf(query)}: ${became}`);
      invariants.onResult(party, query, outcome);
    },
    onGap: invariants.onGap,
    holdRow: (order, forMs) => holdRow(schedule, postgres, order, forMs),
  });
  const broker = startBroker(invariants.onPublished);
  network.serve(ORIGIN, () => {
    const ready = [...processes.values()].filter((each) => !each.party.isDead && each.isReady());
    return ready.length === 0 ? undefined : pick(ready, schedule.draw('balancer')).endpoint;
  });
  return { kill, network, broker };
}

/** After the faults, if nobody calls anybody, all parties stand still until some time later. */
function leapWhenIdle({ schedule, processes }: Parts, network: Network, world: Party, fromMs: number): void {
  const leap = (): void => {
    const leaps = network.idleMs() > LEAP.afterMs;
    if (leaps) {
      const until = schedule.now() + LEAP.byMs;
      for (const party of [world, ...[...processes.values()].map((each) => each.party)]) party.frozenUntil = until;
    }
    schedule.after(leaps ? LEAP.byMs + LEAP.afterMs : 1_000, undefined, leap);
  };
  schedule.after(fromMs, undefined, leap);
}

/** What each order's kitchen and member do. */
function scriptsOf(
  seed: number,
  numbers: readonly number[],
  locationIds: readonly string[],
  emptied: number,
): Script[] {
  const cancels = pick(CANCELS, chance(seed, 'cancels'));
  const share = { cancels, emptied, changes: cancels, doingMs: pick(DOING_MS, chance(seed, 'doing')) };
  const scripts = numbers.map((nth) => scriptOrder(seed, nth, locationIds, PER_ORDER, share));
  for (const script of scripts) {
    // A vendor's webhook cannot be about another POS's ticket, and need not name our id.
    if (!isOwn(script.meddler)) script.meddler = undefined;
    if (script.change !== undefined && !isOwn(script.change.movesTo)) script.change.movesTo = undefined;
    if (!isOwn(script.locationId)) for (const report of script.reports) report.names = 'theirs';
  }
  return scripts;
}

/** Starts the processes, again after each kill. */
function starter(parts: Parts, kill: Kill, previous: Code | undefined): Pick<WorldAbout, 'begin' | 'stop'> {
  const { schedule, faults, history, processes, complain, code } = parts;
  /** The starts that wait while the database is restored. */
  let held: (() => void)[] | undefined;
  const stop = (): (() => void) => {
    held = [];
    for (const { party } of processes.values()) kill(party);
    return () => {
      const starts = held ?? [];
      held = undefined;
      for (const each of starts) each();
    };
  };
  const begin = (environment: Readonly<Record<string, string>>): void => {
    const start = (place: string, nth: number): void => {
      if (held !== undefined) return void held.push(() => start(place, nth));
      return void schedule.after(0, undefined, async () => {
        const name = `${place}.${nth}`;
        const isOld = nth > 1 && chance(schedule.seed, 'version', place, nth) < PREVIOUS;
        const chosen = isOld && previous !== undefined ? previous : code;
        history.note('process starts', { process: name, version: chosen.version });
        processes.set(
          place,
          await startProcess(name, chosen, environment, (error) => complain({ what: 'start', why: String(error) })),
        );
        if (held !== undefined) for (const { party } of processes.values()) kill(party);
      });
    };
    kill.onDead = (place, nth) =>
      schedule.after(500 + 8_000 * schedule.draw('restart'), undefined, () => start(place, nth + 1));
    for (const place of PLACES) start(place, 1);
    scheduleLasting({ schedule, faults, processes });
  };
  return { begin, stop };
}

/** Whether a location is of a sample POS, and not of a vendor. */
const isOwn = (locationId = ''): boolean => Number(locationId.slice('club-'.length)) <= INTEGRATIONS.length;
const isService = ({ name }: Party): boolean => /^[AB]\.\d+$/.test(name);

function historyOf(schedule: Schedule): History {
  const entries: Entry[] = [];
  return {
    begin() {},
    now: () => Math.round(schedule.now()),
    entries,
    note(what, about = {}) {
      entries.push({ ...about, at: Math.round(schedule.now()), what });
      schedule.note(`${what} ${JSON.stringify(about)}`);
    },
  };
}

type Kill = { (party: Party): void; onDead: (place: string, nth: number) => void };

/** kill -9: the code never runs again, and its connections close. */
function killer(about: {
  schedule: Schedule;
  faults: Faults;
  history: History;
  processes: Map<string, ServiceProcess>;
  leave: (party: Party) => void;
}): Kill {
  const { schedule, faults, history, processes, leave } = about;
  const kill: Kill = Object.assign(
    (party: Party): void => {
      if (party.isDead) return;
      party.isDead = true;
      history.note('process is killed', { process: party.name });
      const [place = '', nth = '1'] = party.name.split('.');
      processes.delete(place);
      for (const { end } of faults.drop(party)) schedule.after(0, undefined, end);
      schedule.after(0, undefined, () => leave(party));
      kill.onDead(place, Number(nth));
    },
    { onDead: (): void => {} },
  );
  return kill;
}

/** Locks the row of an order from outside the service. */
async function holdRow(schedule: Schedule, postgres: SimulatedPostgres, order: string, forMs: number): Promise<void> {
  const session = await postgres.connect('');
  const ignore = (): void => {};
  await session.run({ text: 'BEGIN' }, ignore);
  const text = 'SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE SKIP LOCKED';
  await session.run({ text, values: [order] }, ignore);
  schedule.after(forMs, undefined, session.end);
}

function scheduleLasting({
  schedule,
  faults,
  processes,
}: {
  schedule: Schedule;
  faults: Faults;
  processes: Map<string, ServiceProcess>;
}): void {
  const ofServices = (): Held[] => faults.held().filter(({ party }) => isService(party));
  for (const planned of faults.planned) {
    schedule.after(planned.at, undefined, () => {
      const party = processes.get(PLACES[planned.place] ?? '')?.party;
      if (party === undefined) return;
      faults.begin(planned, party);
      const { kind, forMs, by } = planned;
      if (kind === 'frozen') party.frozenUntil = schedule.now() + forMs;
      if (kind === 'clock set') party.clockAheadMs = (by - 0.5) * MOST_CLOCK_MS;
      if (kind === 'Postgres down') {
        for (const held of ofServices()) schedule.after(0, held.party, () => held.breakOff(0));
      }
      if (kind === 'old leader') {
        for (const held of ofServices()) {
          schedule.after(0, undefined, async () => {
            if (!(await held.demote())) schedule.after(0, held.party, () => held.breakOff(0));
          });
        }
      }
      schedule.after(forMs, undefined, () => {
        faults.end(planned, party);
        if (kind === 'clock set') party.clockAheadMs = 0;
      });
    });
  }
}

type WorldAbout = {
  kitchens: KitchenOfRun[];
  origins: Map<string, OriginOfRun>;
  seed: number;
  /** How many orders the seed has. `scripts` has those that are placed. */
  count: number;
  schedule: Schedule;
  integrations: readonly string[];
  scripts: readonly Script[];
  ordersPerSecond: number;
  history: History;
  broker: Broker;
  network: Network;
  code: Code;
  faults: Faults;
  untilMs: number;
  begin(environment: Readonly<Record<string, string>>): void;
  /** Kills all processes, and lets none start until what it returns is called. */
  stop(): () => void;
  invariants: Invariants;
  complain(complaint: Complaint): void;
  postgres: SimulatedPostgres;
};

/** Members, kitchens and the platform: the code of chaos, in virtual time. */
async function playWorld(about: WorldAbout): Promise<void> {
  const { kitchens, schedule, scripts, ordersPerSecond, history, broker, faults, untilMs } = about;
  const platform = await startPlatform(schedule, faults);
  const environment = { ...ENVIRONMENT, ORDER_API_URL: platform.url };
  const pool = new pg.Pool({ max: 4 });
  const config = readConfig(environment);
  const rules = {
    registry: about.code.registry,
    keys: config.SETTINGS_KEY,
    publicUrl: config.PUBLIC_URL,
    allowedHosts,
  };
  kitchens.push(...(await openKitchens(pool, rules, about)));
  const areIgnored = chance(about.seed, 'ignored cancels') < IGNORED_CANCELS;
  for (const { integration, pos } of kitchens) {
    const slowMs = integration === SLOW.integration ? SLOW.slowMs : undefined;
    const ignoresCancels = areIgnored && integration === 'standard';
    about.origins.set(new URL(pos.url).origin, { slowMs, ignoresCancels });
  }
  const isSlow = chance(about.seed, 'slow platform') < SLOW_PLATFORM.share;
  about.origins.set(new URL(platform.url).origin, { slowMs: isSlow ? SLOW_PLATFORM.mostMs : undefined });
  about.origins.set(PUBSUB, {});
  const told = await startGateway({ seed: about.seed, pool, history, kitchens, reported: () => served.reported });
  about.begin({ ...environment, NOTIFY_WEBHOOK_URL: told.url, NOTIFY_WEBHOOK_SECRET: GATEWAY_SECRET });
  await sleep(2_000);
  const closing = new AbortController();
  const stage = {
    kitchens,
    platform,
    pubsub: { unacknowledged: () => broker.unacknowledged(), published: broker.published },
    signal: (orderId: string) => broker.publish('orders', Buffer.from(JSON.stringify({ orderId }))),
    published: () => broker.published('order-status'),
  } as unknown as Stage<StageDatabase>;
  const beganAt = schedule.now();
  const phones = followByPhone({ url: `${ORIGIN}/follow`, every: PHONE_EVERY });
  const served = serveOrders({
    stage,
    scripts,
    ordersPerSecond,
    history: { ...history, now: () => Math.round(schedule.now() - beganAt) },
    onPlaced: phones.placed,
    signal: closing.signal,
  });
  noteTickets(about.postgres.pool, kitchens);
  const restoring = restorer({
    server: about.postgres.pool,
    pool,
    rules,
    deadlineS: DEADLINE_S,
    history,
    broker,
    invariants: about.invariants,
    served,
    locations: () => kitchens.map(({ locationId }) => locationId),
    move: (by) => moveOrder({ kitchens, scripts, platform, served, history }, by),
    stop: about.stop,
  });
  const act = operate({
    pool,
    history,
    kitchens,
    served,
    origins: about.origins,
    restore: restoring.act,
    orders: Array.from({ length: about.count }, (_, nth) => {
      const script = scripts.find((each) => each.serviceOrderId.endsWith(`-${nth + 1}`));
      return script?.cancel === undefined ? script?.serviceOrderId : undefined;
    }),
    secret: POS_SECRET,
  });
  const acts = faults.acts.map(async (each) => {
    await sleep(each.at);
    faults.act(each);
    await act(each);
  });
  if (chance(about.seed, 'watchful') < WATCHFUL.share) {
    while (schedule.now() < untilMs) {
      await sleep(WATCHFUL.everyMs);
      await resolveDoubts(pool, kitchens, history);
    }
  }
  await sleep(Math.max(0, untilMs - schedule.now()));
  await Promise.all(acts);
  await served.finished();
  const playing = { pool, stage, served, told, restoring };
  await settleAll(about, playing);
  if (isPatient(about.seed)) {
    await sleep(PATIENT.forMs);
    await checkPatient(about, playing);
    await settleAll(about, playing);
  }
  await phones.untilTold(broker.published('order-status'));
  phones.stop();
  history.note('phones got', { messages: [...phones.all.values()].map(({ told }) => told.length) });
  closing.abort();
  // A database that was restored does not know whom it has told.
  if (restoring.floor() === 0) told.check((why) => about.complain({ what: 'told twice', why }));
  await checkPager(pool, broker.published('attention'), (why) => about.complain({ what: 'pager', why }));
  await checkAll(about, { served, pool, kitchens, phones, restoring });
}

/** A platform that periodically says of an order that it does not have it. */
async function startPlatform(schedule: Schedule, faults: Faults): Promise<OrderingPlatform> {
  const platform = await startOrderingPlatform({ token: PLATFORM_TOKEN });
  const missingSince = new Map<string, number>();
  platform.answer = (order) => {
    if (!faults.isMissing(order) && !faults.isDown('platform')) return undefined;
    const since = missingSince.get(order) ?? schedule.now();
    missingSince.set(order, since);
    return schedule.now() - since < STALE_MS ? 'null' : undefined;
  };
  return platform;
}

/** The platform moves an order to another location. */
function moveOrder(
  about: {
    kitchens: readonly KitchenOfRun[];
    scripts: readonly Script[];
    platform: OrderingPlatform;
    served: Served;
    history: History;
  },
  by: number,
): void {
  const { kitchens, scripts, platform, served, history } = about;
  // What its script does with it would differ at another location.
  const free = scripts.filter(
    (each) =>
      !each.cancel &&
      !each.change &&
      !each.meddler &&
      isOwn(each.locationId) &&
      platform.orders.has(each.serviceOrderId),
  );
  const { serviceOrderId, locationId } = free[Math.floor(by * free.length)] ?? {};
  if (serviceOrderId === undefined || locationId === undefined) return;
  const others = kitchens.filter((each) => isOwn(each.locationId) && each.locationId !== locationId);
  const to = pick(others, by).locationId;
  history.note('the platform moves it', { order: serviceOrderId, to });
  served.moved.set(serviceOrderId, locationId);
  platform.orders.set(serviceOrderId, { ...(platform.orders.get(serviceOrderId) as object), locationId: to });
}

type Playing = {
  pool: pg.Pool;
  stage: Stage<StageDatabase>;
  served: ReturnType<typeof serveOrders>;
  told: Told;
  restoring: Restoring;
};

/** Waits until nothing is left to do. Meanwhile people phone, and look at the kitchens for orders in doubt. */
async function settleAll(
  { schedule, kitchens, history, network, complain }: WorldAbout,
  { pool, stage, served, restoring }: Playing,
): Promise<void> {
  const began = schedule.now();
  for (let isSettled = false; !isSettled;) {
    const recovering = await restoring.goOn();
    const open = await settle(pool, stage.pubsub, served.accepted, SETTLE_S);
    if (open !== undefined || schedule.now() - began > MOST_VIRTUAL_MS / 2) {
      complain({ what: 'not settled', why: JSON.stringify(open) });
      break;
    }
    // An order whose POS has reported it is sent, even if createOrder is still under way. Its answer may bring news.
    while (network.idleMs() === 0) await sleep(1_000);
    const calls = await telephone(pool, kitchens, served, history);
    const doubts = await resolveDoubts(pool, kitchens, history);
    const { waited } = await served.finished();
    const { rows } = await pool.query(`SELECT FROM cancellations WHERE state = 'by_phone' AND finished_at IS NULL`);
    // Meanwhile a member may have cancelled an order.
    const isOver = (await settle(pool, stage.pubsub, served.accepted, 0)) === undefined;
    isSettled = calls + doubts + rows.length + recovering === 0 && !waited && isOver;
    // An operator cannot conclude a cancel while its call is under way.
    if (rows.length > 0) await sleep(1_000);
  }
}

/** Contacts know of failed orders. A POS that is asked knows what it has received, even if its webhook was lost. */
async function checkPatient({ kitchens, complain }: WorldAbout, { pool, told }: Playing): Promise<void> {
  const { rows: failed } = await pool.query<{ order: string; locationId: string; code: string }>(
    `SELECT service_order_id AS "order", location_id AS "locationId", call_out_code AS code
     FROM orders o WHERE failed_by_us AND rank = ${RANK_FAILED}
       -- A restaurant whose ticket was called off has seen that, or was telephoned.
       AND NOT EXISTS (SELECT FROM cancellations c WHERE c.service_order_id = o.service_order_id AND c.state = 'cancelled')`,
  );
  for (const { order, locationId, code } of failed) {
    if (!told.has(locationId, code)) complain({ what: 'not told', order, why: 'no contact knows that it failed' });
  }
  for (const { locationId, pos } of kitchens.filter((each) => each.isAsked && each.pos.tickets.length <= MOST_ASKED)) {
    const { rows } = await pool.query<{ order: string; rank: number }>(
      `SELECT service_order_id AS "order", rank FROM orders
       WHERE location_id = $1 AND ended_at IS NULL AND rank BETWEEN ${RANK_SENT} AND ${rankOf('received') - 1}`,
      [locationId],
    );
    for (const { order, rank } of rows) {
      const ticket = pos.tickets.find((each) => each.serviceOrderId === order);
      if (ticket?.status === undefined) continue;
      complain({ what: 'not asked', order, why: `its POS says ${ticket.status}, and its rank is still ${rank}` });
    }
  }
}

async function checkAll(
  { broker, complain }: WorldAbout,
  {
    phones,
    restoring,
    ...about
  }: { served: Served; pool: pg.Pool; kitchens: readonly Kitchen[]; phones: Phones; restoring: Restoring },
): Promise<void> {
  const live = broker.published('order-status');
  const floor = restoring.floor();
  const { broken } = await checkBooks({ ...about, phones: phones.all, live, floor });
  const messages = live.map(({ data }) => LiveMessage.parse(JSON.parse(data.toString())));
  for (const { count, order, why } of broken) {
    // After a loss, only live messages say that an order that was moved has its ticket elsewhere.
    const from = about.served.moved.get(order ?? '');
    const isTold = messages.some(({ serviceOrderId: id, locationId }) => id === order && locationId === from);
    if (from !== undefined && floor > 0 && (restoring.isBlind() || !isTold)) continue;
    complain({ what: count, order, why });
  }
  for (const message of broker.dead()) complain({ what: 'signal given up', why: message.data.toString() });
}

async function openKitchens(
  pool: pg.Pool,
  rules: Parameters<typeof putLocation>[1],
  { seed, integrations, schedule }: WorldAbout,
): Promise<KitchenOfRun[]> {
  const kitchens: KitchenOfRun[] = [];
  const isTogether = chance(seed, 'together') < TOGETHER;
  const lost = isPatient(seed) ? PATIENT.lost : 0;
  for (const [nth, integration] of integrations.entries()) {
    const locationId = `club-${nth + 1}`;
    const isVendor = nth >= INTEGRATIONS.length;
    const provider = rules.registry.get(integration);
    if (provider === undefined) throw new Error(`there is no provider ${integration}`);
    const { pos, settings } = isVendor
      ? await startVendorPos(integration as PosName, provider)
      : await startSamplePos(integration, nth);
    const isAsked = 'statusUrl' in settings;
    const sendStatus = pos.sendStatus.bind(pos);
    pos.sendStatus = async (...sent) => {
      const [, report] = sent;
      if (isTogether) await sleep(1_000 - (schedule.now() % 1_000));
      const ticket = pos.tickets.find(
        ({ serviceOrderId, providerOrderId }) =>
          serviceOrderId === report.serviceOrderId || providerOrderId === report.providerOrderId,
      );
      const isLost = isAsked && chance(seed, 'lost report', ticket?.serviceOrderId ?? '', report.status) < lost;
      if (!isLost || ticket === undefined) return sendStatus(...sent);
      pos.become(ticket, report.status);
      throw new Error('the POS does not send it');
    };
    const save = (): Promise<unknown> =>
      putLocation(pool, rules, { locationId, integration, settings, contacts: CONTACTS });
    await save();
    const { token } = await issueToken(pool, { locationId });
    const webhookUrl = `${ORIGIN}/webhook/${integration}/${locationId}?token=${token}`;
    // Vendors' simulators repeat webhooks automatically.
    const vendor =
      isVendor || (isAsked && lost > 0) ? CARELESS : pick(VENDORS, (nth % VENDORS.length) / VENDORS.length);
    kitchens.push({
      locationId,
      integration,
      pos,
      vendor,
      webhookUrl,
      dead: false,
      save,
      isAsked,
    });
  }
  return kitchens;
}

async function startSamplePos(integration: string, nth: number): Promise<{ pos: Pos; settings: object }> {
  const signs = integration === 'standard';
  const pos = await startPos(signs ? { secret: POS_SECRET } : { deduplicates: false });
  // One POS has no cancel call, so its orders must be cancelled by phone. Two can be asked what became of an order.
  const cancelUrl = nth === 4 ? undefined : pos.cancelUrl;
  const { ordersUrl, statusUrl } = pos;
  const signed = { secret: POS_SECRET, ...(nth % 4 === 0 && { statusUrl }) };
  return { pos, settings: { ordersUrl, cancelUrl, ...(signs && signed) } };
}
