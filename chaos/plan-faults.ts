import { chance, shuffle } from './chance.ts';

/**
 * Faults that last for some time, with their seconds in a run of five minutes. A lane has one fault at a time; the
 * lanes run side by side, so that a process may die while Postgres is away and a POS hangs.
 */
export const LANES = {
  processes: {
    /** kill -9, and a new process in its place. */
    kill: 1,
    /** A rolling replacement: a new process, then SIGTERM for the old. */
    roll: 3,
    /** SIGSTOP for longer than a placement's lease: when it resumes, others have its work. */
    freeze: 33,
  },
  database: {
    /** `pg_ctl stop -m immediate`, and a restart. */
    crash: 1,
    /** As long as `--away` says: for one half it is stopped, for the other nothing arrives. */
    away: 10,
    /** A standby is promoted, and the name still leads to the old primary, which takes no writes any more. */
    failover: 20,
    /** `pg_terminate_backend` for every connection of the service, again and again. */
    terminate: 4,
    /** SIGSTOP for all of Postgres. */
    pause: 20,
    /** A neighbour that takes every connection that can be had. */
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
    /** The ordering platform is down, and does not know an order when it is first asked for it again. */
    'platform-null': 20,
    /** Publishing fails, or succeeds and is answered with an error. */
    publish: 6,
    /** Publishing hangs. */
    'publish-hang': 6,
  },
  /** Nobody notices these for long. */
  lasting: {
    /** The reader of the processes' logs stops. */
    logstop: 60,
    /** A neighbour's transaction holds one order's rows, and its POS goes on to send. */
    lock: 60,
    /** Four locations whose bodies come slowly, many at once, and never end. */
    hogs: 30,
    /** As many connections to a process as it may open files, which say nothing or half a head. */
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
  /** Webhooks that come seconds late. */
  'delay',
  /** Webhooks that overtake each other. */
  'reorder',
  /** Webhooks sent before the POS has answered createOrder, so before its id is known here. */
  'early',
  /** Webhooks about another location's orders, with the sender's own token. */
  'foreign',
  /** Tills that send all their own sales, under POS ids that never become ours. */
  'tills',
  /** Orders that their member cancels or changes: before they are sent, while they are, or after. */
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
  /** How many processes are killed meanwhile, beside those of their own lane; 0 by default. */
  kills?: number;
};

export const KINDS: readonly Kind[] = [
  ...Object.values(LANES).flatMap((lane) => Object.keys(lane) as TimedKind[]),
  ...ALWAYS,
];

/** How often POS systems drop answers in a round of their lane: it happens most on a platform. */
const DROPPED_ANSWERS = 2;
/** Seconds between two faults of a lane. The database's are far enough apart to see the service recover. */
const GAPS: Record<Lane, readonly [number, number]> = {
  processes: [2, 4],
  database: [5, 7],
  others: [1, 3],
  lasting: [1, 3],
};
/** The longest share of a run that a fault may take, unless it is the only kind. */
const LONGEST: Record<Lane, number> = { processes: 1 / 8, database: 1 / 8, others: 1 / 8, lasting: 1 / 3 };
const FIRST_AT = 2;

/** Processes of a run in which Postgres is away and nothing else happens. */
export const PLACES_WHILE_AWAY = 4;
/** Seconds of such a run: orders to begin with, time to recover, and the calm at its end. */
const BEFORE_AWAY_S = 10;
const BETWEEN_AWAY_S = 7;
const AFTER_AWAY_S = 5;
/** A process that is killed takes some webhooks with it, those of the milliseconds until its connections are closed. */
const A_KILL_EVERY_S = 10;

/** True for a run in which Postgres is away and nothing else happens. */
export const isAwayAlone = (only: ReadonlySet<Kind>): boolean => only.size === 1 && only.has('away');

/** Returns the least seconds of such a run. */
export const secondsToBeAway = (awayS: number): number => BEFORE_AWAY_S + awayS + AFTER_AWAY_S;

/**
 * Plans all timed faults, in order. Every kind of a lane occurs in each of its rounds, a kill `kills` times. In a
 * short run faults and pauses are shorter, so that more fit in.
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
 * Plans outages of full length, in which processes are killed, in a long one all but one: who starts without Postgres
 * knows no token, so one has to stay.
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
