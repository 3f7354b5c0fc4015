/**
 * Generates a closed loop of webhooks, in a process of its own. Each message is a load, answered with its result; ends
 * when its parent disconnects.
 */
import { once } from 'node:events';
import autocannon from 'autocannon';
import { chooseRequest, type Plan } from './choose-request.ts';
import type { Sender } from './prepare-bench-database.ts';
import { summarize, type Measured } from './summarize.ts';

export type Load = {
  senders: readonly Sender[];
  port: number;
  connections: number;
  /** The total, in equal shares per connection, so that every request is answered. */
  requests: number;
  /** The number of the first request among all about these orders. */
  from: number;
  plan: Plan;
  /** A multiple of `connections`, so that an order's moves use one connection, one after the other. */
  orders: number;
  bodyBytes?: number;
};

/** `senderUs`: what a request costs here while they are sent, in microseconds of processor time. */
export type Generated = Measured & { senderUs: number };

async function generateLoad(load: Load): Promise<Generated> {
  const { senders, port, connections, requests, from, plan, orders, bodyBytes } = load;
  const answers: Record<string, number> = {};
  const latencies: number[] = [];
  // Before anything connects: large ones take longer to build than a connection may wait for its first request.
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
      // All are set up before the first of them sends.
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
