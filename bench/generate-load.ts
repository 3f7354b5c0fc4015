/**
 * A closed loop of webhooks, in a process of its own. Each message is a load and is answered with what came of it; ends
 * when its parent lets it go.
 */
import { once } from 'node:events';
import autocannon from 'autocannon';
import { chooseRequest, type Plan } from './choose-request.ts';
import type { Sender } from './prepare-bench-database.ts';
import { summarize, type Measured } from './summarize.ts';

export type Load = {
  senders: Sender[];
  port: number;
  connections: number;
  /** In all, in equal shares: so that what is answered is all there was. */
  requests: number;
  /** The first of them, of all there ever were about these orders. */
  from: number;
  plan: Plan;
  /** A multiple of `connections`, so that the moves of an order come over one connection, one after the other. */
  orders: number;
};

async function generateLoad(load: Load): Promise<Measured> {
  const { senders, port, connections, requests, from, plan, orders } = load;
  const answers: Record<string, number> = {};
  const latencies: number[] = [];
  let connection = 0;
  let [began, ended] = [0, 0];
  const about: autocannon.Options = {
    url: `http://127.0.0.1:${port}`,
    method: 'POST',
    connections,
    amount: requests,
    // It looks so often whether that was all; left to itself, once a second.
    sampleInt: 100,
    setupClient(client) {
      const mine = [];
      for (let g = connection; g < requests; g += connections)
        mine.push(chooseRequest(senders, plan, orders, from + g));
      connection += 1;
      client.setRequests(mine.map(({ path, headers, body }) => ({ method: 'POST', path, headers, body })));
      // All are set up before the first of them sends.
      began = performance.now();
    },
  };
  const run = autocannon(about, () => {});
  run.on('response', (_client, status, _bytes, milliseconds) => {
    answers[status] = (answers[status] ?? 0) + 1;
    latencies.push(milliseconds);
    ended = performance.now();
  });
  await once(run, 'done');
  return summarize(latencies, ended - began, answers);
}

process.on('message', (load: Load) => {
  void generateLoad(load).then((measured) => process.send?.(measured));
});
