/**
 * Generates a closed loop of webhooks in its own process. Each message is a `Load` and is answered with the result. The
 * process ends when its parent disconnects.
 */
import { once } from 'node:events';
import autocannon from 'autocannon';
import { chooseRequest, type Plan } from '../measure/choose-request.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';
import { summarize, type Measured } from '../measure/summarize.ts';

export type Load = {
  senders: readonly Sender[];
  port: number;
  connections: number;
  /** The total number, a multiple of `connections`, so that every request is answered. */
  requests: number;
  /** The number of the first request, counted over all loads on these orders. */
  from: number;
  plan: Plan;
  /** A multiple of `connections`, so that all moves of an order use the same connection, one after the other. */
  orders: number;
  bodyBytes?: number;
};

/** `senderUs`: the processor time of this process per request while it sends, in microseconds. */
export type Generated = Measured & { senderUs: number };

async function generateLoad(load: Load): Promise<Generated> {
  const { senders, port, connections, requests, from, plan, orders, bodyBytes } = load;
  const answers: Record<string, number> = {};
  const latencies: number[] = [];
  // Built before any connection is opened: an open connection is closed if its first request comes too late.
  const byConnection = Array.from({ length: connections }, (_, connection) => {
    const mine = [];
    for (let g = connection; g < requests; g += connections)
      mine.push(chooseRequest(senders, plan, orders, from + g, bodyBytes));
    return mine.map(({ path, headers, body }) => ({ method: 'POST' as const, path, headers, body }));
  });
  let [began, ended] = [0, 0];
  let before = process.cpuUsage();
  const about: autocannon.Options = {
    url: `http://127.0.0.1:${port}`,
    method: 'POST',
    connections,
    amount: requests,
    // Milliseconds between checks for the end; the default is a second.
    sampleInt: 100,
    setupClient(client) {
      client.setRequests(byConnection.pop() ?? []);
      // All clients are set up before the first one sends, so the last call sets the beginning.
      began = performance.now();
      before = process.cpuUsage();
    },
  };
  const run = autocannon(about, () => {});
  run.on('response', (_client, status, _bytes, milliseconds) => {
    answers[status] = (answers[status] ?? 0) + 1;
    latencies.push(milliseconds);
    ended = performance.now();
  });
  await once(run, 'done');
  const { user, system } = process.cpuUsage(before);
  return { ...summarize(latencies, ended - began, answers), senderUs: (user + system) / requests };
}

process.on('message', (load: Load) => {
  void generateLoad(load).then((measured) => process.send?.(measured));
});
