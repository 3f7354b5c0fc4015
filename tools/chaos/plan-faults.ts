import { DOORS, type Doors } from '../../world/system/fixtures.ts';
import { chance, shuffle } from './chance.ts';

/**
 * Faults that last for some time, with their seconds in a run of five minutes. A lane has one fault at a time. The
 * lanes run in parallel, so a process may die while Postgres is down and a POS hangs.
 */
export const LANES = {
  processes: {
    /** kill -9, and a new process in its place. */
    kill: 1,
    /** A rolling replacement: a new process, then SIGTERM for the old. */
    roll: 3,
    /** SIGSTOP for longer than a placement's lease. When the process resumes, others have its work. */
    freeze: 33,
  },
  database: {
    /** `pg_ctl stop -m immediate`, and a restart. */
    crash: 1,
    /** Lasts as long as `--away` says. Half of the time Postgres is stopped, the other half nothing arrives. */
    away: 10,
    /** A standby is promoted, but the address still leads to the old primary, which accepts no writes any more. */
    failover: 20,
    /** `pg_terminate_backend` for every connection of the service, again and again. */
    terminate: 4,
    /** SIGSTOP for all of Postgres. */
    pause: 20,
    /** A neighbour that takes every available connection. */
    exhaust: 8,
    /** The connection is cut right after a commit was sent: the client does not learn whether it committed. */
    commit: 6,
    /** Nothing arrives, and no connection ends. */
    partition: 5,
    /** 40 ms in each direction. */
    latency: 6,
  },
  others: {
    /** POS systems take the order and drop their answer. */
    'drop-answer': 6,
    /** One location's POS does not answer. */
    hang: 30,
    /** POS systems answer 500, or 429 with Retry-After. */
    refuse: 6,
    /** POS systems that do not deduplicate take the order and answer 503. */
    'takes-and-503': 6,
    /** The ordering platform is down, hangs, or answers errors. */
    platform: 6,
    /** The ordering platform is down. When it is back, its first answer for a waiting order is "no such order". */
    'platform-null': 20,
    /** Publishing fails, or it succeeds but is answered with an error. */
    publish: 6,
    /** Publishing hangs. */
    'publish-hang': 6,
  },
  /** Only with the doors `http`. */
  receiver: {
    /** The receiver of statuses hangs, is late, refuses, closes connections, or keeps a message and answers an error. */
    'receiver-errs': 10,
    /** Its port is closed. */
    'receiver-away': 600,
  },
  /** Faults that may stay unnoticed for long. */
  lasting: {
    /** The reader of the processes' logs stops. */
    logstop: 60,
    /** A neighbour's transaction locks the rows of one order, while its POS keeps sending webhooks. */
    lock: 60,
    /** Four locations send many bodies at once, which arrive slowly and never end. */
    hogs: 30,
    /** As many connections to a process as it may open files. They send nothing, or half a request head. */
    anonymous: 10,
  },
} as const;

/** Faults that last for the whole run, or belong to single orders. */
export const ALWAYS = [
  /** One location's POS refuses every connection. */
  'dead-pos',
  /** Processes whose clock is ten minutes ahead or behind. */
  'clock',
  /** A neighbour idle in a transaction, whose snapshot holds back vacuum. */
  'snapshot',
  /** Signals that are published twice, and webhooks that are sent several times at once. */
  'duplicate',
  /** Webhooks that arrive seconds late. */
  'delay',
  /** Webhooks that overtake each other. */
  'reorder',
  /** Webhooks sent before the POS has answered createOrder, so the service does not know the POS id yet. */
  'early',
  /** Webhooks about another location's orders, with the sender's own token. */
  'foreign',
  /** Tills that send webhooks for all their own sales, with POS ids of no order of ours. */
  'tills',
  /** Orders that their member cancels or changes: before they are sent, while they are being sent, or after. */
  'cancel',
] as const;

export type Lane = keyof typeof LANES;
export type TimedKind = { [L in Lane]: keyof (typeof LANES)[L] }[Lane];
export type Kind = TimedKind | (typeof ALWAYS)[number];

type PlanOptions = { seed: number; seconds: number; only: ReadonlySet<Kind>; kills: number; awayS: number };

/** A fault. `at` and `lasts` are seconds since the run's beginning. */
export type Fault = {
  lane: Lane;
  kind: TimedKind;
  nth: number;
  at: number;
  lasts: number;
  /** How many processes are killed during this fault, in addition to the lane `processes`; 0 by default. */
  kills?: number;
};

export const KINDS: readonly Kind[] = [
  ...Object.values(LANES).flatMap((lane) => Object.keys(lane) as TimedKind[]),
  ...ALWAYS,
];

/** The faults that need one kind of doors. */
const OF_DOORS: Record<Doors, readonly Kind[]> = {
  pubsub: ['publish', 'publish-hang'],
  http: Object.keys(LANES.receiver) as Kind[],
};
/** Whether a fault can happen with these doors. */
export const fits = (kind: Kind, doors: Doors): boolean =>
  DOORS.every((each) => each === doors || !OF_DOORS[each].includes(kind));

/** How often POS systems drop answers in a round of their lane. This is the most common fault on a real platform. */
const DROPPED_ANSWERS = 2;
/** Seconds between two faults of a lane. Between faults of the database, there is time to see the service recover. */
const GAPS: Record<Lane, readonly [number, number]> = {
  processes: [2, 4],
  database: [5, 7],
  others: [1, 3],
  receiver: [2, 4],
  lasting: [1, 3],
};
/** The longest share of a run that a fault may take, except in a run whose only fault is `away`. */
const LONGEST: Record<Lane, number> = {
  processes: 1 / 8,
  database: 1 / 8,
  others: 1 / 8,
  receiver: 1 / 6,
  lasting: 1 / 3,
};
const FIRST_AT = 2;

/** The number of processes in a run whose only fault is `away`. */
export const PLACES_WHILE_AWAY = 4;
/** Seconds of such a run: orders before the first outage, recovery between outages, and calm at the end. */
const BEFORE_AWAY_S = 10;
const BETWEEN_AWAY_S = 7;
const AFTER_AWAY_S = 5;
/** Kills are rare: a killed process loses the webhooks of the milliseconds until its connections are closed. */
const A_KILL_EVERY_S = 10;

/** True for a run whose only fault is that Postgres is away. */
export const isAwayAlone = (only: ReadonlySet<Kind>): boolean => only.size === 1 && only.has('away');

/** Returns the shortest possible length of such a run, in seconds. */
export const secondsToBeAway = (awayS: number): number => BEFORE_AWAY_S + awayS + AFTER_AWAY_S;

/**
 * Plans all timed faults, in order. Every kind of a lane occurs in each of its rounds, a kill `kills` times. In a
 * short run faults and pauses are shorter, so that more of them fit.
 */
export function planFaults({ seed, seconds, only, kills, awayS }: PlanOptions): Fault[] {
  if (isAwayAlone(only)) return planOutages(seconds, awayS);
  const weights: Partial<Record<TimedKind, number>> = { kill: kills, 'drop-answer': DROPPED_ANSWERS };
  const lanes = Object.entries({ ...LANES, database: { ...LANES.database, away: awayS } });
  return (lanes as [Lane, Record<string, number>][])
    .flatMap(([lane, lengths]) => planQueue(seed, seconds, only, lane, lengths, weights))
    .toSorted((a, b) => a.at - b.at);
}

/**
 * Plans outages of full length, during which processes are killed: in a long outage all except one. One must survive,
 * because a process that starts without Postgres knows no tokens.
 */
function planOutages(seconds: number, awayS: number): Fault[] {
  const plan: Fault[] = [];
  const kills = Math.min(PLACES_WHILE_AWAY - 1, Math.ceil(awayS / A_KILL_EVERY_S));
  for (let at = BEFORE_AWAY_S; at + awayS + AFTER_AWAY_S <= seconds; at += awayS + BETWEEN_AWAY_S) {
    plan.push({ lane: 'database', kind: 'away', nth: plan.length + 1, at, lasts: awayS, kills });
  }
  return plan;
}

function planQueue(
  seed: number,
  seconds: number,
  only: ReadonlySet<Kind>,
  lane: Lane,
  lengths: Record<string, number>,
  weights: Partial<Record<TimedKind, number>>,
): Fault[] {
  const kinds = (Object.keys(lengths) as TimedKind[]).filter((kind) => only.has(kind));
  const deck = kinds.flatMap((kind) => Array.from({ length: weights[kind] ?? 1 }, () => kind));
  const [shortest, longest] = GAPS[lane];
  const plan: Fault[] = [];
  const nths = new Map<TimedKind, number>();
  let at = FIRST_AT * (0.5 + chance(seed, lane, 'first'));
  for (let round = 0; deck.length > 0; round += 1) {
    for (const kind of shuffle(deck, seed, lane, round)) {
      const lasts = Math.min(lengths[kind] ?? 1, Math.max(1, seconds * LONGEST[lane]));
      if (at + lasts > seconds) return plan;
      const nth = (nths.get(kind) ?? 0) + 1;
      nths.set(kind, nth);
      plan.push({ lane, kind, nth, at, lasts });
      const gap = shortest + chance(seed, lane, plan.length) * (longest - shortest);
      at += lasts + gap * Math.min(1, seconds / 60);
    }
  }
  return plan;
}
