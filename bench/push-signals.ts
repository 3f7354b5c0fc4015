import { Agent } from 'node:http';
import { PUSH_PATH } from '../src/http/pubsub-push.ts';
import { post } from './post.ts';
import { orderId } from './seed-orders.ts';

export type Pushed = {
  /** The time of each push, in milliseconds since 1970 with fractions. */
  sentAt: number[];
  /** Answers by status; `none`: the connection broke. */
  answers: Record<string, number>;
};

const SOCKETS = 1_000;
const TICK_MS = 2;

/**
 * Signals orders as Pub/Sub pushes them, in an open loop: at its pace, whatever the answers.
 * @param url the service's
 * @param about.first the number of the first order; the others follow
 */
export async function pushSignals(
  url: string,
  about: { first: number; perSecond: number; seconds: number },
): Promise<Pushed> {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const count = about.perSecond * about.seconds;
  const sentAt: number[] = [];
  const answers: Record<string, number> = {};

  const push = async (serviceOrderId: string): Promise<void> => {
    const data = Buffer.from(JSON.stringify({ type: 'orderPlaced' })).toString('base64');
    const message = { messageId: serviceOrderId, data, attributes: { orderId: serviceOrderId } };
    const body = JSON.stringify({ message, subscription: 'projects/bench/subscriptions/orders' });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    sentAt.push(performance.timeOrigin + performance.now());
    const status = await post(url + PUSH_PATH, agent, { headers, body });
    answers[status] = (answers[status] ?? 0) + 1;
  };

  const pushing: Promise<void>[] = [];
  const began = performance.now();
  await new Promise<void>((done) => {
    const timer = setInterval(() => {
      const due = Math.min(count, Math.floor(((performance.now() - began) / 1_000) * about.perSecond) + 1);
      while (pushing.length < due) pushing.push(push(orderId(about.first + pushing.length)));
      if (due < count) return;
      clearInterval(timer);
      done();
    }, TICK_MS);
  });
  await Promise.all(pushing);
  agent.destroy();
  return { sentAt, answers };
}
