import { postAtPace } from '../../../world/network/post-at-pace.ts';
import { until } from '../../../world/processes/until.ts';
import { startReceiver } from '../../../world/receiver/start-receiver.ts';
import { orderId, seedOrders } from '../load/seed-orders.ts';
import { MOVES, signRequest } from '../load/sign-request.ts';
import { compileService } from '../stage/compile-service.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { startService } from '../stage/start-service.ts';
import { percentile } from './summarize.ts';
import { medianRatio, takePairs } from './take-pairs.ts';

export type DoorMeasurement = {
  /** The p99 from commit to delivery by webhook while the receiver answers one order in ten late, against without it. */
  lateDoorP99: number;
};

/** Long enough for as many late messages at once as there are places for messages: 20 a second for 10 s. */
const LOAD = { perSecond: 200, seconds: 14 };
const LATE_MS = 10_000;
const ONE_IN = 10;

/** Measures how long the others' messages take by webhook while one order in ten is answered late. */
export async function measureDoors(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<DoorMeasurement> {
  const main = await compileService();
  const { databaseUrl, senders } = await prepareBenchDatabase(postgres.url, { name: 'bench_doors', locations: 4 });
  const receiver = await startReceiver();
  const service = await startService(main, {
    DATABASE_URL: databaseUrl,
    GOOGLE_CLOUD_PROJECT: '',
    STATUS_WEBHOOK_URL: receiver.url,
    STATUS_WEBHOOK_SECRET: receiver.secret,
    PUBLIC_URL: 'https://bench.example.com',
  });
  const count = LOAD.perSecond * LOAD.seconds;
  const late = new Set(Array.from({ length: count / ONE_IN }, (_, nth) => orderId(nth * ONE_IN)));
  try {
    const take = async (kind: 'quiet' | 'beside'): Promise<number> => {
      await seedOrders(databaseUrl, senders, count);
      const lags: number[] = [];
      receiver.taken.length = receiver.received.length = 0;
      receiver.behave = ({ subject, event }) => {
        if (late.has(subject)) return kind === 'beside' ? { lateMs: LATE_MS } : undefined;
        lags.push(performance.timeOrigin + performance.now() - Date.parse(String(event['time'])));
        return undefined;
      };
      const requests = Array.from({ length: count }, (_, nth) => signRequest(senders, nth, MOVES[0] ?? 'received'));
      const answers = await postAtPace({ count, perSecond: LOAD.perSecond }, (nth) => {
        const { path, ...posted } = requests[nth] as (typeof requests)[number];
        return { url: service.url + path, ...posted };
      });
      if (answers['200'] !== count) throw new Error(`not all webhooks got 200: ${JSON.stringify(answers)}`);
      await until(() => receiver.taken.length >= count);
      return percentile(lags, 0.99);
    };
    const pairs = await takePairs(about.rounds, take, ({ quiet, beside }) =>
      say(`  p99 of the others ${beside.toFixed(1)} ms, without late answers ${quiet.toFixed(1)} ms`),
    );
    return { lateDoorP99: medianRatio(pairs, (p99) => p99) };
  } finally {
    await service.stop();
    await receiver.stop();
  }
}
