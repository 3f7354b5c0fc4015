/**
 * Receives live messages in its own process. The first message to the process is the `Receiving`, and is answered when
 * it listens. Any second message is answered with the lags when all live messages have arrived.
 */
import { PubSub, type Message } from '@google-cloud/pubsub';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';

export type Receiving = {
  host: string;
  projectId: string;
  topic: string;
  /** Messages to receive, each of a different order. Repeats do not count. */
  messages: number;
  /** The longest wait for all of them, in seconds. */
  withinS: number;
};

export type Received = {
  /** Milliseconds by order, from the start of the transaction that moved it to the receipt of its message. */
  lags: Record<string, number>;
};

/** @throws Error if not all messages arrive in time */
async function receiveLive(receiving: Receiving, onListening: () => void): Promise<Received> {
  const client = new PubSub({ projectId: receiving.projectId, apiEndpoint: receiving.host, emulatorMode: true });
  const [subscription] = await client.createSubscription(receiving.topic, 'live', { enableMessageOrdering: true });
  const lags = new Map<string, number>();
  await new Promise<void>((done, failed) => {
    const late = setTimeout(
      () => failed(new Error(`${lags.size} of ${receiving.messages} live messages arrived`)),
      receiving.withinS * 1_000,
    );
    subscription.on('error', failed);
    subscription.on('message', (message: Message) => {
      const at = Date.now();
      const { serviceOrderId, appliedAt } = JSON.parse(message.data.toString()) as LiveMessage;
      message.ack();
      if (!lags.has(serviceOrderId)) lags.set(serviceOrderId, at - Date.parse(appliedAt));
      if (lags.size < receiving.messages) return;
      clearTimeout(late);
      done();
    });
    onListening();
  });
  await subscription.close();
  await subscription.delete();
  await client.close();
  return { lags: Object.fromEntries(lags) };
}

process.once('message', (receiving: Receiving) => {
  const received = receiveLive(receiving, () => process.send?.('listening'));
  process.once('message', () => void received.then((lags) => process.send?.(lags)));
});
