/**
 * A sender in a process of its own, so that its costs do not count as others' latency. Its first message says what to
 * send; it answers with the result.
 */
import { Agent, request } from 'node:http';

export type Load = {
  /** The URLs, used in turn. */
  urls: string[];
  /** The prefix of order ids: the n-th webhook is about order `<prefix><n>`. */
  prefix: string;
  perSecond: number;
  seconds: number;
  /** The first seconds, which do not count: code is compiled, connections are made. */
  warmUpS: number;
};

export type Offered = {
  /** Milliseconds from a webhook's due time to its answer, if that was 200. */
  latencies: number[];
  /** Answers by status; `none`: the connection broke. */
  answers: Record<string, number>;
  /** Webhooks that were due and never sent, since too many waited for their answer. */
  held: number;
};

const SOCKETS = 1_000;
const TICK_MS = 2;

/** Sends in an open loop: at its pace, whatever the answers. Latency counts from a webhook's due time. */
export async function offerLoad({ urls, prefix, perSecond, seconds, warmUpS }: Load): Promise<Offered> {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const offered: Offered = { latencies: [], answers: {}, held: 0 };
  const began = performance.now();
  let underWay = 0;
  let nth = 0;

  const send = (dueAt: number): Promise<void> =>
    new Promise((answered) => {
      const order = { thirdPartyReference: `${prefix}${nth}`, status: 'received' };
      const body = JSON.stringify({ eventType: 'order.status', order });
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const count = (status: number | undefined): void => {
        const name = String(status ?? 'none');
        offered.answers[name] = (offered.answers[name] ?? 0) + 1;
        if (status === 200 && dueAt - began >= warmUpS * 1_000) offered.latencies.push(performance.now() - dueAt);
        underWay -= 1;
        answered();
      };
      const sent = request(urls[nth % urls.length] ?? '', { method: 'POST', headers, agent }, (response) => {
        response.resume();
        response.on('end', () => count(response.statusCode));
      });
      sent.on('error', () => count(undefined));
      sent.end(body);
    });

  const sending: Promise<void>[] = [];
  await new Promise<void>((done) => {
    const timer = setInterval(() => {
      const passed = performance.now() - began;
      while (nth < Math.min(passed / 1_000, seconds) * perSecond) {
        const dueAt = began + (nth * 1_000) / perSecond;
        if (underWay >= SOCKETS) {
          offered.held += 1;
        } else {
          underWay += 1;
          sending.push(send(dueAt));
        }
        nth += 1;
      }
      if (passed < seconds * 1_000) return;
      clearInterval(timer);
      done();
    }, TICK_MS);
  });
  await Promise.all(sending);
  agent.destroy();
  return offered;
}

const answer = process.send?.bind(process);
if (answer !== undefined) {
  process.once('message', (load: Load) => {
    void offerLoad(load).then((offered) => {
      answer(offered, undefined, undefined, () => process.disconnect?.());
    });
  });
}
