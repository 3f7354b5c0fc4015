import { once } from 'node:events';
import { Agent } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';
import { SIGNAL_PATH } from '../../../src/core/domain/paths.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { issueSignalToken } from '../../../src/core/signals/signal-tokens.ts';
import { postWithAgent } from '../../../world/network/post-with-agent.ts';
import { orderId } from '../load/seed-orders.ts';
import { pushSignals } from '../load/push-signals.ts';
import { compileService } from '../stage/compile-service.ts';
import { prepareBenchDatabase, SETTINGS_KEY } from '../stage/prepare-bench-database.ts';
import { startService } from '../stage/start-service.ts';
import { median, percentile } from './summarize.ts';

export type SignalMeasurement = {
  /** The p99 of signals by HTTP, against that of pushes whose token is not checked. */
  signalP99: number;
  /** Signals by HTTP that are committed in a second. */
  signalsPerSecond: number;
};

const LOAD = { perSecond: 200, seconds: 4 };
const TURNS_A_ROUND = 2;
const CONNECTIONS = 128;

/** Measures how signals of new orders are recorded. The platform never answers, so that nothing else is done about them. */
export async function measureSignals(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<SignalMeasurement> {
  const main = await compileService();
  const { databaseUrl } = await prepareBenchDatabase(postgres.url, { name: 'bench_signals', locations: 1 });
  const sockets = new Set<Socket>();
  const platform = createServer((socket) => void sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(platform, 'listening');
  const { port } = platform.address() as AddressInfo;
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const service = await startService(main, { DATABASE_URL: databaseUrl, ORDER_API_URL: `http://127.0.0.1:${port}/` });
  try {
    const { token } = await issueSignalToken(pool, parseSettingsKeys(SETTINGS_KEY), { kind: 'plain', secrets: [] });
    let first = 0;
    const take = async (by: string | undefined): Promise<number> => {
      const own = first;
      first += LOAD.perSecond * LOAD.seconds;
      const { answers, latencies } = await pushSignals(service.url, { ...LOAD, first: own, token: by });
      if (answers['204'] !== latencies.length) throw new Error(`not all got 204: ${JSON.stringify(answers)}`);
      return percentile(latencies, 0.99);
    };
    const ratios: number[] = [];
    for (let turn = 0; turn <= about.rounds * TURNS_A_ROUND; turn += 1) {
      // Both at the same time, so that other work of the machine affects both.
      const [byHttp, byPush] = await Promise.all([take(token), take(undefined)]);
      say(`  p99 by HTTP ${byHttp.toFixed(1)} ms, by push ${byPush.toFixed(1)} ms`);
      // The first turn warms up, as does the first round below.
      if (turn > 0) ratios.push(byHttp / byPush);
    }
    const rates: number[] = [];
    for (let round = 0; round <= about.rounds; round += 1) {
      const { rows: before } = await pool.query<{ count: number }>('SELECT count(*)::int FROM placements');
      const began = performance.now();
      first = await flood(`${service.url}${SIGNAL_PATH}?token=${token}`, { first, seconds: LOAD.seconds });
      const seconds = (performance.now() - began) / 1_000;
      const { rows: after } = await pool.query<{ count: number }>('SELECT count(*)::int FROM placements');
      const rate = ((after[0]?.count ?? 0) - (before[0]?.count ?? 0)) / seconds;
      say(`  ${rate.toFixed(0)} signals a second committed, ${CONNECTIONS} connections`);
      if (round > 0) rates.push(rate);
    }
    return { signalP99: median(ratios), signalsPerSecond: median(rates) };
  } finally {
    await service.stop();
    for (const socket of sockets) socket.destroy();
    platform.close();
    await pool.end();
  }
}

/** Signals new orders in a closed loop. @returns the number of the next order */
async function flood(url: string, about: { first: number; seconds: number }): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const end = performance.now() + about.seconds * 1_000;
  let next = about.first;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < end) {
        const body = JSON.stringify({ orderId: orderId(next++) });
        const headers = { 'content-length': Buffer.byteLength(body) };
        const status = await postWithAgent(url, agent, { headers, body });
        if (status !== '204') throw new Error(`a signal was answered ${status}`);
      }
    }),
  );
  agent.destroy();
  return next;
}
