/** A measured figure. `FIGURES` lists all of them in the order of the report. */
export type Figure = {
  what: string;
  /** Absent for a figure that depends on the machine as much as on the service. */
  goal?: { atLeast: number } | { atMost: number };
  /** Absent for a ratio or a count. */
  unit?: string;
};

export const FIGURES = {
  perSecond8: { what: 'webhooks a second, 8 connections', unit: '/s' },
  perSecond64: { what: 'webhooks a second, 64 connections', unit: '/s' },
  perSecond256: { what: 'webhooks a second, 256 connections', unit: '/s' },
  naivePerSecond8: { what: 'the same by naive, 8 connections', unit: '/s' },
  naivePerSecond64: { what: 'the same by naive, 64 connections', unit: '/s' },
  naivePerSecond256: { what: 'the same by naive, 256 connections', unit: '/s' },
  oneStatementPerSecond64: { what: 'the same by one statement per webhook, 64 connections', unit: '/s' },
  barePerSecond64: { what: 'the same by bare Fastify, 64 connections', unit: '/s' },
  barePerSecond256: { what: 'the same by bare Fastify, 256 connections', unit: '/s' },
  nodeUs64: { what: "Node's processor time per webhook, 64 connections", unit: ' µs' },
  postgresUs64: { what: "Postgres's processor time per webhook, 64 connections", unit: ' µs' },
  vsNaive8: { what: 'throughput against naive, 8 connections', goal: { atLeast: 2.5 } },
  vsNaive64: { what: 'throughput against naive, 64 connections', goal: { atLeast: 6.5 } },
  vsNaive256: { what: 'throughput against naive, 256 connections', goal: { atLeast: 8 } },
  vsOneStatement64: { what: 'throughput against one statement per webhook, 64 connections', goal: { atLeast: 2.7 } },
  vsCeiling64: { what: 'throughput against bare Fastify, 64 connections', goal: { atLeast: 0.75 } },
  vsCeiling256: { what: 'throughput against bare Fastify, 256 connections', goal: { atLeast: 0.8 } },
  nodeVsBare64: {
    what: "Node's processor time per webhook against bare Fastify's, 64 connections",
    goal: { atMost: 2 },
  },
  vsTransactions8: { what: 'throughput against a transaction per event from 8 database clients', goal: { atLeast: 1 } },
  vsTransactions64: {
    what: 'throughput against a transaction per event from 64 database clients',
    goal: { atLeast: 1.5 },
  },
  p50At1VsOneStatement: { what: 'p50 against one statement per webhook, 1 connection', goal: { atMost: 1.1 } },
  p99At64VsNaive: { what: 'p99 against naive, 64 connections', goal: { atMost: 0.25 } },
  hotOrderVsNaive64: { what: 'throughput against naive, nine of ten about one order', goal: { atLeast: 9 } },
  orders1mVs50k: { what: 'throughput on 1 million orders against 50,000', goal: { atLeast: 0.95 } },
  orders10mVs50k: { what: 'throughput on 10 million orders against 50,000', goal: { atLeast: 0.8 } },
  poisonLoss: { what: 'throughput lost when one payload of a hundred is poison', goal: { atMost: 0.05 } },
  locations20000: { what: 'throughput with 20,000 locations that send against 20', goal: { atLeast: 0.95 } },
  body2k: { what: 'throughput with bodies of 2 kB against 0.2 kB', goal: { atLeast: 0.92 } },
  body20k: { what: 'throughput with bodies of 20 kB against 0.2 kB', goal: { atLeast: 0.55 } },
  body200k: { what: 'throughput with bodies of 200 kB against 0.2 kB', goal: { atLeast: 0.12 } },
  body200kP99Ms: { what: 'p99 with bodies of 200 kB, 64 connections', goal: { atMost: 300 }, unit: ' ms' },
  history50: { what: 'throughput on orders with 50 events before against none', goal: { atLeast: 0.95 } },
  sustainedEventsPerSecond: {
    what: 'webhooks a second, each with a live message that is published at once',
    goal: { atLeast: 4_500 },
    unit: '/s',
  },
  drainPerSecond: { what: 'live messages a second out of a full outbox', goal: { atLeast: 2_500 }, unit: '/s' },
  liveLagP50Ms: {
    what: 'from the commit to a subscriber at 1,000 events a second, p50',
    goal: { atMost: 4 },
    unit: ' ms',
  },
  liveLagP99Ms: {
    what: 'from the commit to a subscriber at 1,000 events a second, p99',
    goal: { atMost: 15 },
    unit: ' ms',
  },
  placementsPerSecond: {
    what: 'orders a second to POS systems that answer in 50 ms, 200 locations',
    goal: { atLeast: 600 },
    unit: '/s',
  },
  placementP50Ms: {
    what: "from the push to the POS's request at 20 orders a second, p50",
    goal: { atMost: 150 },
    unit: ' ms',
  },
  placementP99Ms: {
    what: "from the push to the POS's request at 20 orders a second, p99",
    goal: { atMost: 500 },
    unit: ' ms',
  },
  cancelP99Ms: {
    what: "from the push of a cancel to the POS's request at 20 cancels a second, p99",
    goal: { atMost: 5_000 },
    unit: ' ms',
  },
  claimManyVsFew: {
    what: 'a claim of 200 due orders, with 50,000 locations whose orders are not due, against without',
    goal: { atMost: 2 },
  },
  spilledPerSecond: {
    what: 'webhooks a second taken while Postgres is away, 64 connections',
    goal: { atLeast: 2_000 },
    unit: '/s',
  },
  spillDrainedPerSecond: {
    what: 'webhooks a second applied from the spill, with 200 live webhooks a second',
    goal: { atLeast: 3_000 },
    unit: '/s',
  },
  spillLiveP99: { what: 'p99 of live webhooks while the spill is drained, against without', goal: { atMost: 1.25 } },
  spillOnVsOff: { what: 'throughput with the spill on against off, 64 connections', goal: { atLeast: 0.98 } },
  rssMb: { what: 'resident memory under load, 256 connections', goal: { atMost: 220 }, unit: ' MB' },
  eveningP99: { what: 'p99 of an evening, its last third against its first', goal: { atMost: 1.2 } },
  eveningMemory: { what: 'resident memory of an evening, its last third against its first', goal: { atMost: 1.1 } },
  eveningBloat: { what: 'bytes per row of the worst table or index, end against start', goal: { atMost: 1.1 } },
  parkedSweepVs10k: { what: 'sweep with 5 million parked sales of tills against 10,000', goal: { atMost: 2 } },
  parkedRedriveVs10k: { what: 'redrive with 5 million parked sales of tills against 10,000', goal: { atMost: 2 } },
  currentOrderBytes: { what: 'disk of a current order with five webhooks', unit: ' bytes' },
  pastOrderBytes: { what: 'disk of a past order', unit: ' bytes' },
  tombstoneBytes: { what: 'disk of a tombstone, 47 million of them', goal: { atMost: 64 }, unit: ' bytes' },
  movesPerSecond: { what: 'orders moved to the past a second', unit: '/s' },
  moveUs: { what: 'processor time of a move, Node and Postgres', unit: ' µs' },
  archivedPerSecond: { what: 'orders archived and verified a second', goal: { atLeast: 5_000 }, unit: '/s' },
  archivedOrderBytes: { what: 'bytes of an archived order', goal: { atMost: 600 }, unit: ' bytes' },
  archivedReadMs: { what: 'read of an archived order from a folder', goal: { atMost: 2_000 }, unit: ' ms' },
  lookUpWithYears: { what: 'look-up of a new order with five years behind it against none' },
  messageUs: { what: 'processor time of a webhook and its live message, 2,000 a second', unit: ' µs' },
  millionHours: { what: 'processor hours of a million orders at 40 a second', goal: { atMost: 0.35 } },
  costWebhookP99Ms: {
    what: 'p99 of webhooks at 40 orders and 200 webhooks a second',
    goal: { atMost: 15 },
    unit: ' ms',
  },
  costLiveP99Ms: { what: 'from the commit to the publication then, p99', goal: { atMost: 30 }, unit: ' ms' },
  planDeviation: { what: "processor time against the plan's, the worst of five loads", goal: { atMost: 0.15 } },
  yearsVsNone: { what: 'throughput with five years behind it against none', goal: { atLeast: 0.95 } },
  yearsP99: { what: 'p99 with five years behind it against none', goal: { atMost: 1.1 } },
  dropLongestMs: {
    what: 'longest of 500 webhooks a second while months are dropped',
    goal: { atMost: 100 },
    unit: ' ms',
  },
  dropQuietLongestMs: { what: 'the same without drops', unit: ' ms' },
  memberStreams: {
    what: 'streams of members that one process holds, all of which got their messages',
    goal: { atLeast: 15_000 },
  },
  memberStreamKb: {
    what: 'resident memory per stream, with 10,000 streams and 500 webhooks a second',
    goal: { atMost: 24 },
    unit: ' kB',
  },
  memberLagP50Ms: {
    what: "from another process's commit to a member's phone, 10,000 streams, 1,000 events a second, p50",
    goal: { atMost: 150 },
    unit: ' ms',
  },
  memberLagP99Ms: {
    what: "from another process's commit to a member's phone, 10,000 streams, 1,000 events a second, p99",
    goal: { atMost: 500 },
    unit: ' ms',
  },
  memberCost: {
    what: 'throughput with 10,000 streams of orders that do not change, against without',
    goal: { atLeast: 0.97 },
  },
  signalP99: {
    what: 'p99 of signals by HTTP at 200 a second, against as many pushes at the same time, whose token is not checked',
    goal: { atMost: 1.2 },
  },
  signalsPerSecond: {
    what: 'signals of new orders a second by HTTP, 128 connections',
    goal: { atLeast: 2_000 },
    unit: '/s',
  },
  lateDoorP99: {
    what: 'p99 from commit to delivery by webhook while one order in ten is answered after 10 s, against without',
    goal: { atMost: 1.5 },
  },
  guessP99: {
    what: 'p99 of webhooks during 1,000 wrong sign-ins a second from one source, against without',
    goal: { atMost: 1.25 },
  },
  guessSamePortP99: { what: 'the same, with operators at the port of webhooks', goal: { atMost: 1.25 } },
  guessesJudged: { what: 'wrong sign-ins that are checked a second', goal: { atMost: 5 }, unit: '/s' },
  guessSignIn: { what: 'a right sign-in from another address during them, against without', goal: { atMost: 1.25 } },
  mapsP95: {
    what: "p95 of webhooks during 24 connections of one integrator's item maps of 256 KiB, against without",
    goal: { atMost: 2 },
  },
  listsP95: { what: 'the same with 64 KiB of small lists', goal: { atMost: 2 } },
  startMs: { what: 'from the start to listening', goal: { atMost: 250 }, unit: ' ms' },
  readyMs: { what: 'from the start to ready', goal: { atMost: 400 }, unit: ' ms' },
  idleMb: { what: 'resident memory of an idle process after its start', goal: { atMost: 105 }, unit: ' MB' },
  idleCpuMs: { what: 'processor time of an idle process, a second', goal: { atMost: 3 }, unit: ' ms' },
} as const satisfies Record<string, Figure>;

export type FigureName = keyof typeof FIGURES;

/** The results. `null` means not measured. */
export type Results = Record<FigureName, number | null>;

/** Makes all results. A figure is `null` if it was not measured or could not be computed. */
export function toResults(measured: Partial<Record<FigureName, number>>): Results {
  const names = Object.keys(FIGURES) as FigureName[];
  const all = names.map((name) => [name, Number.isFinite(measured[name]) ? measured[name] : null]);
  return Object.fromEntries(all) as Results;
}

/** @returns whether the value reaches the goal; true without a goal */
export function reaches({ goal }: Figure, value: number): boolean {
  if (goal === undefined) return true;
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost;
}
