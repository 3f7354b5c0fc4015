/**
 * A subscriber to live messages in a process of its own. Forked; its first message says what to receive, and it answers
 * once it listens. The second, whatever that is, it answers when all have come, with how late they were.
 */
import { PubSub, type Message } from '@google-cloud/pubsub';
import type { LiveMessage } from '../src/core/domain/live-message.ts';

export type Receiving = {
  host: string;
  projectId: string;
  topic: string;
  /** So many messages, each of an order of its own. A repeat counts as none. */
  messages: number;
  /** It gives up after so many seconds. */
  withinS: number;
};

export type Received = {
  /** In milliseconds, by order: from when the transaction that moved it began until its message was in our hands. */
  lags: Record<string, number>;
};

/** @throws when they did not all come in time */
async function receiveLive(receiving: Receiving, onListening: () => void): Promise<Received> {
  const client = new PubSub({ projectId: receiving.projectId, apiEndpoint: receiving.host, emulatorMode: true });
  const [subscription] = await client.createSubscription(receiving.topic, 'live', { enableMessageOrdering: true });
  const lags = new Map<string, number>();
  await new Promise<void>((done, failed) => {
    const late = setTimeout(
      () => failed(new Error(`${lags.size} of ${receiving.messages} live messages came`)),
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
