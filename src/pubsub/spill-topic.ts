import type { Message, Subscription } from '@google-cloud/pubsub';
import type { SpillMessage } from '../core/spill/drain-spill.ts';
import { gatherMessages } from './gather-messages.ts';
import { loadPubsub } from './load-pubsub.ts';
import type { PubsubConnection } from './pubsub-connection.ts';

/** The time in which a webhook must be answered. No sender waits longer for its answer. */
const TIMEOUT_MS = 1_400;
const GATHER_MS = 3;

/** Maximum unacknowledged messages and bytes in memory. */
const HELD = { maxMessages: 1_000, maxBytes: 16 * 2 ** 20, allowExcessMessages: false };
/** Acknowledgements are collected for this long. The library's 100 ms would delay the next messages of the drain. */
const ACK_MS = 20;
/** When the subscription is closed, the last acknowledgements may take this long. */
const CLOSE_S = 2;
/** A subscription that failed is opened again after this time. */
const AGAIN_MS = 5_000;

export type SpillTopic = {
  /** Resolves when Pub/Sub has acknowledged the message. @throws if it does not, or if the message is too large */
  publish(data: Buffer): Promise<void>;
  /** Reads the subscription until `stop` is called. Pub/Sub then delivers all unacknowledged messages again. */
  read(receive: (message: SpillMessage) => void): { stop(): Promise<void> };
};

export const drainOf = (topic: string): string => `${topic}-drain`;

/** The topic that stores webhooks while Postgres is away, and the subscription from which they are read. */
export function spillTopic(
  connection: PubsubConnection,
  about: { topic: string; onError: (error: unknown) => void },
): SpillTopic {
  const { client } = connection;

  const open = async (receive: (message: SpillMessage) => void): Promise<Subscription> => {
    const [{ pubsub }, { Duration }] = await Promise.all([client(), loadPubsub()]);
    return pubsub
      .subscription(drainOf(about.topic), {
        flowControl: { ...HELD },
        batching: { maxMilliseconds: ACK_MS },
        streamingOptions: { maxStreams: 1 },
        closeOptions: { timeout: Duration.from({ seconds: CLOSE_S }) },
      })
      .on('message', (message: Message) =>
        receive({
          data: message.data,
          publishedAt: message.publishTime.getTime(),
          ack: () => message.ack(),
          nack: () => message.nack(),
        }),
      );
  };

  return {
    publish: gatherMessages(connection, { topic: about.topic, gatherMs: GATHER_MS, timeoutMs: TIMEOUT_MS }),
    read(receive) {
      let isStopped = false;
      let again: NodeJS.Timeout | undefined;
      let reading: Promise<Subscription | undefined>;
      const fail = (error: unknown): void => {
        about.onError(error);
        if (isStopped) return;
        clearTimeout(again);
        again = setTimeout(begin, AGAIN_MS);
      };
      const begin = (): void => {
        reading = open(receive).then(
          (subscription) => {
            // After an error the subscription is already closed.
            subscription.on('error', fail);
            if (isStopped) void subscription.close();
            return subscription;
          },
          (error: unknown) => {
            fail(error);
            return undefined;
          },
        );
      };
      begin();
      return {
        async stop() {
          isStopped = true;
          clearTimeout(again);
          await (await reading)?.close();
        },
      };
    },
  };
}
