import { PUSH_PATH, SIGNAL_PATH } from '../../../src/core/domain/paths.ts';
import { postAtPace, type Answers } from '../../../world/network/post-at-pace.ts';
import { orderId } from './seed-orders.ts';

/** `sentAt`: the time of each push, in milliseconds since 1970, with fractions. `latencies`: from due to answered. */
export type Pushed = { answers: Answers; sentAt: number[]; latencies: number[] };

/**
 * Signals orders as Pub/Sub pushes them, in an open loop.
 * @param url the URL of the service
 * @param about.first the number of the first order; the others have the next numbers
 * @param about.token of signals by HTTP, which are then sent instead of pushes
 */
export async function pushSignals(
  url: string,
  about: { first: number; perSecond: number; seconds: number; token?: string | undefined },
): Promise<Pushed> {
  const { perSecond, seconds, token } = about;
  const sentAt: number[] = [];
  const latencies: number[] = [];
  const path = token === undefined ? PUSH_PATH : `${SIGNAL_PATH}?token=${token}`;
  const request = (nth: number): ReturnType<Parameters<typeof postAtPace>[1]> => {
    const serviceOrderId = orderId(about.first + nth);
    const data = Buffer.from(JSON.stringify({ type: 'orderPlaced' })).toString('base64');
    const message = { messageId: serviceOrderId, data, attributes: { orderId: serviceOrderId } };
    const pushed = { message, subscription: 'projects/bench/subscriptions/orders' };
    const body = JSON.stringify(token === undefined ? pushed : { orderId: serviceOrderId });
    sentAt.push(performance.timeOrigin + performance.now());
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return { url: url + path, headers, body };
  };
  const answers = await postAtPace({ count: perSecond * seconds, perSecond }, request, (_status, dueAt) => {
    latencies.push(performance.now() - dueAt);
  });
  return { answers, sentAt, latencies };
}
