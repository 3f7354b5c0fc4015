import { PUSH_PATH } from '../../../src/core/domain/paths.ts';
import { postAtPace, type Answers } from '../../../world/network/post-at-pace.ts';
import { orderId } from './seed-orders.ts';

/** `sentAt`: the time of each push, in milliseconds since 1970, with fractions. */
export type Pushed = { answers: Answers; sentAt: number[] };

/**
 * Signals orders as Pub/Sub pushes them, in an open loop.
 * @param url the URL of the service
 * @param about.first the number of the first order; the others have the next numbers
 */
export async function pushSignals(
  url: string,
  about: { first: number; perSecond: number; seconds: number },
): Promise<Pushed> {
  const { perSecond, seconds } = about;
  const sentAt: number[] = [];
  const answers = await postAtPace({ count: perSecond * seconds, perSecond }, (nth) => {
    const serviceOrderId = orderId(about.first + nth);
    const data = Buffer.from(JSON.stringify({ type: 'orderPlaced' })).toString('base64');
    const message = { messageId: serviceOrderId, data, attributes: { orderId: serviceOrderId } };
    const body = JSON.stringify({ message, subscription: 'projects/bench/subscriptions/orders' });
    sentAt.push(performance.timeOrigin + performance.now());
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return { url: url + PUSH_PATH, headers, body };
  });
  return { answers, sentAt };
}
