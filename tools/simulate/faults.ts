/** What goes wrong in a run, derived from the seed. A fault has an id that stays the same if others are left out. */
import { chance, pick } from '../chaos/chance.ts';
import type { Party, Schedule } from './schedule.ts';
import type { Session } from './simulated-postgres.ts';

/** Faults of single statements and calls, with their probability where a seed has them at all. */
const RATES = {
  /** The connection breaks before the statement arrives. */
  'statement lost before': 0.003,
  /** The connection breaks before the answer arrives: what was committed is committed. */
  'statement lost after': 0.004,
  /** The statement takes up to 2 s. */
  'statement slow': 0.004,
  /** A neighbour's transaction locks the row of an order just before the statement about it arrives, for up to 10 s. */
  'row held': 0.08,
  'connection refused': 0.05,
  'call refused': 0.02,
  'call lost before': 0.02,
  /** The other side has done it, and its answer is lost. */
  'call lost after': 0.05,
  /** The call takes up to 20 s. */
  'call slow': 0.04,
  /** It arrives twice. */
  'call doubled': 0.02,
  'call hangs': 0.02,
  /** The other side answers an error, and has done nothing. */
  'call answered with an error': 0.03,
  /** The other side has done it, and a gateway answers an error in its place. */
  'answer replaced by an error': 0.02,
  /** A POS refuses an order permanently. */
  'order refused': 0.04,
  /** kill -9, before a statement or a call is sent. */
  kill: 0.0012,
  /** kill -9, just when an answer arrives. */
  'kill at answer': 0.006,
  /** The process stands still for up to a minute, like a suspended machine. */
  freeze: 0.004,
  /** The platform's replica does not have the order at the first or second question. */
  'platform null': 0.15,
} as const;
type Kind = keyof typeof RATES;

/** Faults that last for some time: how many of each a run has at most, and the longest time in milliseconds. */
const LASTING = {
  /** Nothing passes between a process and Postgres. */
  'cut from Postgres': { most: 2, longestMs: 12_000 },
  /** Nothing passes between a process and all POS systems, the platform and Pub/Sub. */
  'cut from the world': { most: 2, longestMs: 12_000 },
  /** Postgres refuses connections, and all sessions have ended. */
  'Postgres down': { most: 2, longestMs: 8_000 },
  /** Another server took over. Sessions stay with the old one, where they can only read. */
  'old leader': { most: 1, longestMs: 200 },
  /** The process stands still. */
  frozen: { most: 2, longestMs: 45_000 },
  /** The wall clock of a process is set, by up to ten minutes. */
  'clock set': { most: 2, longestMs: 60_000 },
  /** The platform's replica has no orders. A fifteenth of the deadline later, an order counts as missing. */
  'platform stale': { most: 1, longestMs: 2_300 },
} as const;
export type Lasting = keyof typeof LASTING;

/** What people do: how often at most, and the longest time that it lasts. */
const ACTS = {
  'location paused': { most: 2, longestMs: 15_000 },
  'kitchen closed': { most: 2, longestMs: 10_000 },
  'kitchen busy': { most: 2, longestMs: 10_000 },
  'settings saved': { most: 2, longestMs: 0 },
  'operator cancels': { most: 2, longestMs: 0 },
  'operator retries': { most: 3, longestMs: 0 },
  /** A POS, the platform or Pub/Sub refuses connections, or does not answer. */
  away: { most: 2, longestMs: 25_000 },
  /** A POS sends webhooks about its own sales, and one that nobody can read. */
  'till sells': { most: 3, longestMs: 0 },
  /** The database is lost, and restored from a backup of up to so long before. */
  'database restored': { most: 1, longestMs: 10_000 },
} as const;

export type Planned = { id: string; kind: Lasting; at: number; forMs: number; place: number; by: number };
/** `by`, from 0 to 1, chooses a location or an order. */
export type Act = Pick<Planned, 'id' | 'at' | 'forMs' | 'by'> & { kind: keyof typeof ACTS };
export type Applied = { id: string; at: number; what: string };

/** A statement's or a call's way there and back. */
export type Fate = {
  kind: 'fine' | 'refused' | 'lost before' | 'lost after' | 'doubled' | 'hangs' | 'error' | 'done, and an error';
  /** Of an error that is answered. */
  status: number;
  thereMs: number;
  backMs: number;
  /** For how long a neighbour locks the row of the statement's order. */
  heldMs: number;
  /** How much later the other side notices a broken connection. */
  noticedMs: number;
  /** Whether a statement that was sent before its process died arrives. */
  arrivesAnyway: boolean;
};

/** A moment of a statement or a call. Those about an order are rarer than polls, and matter more. */
export type Moment = 'sent' | 'sent about an order' | 'answered';

export type Held = Pick<Session, 'demote' | 'end'> & { party: Party; breakOff(noticedMs: number): void };

export type Faults = {
  ofStatement(party: Party, label: string, isAboutOrder: boolean): Fate;
  ofConnect(party: Party): Fate;
  ofCall(party: Party, label: string): Fate;
  /** Whether the party dies now: before it sends this, or when its answer arrives. */
  kills(party: Party, label: string, moment: Moment): boolean;
  /** For how many milliseconds the party stands still now. */
  freezes(party: Party, label: string, moment: Moment): number;
  isMissing(order: string): boolean;
  planned: readonly Planned[];
  acts: readonly Act[];
  begin(planned: Planned, party: Party): void;
  /** Notes that people do something. */
  act(act: Act): void;
  end(planned: Planned, party: Party): void;
  isCut(party: Party, from: 'postgres' | 'world'): boolean;
  /** The world always reaches Postgres, for its checks. */
  isDown(what: 'postgres' | 'platform', asker?: Party): boolean;
  /** Registers a connection to Postgres, which ends with its process or with Postgres. */
  watch(held: Held): void;
  held(): readonly Held[];
  drop(party: Party): Held[];
  applied: readonly Applied[];
};

export type FaultOptions = {
  /** No fault begins after this time. */
  untilMs: number;
  /** Only the faults with these ids. Undefined: all of the seed. */
  only?: ReadonlySet<string> | undefined;
};

const FACTOR: Readonly<Record<Moment | 'statement', number>> = {
  sent: 0.5,
  'sent about an order': 5,
  answered: 1,
  statement: 3,
};
/** Only a 429 and a 401 prove that nothing was done. */
const ERRORS = { limit: [429], own: [500, 501, 503], gateways: [502, 504, 408], token: [401] };
const REFUSED = 422;
/** The URL of a sample POS. A vendor has its own codes for a refusal. */
const SAMPLE_ORDERS = /POST 127\.0\.0\.1:\d+\/orders$/;
/** Vendors whose token is refused need a person, who connects the location again. */
const TAKES_TOKEN = /POST 127\.0\.0\.1:\d+\/(?:orders|cancel|graphql)$/;
const NOTICED_MS = 15_000;
const STORM_MS = 4_000;
/** The milliseconds of a usual way there or back. */
const WAY = { statement: 2, connect: 4, call: 40 };

/** What a run knows of its faults. */
type Run = Readonly<FaultOptions> & {
  readonly schedule: Schedule;
  readonly strength: number;
  /** How often each fault could have happened. */
  readonly counts: Map<string, number>;
  /** How likely each fault is at each statement and call, from the first time on. */
  readonly weights: Map<string, number>;
  /** How many faults cut a process from something now. */
  readonly cuts: Map<string, number>;
  /** How many faults keep something down now. */
  readonly downs: Map<string, number>;
  readonly applied: Applied[];
};

export function planFaults(schedule: Schedule, { untilMs, only }: FaultOptions): Faults {
  const run: Run = {
    schedule,
    untilMs,
    only,
    strength: 0.25 + 2.5 * chance(schedule.seed, 'strength') ** 2,
    counts: new Map(),
    weights: new Map(),
    cuts: new Map(),
    downs: new Map(),
    applied: [],
  };
  const { applied, cuts, downs } = run;
  const asked = new Map<string, number>();
  let connections: Held[] = [];
  const planned = planAll(run, LASTING);
  // Most orders are under way in the first seconds.
  const acts = planAll(run, ACTS).map((act) => ({ ...act, at: act.at ** 2 / untilMs }));

  return {
    ofStatement: (party, label, isAboutOrder) => fateOfStatement(run, party, label, isAboutOrder),
    ofConnect(party) {
      return fate(
        run,
        happens(run, 'connection refused', party.name) ? 'refused' : 'fine',
        WAY.connect,
        `${party.name} connect`,
      );
    },
    ofCall: (party, label) => fateOfCall(run, party, label),
    kills: (party, label, moment) =>
      happens(run, moment === 'answered' ? 'kill at answer' : 'kill', `${party.name} ${label}`, FACTOR[moment]),
    freezes: (party, label, moment) =>
      happens(run, 'freeze', `${party.name} ${label}`, FACTOR[moment])
        ? 60_000 * schedule.draw(`${party.name} ${label} freeze`)
        : 0,
    isMissing(order) {
      // Only one answer, so that the order never counts as missing.
      const nth = (asked.get(order) ?? 0) + 1;
      asked.set(order, nth);
      return (
        nth === (chance(schedule.seed, 'platform null at', order) < 0.5 ? 1 : 2) && happens(run, 'platform null', order)
      );
    },
    planned,
    acts,
    act({ id, kind }) {
      applied.push({ id, at: schedule.now(), what: kind });
      schedule.note(`act ${id}`);
    },
    begin(one, party) {
      applied.push({ id: one.id, at: schedule.now(), what: `${one.kind}: ${party.name}, ${Math.round(one.forMs)} ms` });
      schedule.note(`fault ${one.id} begins: ${party.name}`);
      changeBy(run, 1, one, party);
    },
    end(one, party) {
      schedule.note(`fault ${one.id} ends`);
      changeBy(run, -1, one, party);
    },
    isCut: (party, from) => (cuts.get(cutKey(party, from)) ?? 0) > 0,
    isDown: (what, asker) => asker?.name !== 'world' && (downs.get(what) ?? 0) > 0,
    watch: (held) => void connections.push(held),
    held: () => connections,
    drop(party) {
      const dropped = connections.filter((each) => each.party === party);
      connections = connections.filter((each) => each.party !== party);
      return dropped;
    },
    applied,
  };
}

const has = (run: Run, kind: string): boolean => chance(run.schedule.seed, 'mood', kind) < 0.5;

/**
 * Each seed has a few statements and calls at which a fault is likely, so that rare moments meet rare faults. In half
 * of the seeds it happens nowhere else: a process stands still once or twice in a run, and rarely where it matters.
 */
const weight = (run: Run, kind: Kind, label: string): number => {
  const place = label.replace(/^[AB]\.\d+ /, '');
  const known = run.weights.get(`${kind} ${place}`);
  if (known !== undefined) return known;
  const others = chance(run.schedule.seed, 'elsewhere', kind) < 0.5 ? 1 : 0;
  const drawn = chance(run.schedule.seed, 'weight', kind, place) < 0.12 ? 25 : others;
  run.weights.set(`${kind} ${place}`, drawn);
  return drawn;
};

const happens = (run: Run, kind: Kind, label: string, factor = 1): boolean => {
  // What the world does with its own database is no part of the service.
  if (/^(?:statement|connection|row)/.test(kind) && label.startsWith('world')) return false;
  // A network makes no two requests of one. Pub/Sub and vendors repeat theirs.
  if (kind === 'call doubled' && /^[AB]\.\d+ \w+ (?!pubsub)/.test(label)) return false;
  const key = `${kind}: ${label}`;
  const nth = (run.counts.get(key) ?? 0) + 1;
  run.counts.set(key, nth);
  const id = `${key} #${nth}`;
  const does =
    run.only === undefined
      ? run.schedule.now() < run.untilMs &&
        has(run, kind) &&
        chance(run.schedule.seed, id) < RATES[kind] * factor * run.strength * weight(run, kind, label)
      : run.only.has(id);
  if (!does) return false;
  run.applied.push({ id, at: run.schedule.now(), what: `${kind}: ${label}` });
  run.schedule.note(`fault ${id}`);
  return true;
};

const planAll = <K extends Lasting | Act['kind']>(
  run: Run,
  kinds: Readonly<Record<K, { most: number; longestMs: number }>>,
) => {
  const { seed } = run.schedule;
  // In some seeds all that lasts begins at about the same time, so that faults meet each other.
  const storm = chance(seed, 'storm') < 0.3 ? chance(seed, 'storm at') * run.untilMs : undefined;
  return (Object.keys(kinds) as K[]).flatMap((kind) => {
    const { most, longestMs } = kinds[kind];
    const drawn = (about: string, nth: number): number => chance(seed, 'lasting', kind, about, nth);
    const count = has(run, kind) ? Math.floor(drawn('count', 0) * (most + 1)) : 0;
    return Array.from({ length: count }, (_, nth) => ({
      id: `${kind} ${nth + 1}`,
      kind,
      at: storm === undefined ? drawn('at', nth) * run.untilMs : storm + drawn('at', nth) * STORM_MS,
      forMs: Math.min(200, longestMs / 8) + drawn('for', nth) ** 2 * longestMs,
      place: drawn('place', nth) < 0.5 ? 0 : 1,
      by: drawn('by', nth),
    })).filter(({ id }) => run.only === undefined || run.only.has(id));
  });
};

const fate = (run: Run, kind: Fate['kind'], way: number, label: string): Fate => ({
  kind,
  status: 0,
  // Mostly short, so that many things happen at nearly the same time.
  thereMs: 0.05 + way * run.schedule.draw(`${label} there`) ** 2,
  backMs: 0.05 + way * run.schedule.draw(`${label} back`) ** 2,
  noticedMs: kind === 'fine' || run.schedule.draw(`${label} noticed`) < 0.7 ? 0 : NOTICED_MS,
  arrivesAnyway: run.schedule.draw(`${label} arrives`) < 0.5,
  heldMs: 0,
});

function fateOfStatement(run: Run, party: Party, label: string, isAboutOrder: boolean): Fate {
  const about = `${party.name} ${label}`;
  const factor = isAboutOrder ? FACTOR.statement : 1;
  const kind = happens(run, 'statement lost before', about, factor)
    ? 'lost before'
    : happens(run, 'statement lost after', about, factor)
      ? 'lost after'
      : 'fine';
  const slow = happens(run, 'statement slow', about, factor) ? 2_000 * run.schedule.draw(`${about} slow`) : 0;
  const heldMs = isAboutOrder && happens(run, 'row held', about) ? 10_000 * run.schedule.draw(`${about} held`) ** 2 : 0;
  const one = fate(run, kind, WAY.statement, about);
  return { ...one, heldMs, thereMs: one.thereMs + slow };
}

function fateOfCall(run: Run, party: Party, label: string): Fate {
  const about = `${party.name} ${label}`;
  if (SAMPLE_ORDERS.test(label) && happens(run, 'order refused', about)) {
    return { ...fate(run, 'error', WAY.call, about), status: REFUSED };
  }
  const kinds = [
    ['call answered with an error', 'error'],
    ['answer replaced by an error', 'done, and an error'],
    ['call refused', 'refused'],
    ['call lost before', 'lost before'],
    ['call lost after', 'lost after'],
    ['call doubled', 'doubled'],
    ['call hangs', 'hangs'],
  ] as const;
  const [, kind] = kinds.find(([name]) => happens(run, name, about)) ?? [undefined, 'fine' as const];
  const slow = happens(run, 'call slow', about) ? 20_000 * run.schedule.draw(`${about} slow`) ** 2 : 0;
  const one = fate(run, kind, WAY.call, about);
  if (kind === 'error' || kind === 'done, and an error') {
    const refusing = [...ERRORS.limit, ...ERRORS.own, ...(TAKES_TOKEN.test(label) ? ERRORS.token : [])];
    const proving = kind === 'error' ? refusing : ERRORS.own;
    one.status = pick([...proving, ...ERRORS.gateways], run.schedule.draw(`${about} error`));
  }
  return slow > 0 && run.schedule.draw(`${about} slow way`) < 0.5
    ? { ...one, thereMs: one.thereMs + slow }
    : { ...one, backMs: one.backMs + slow };
}

const change = (map: Map<string, number>, key: string, by: 1 | -1): void => void map.set(key, (map.get(key) ?? 0) + by);

const cutKey = (party: Party, from: string): string => `${party.name.split('.')[0] ?? ''} ${from}`;

const changeBy = (run: Run, by: 1 | -1, { kind }: Planned, party: Party): void => {
  if (kind === 'cut from Postgres') change(run.cuts, cutKey(party, 'postgres'), by);
  if (kind === 'cut from the world') change(run.cuts, cutKey(party, 'world'), by);
  if (kind === 'Postgres down') change(run.downs, 'postgres', by);
  if (kind === 'platform stale') change(run.downs, 'platform', by);
};
