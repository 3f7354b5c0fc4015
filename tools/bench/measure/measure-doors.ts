import { postAtPace } from '../../../world/network/post-at-pace.ts';
import { until } from '../../../world/processes/until.ts';
import { startReceiver } from '../../../world/receiver/start-receiver.ts';
import { orderId, seedOrders } from '../load/seed-orders.ts';
import { MOVES, signRequest } from '../load/sign-request.ts';
import { compileService } from '../stage/compile-service.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { startService } from '../stage/start-service.ts';
import { median, percentile } from './summarize.ts';

export type DoorMeasurement = {
  /** The p99 from commit to delivery by webhook while the receiver answers one order in ten late, against without it. */
  lateDoorP99: number;
};

/** With one in ten answered after 10 s, as many late messages wait at once as are sent in a second. */
const LOAD = { perSecond: 220, seconds: 14 };
const COUNT = LOAD.perSecond * LOAD.seconds;
const LATE_MS = 10_000;
const LATE = new Set(Array.from({ length: COUNT / 10 }, (_, nth) => orderId(nth * 10)));

/**
 * Measures how long the others' messages take by webhook while one order in ten is answered late. Two services run at the
 * same time and take turns at late answers, so that other work of the machine affects both.
 */
export async function measureDoors(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<DoorMeasurement> {
  const main = await compileService();
  const sides: Side[] = [];
  try {
    for (const name of ['bench_doors_a', 'bench_doors_b']) sides.push(await startSide(postgres.url, main, name));
    const ratios: number[] = [];
    for (let round = 0; round <= 2 * about.rounds; round += 1) {
      const isLate = (nth: number): boolean => nth === round % 2;
      const lags = await Promise.all(sides.map((side, nth) => side.take(isLate(nth))));
      const [late = Number.NaN] = lags.filter((_, nth) => isLate(nth));
      const [quiet = Number.NaN] = lags.filter((_, nth) => !isLate(nth));
      say(`  p99 of the others ${late.toFixed(1)} ms, without late answers ${quiet.toFixed(1)} ms`);
      // The first round warms up.
      if (round > 0) ratios.push(late / quiet);
    }
    return { lateDoorP99: median(ratios) };
  } finally {
    await Promise.all(sides.map((side) => side.stop()));
  }
}

type Side = {
  /** Has orders move, and all messages delivered. @returns the p99 from commit to delivery, in milliseconds */
  take(isLate: boolean): Promise<number>;
  stop(): Promise<unknown>;
};

async function startSide(serverUrl: string, main: string, name: string): Promise<Side> {
  const { databaseUrl, senders } = await prepareBenchDatabase(serverUrl, { name, locations: 4 });
  const receiver = await startReceiver();
  const service = await startService(main, {
    DATABASE_URL: databaseUrl,
    GOOGLE_CLOUD_PROJECT: '',
    STATUS_WEBHOOK_URL: receiver.url,
    STATUS_WEBHOOK_SECRET: receiver.secret,
    PUBLIC_URL: 'https://bench.example.com',
  });
  return {
    async take(isLate) {
      await seedOrders(databaseUrl, senders, COUNT);
      receiver.taken.length = receiver.received.length = 0;
      const lags: number[] = [];
      receiver.behave = ({ subject, event }) => {
        if (LATE.has(subject)) return isLate ? { lateMs: LATE_MS } : undefined;
        lags.push(performance.timeOrigin + performance.now() - Date.parse(String(event['time'])));
        return undefined;
      };
      const requests = Array.from({ length: COUNT }, (_, nth) => signRequest(senders, nth, MOVES[0] ?? 'received'));
      const answers = await postAtPace({ count: COUNT, perSecond: LOAD.perSecond }, (nth) => {
        const { path, ...posted } = requests[nth] as (typeof requests)[number];
        return { url: service.url + path, ...posted };
      });
      if (answers['200'] !== COUNT) throw new Error(`not all webhooks got 200: ${JSON.stringify(answers)}`);
      await until(() => receiver.taken.length >= COUNT);
      return percentile(lags, 0.99);
    },
    stop: () => Promise.all([service.stop(), receiver.stop()]),
  };
}
