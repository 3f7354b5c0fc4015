import type { Message, Subscription } from '@google-cloud/pubsub';
import type { SpillMessage } from '../../core/spill/drain-spill.ts';
import { loadPubsub } from './load-pubsub.ts';
import type { PubsubConnection } from '../plugins/pubsub.ts';

/** Limit for a request: the time in which a webhook must be answered. No sender waits longer for its answer. */
const CALL = { timeout: 1_400, retry: null };
/** Messages are collected for this long and sent in one request. */
const GATHER_MS = 3;
/** Maximum messages and bytes of a request. Pub/Sub's limits are 1,000 and 10 MB, including its own overhead. */
const MOST = { messages: 500, bytes: 9_000_000 };

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

type Waiting = { data: Buffer; resolve(): void; reject(error: unknown): void };

/** The name of the subscription that reads a spill topic. */
export const drainOf = (topic: string): string => `${topic}-drain`;

/** The topic that stores webhooks while Postgres is away, and the subscription from which they are read. */
export function spillTopic(
  { client }: PubsubConnection,
  about: { topic: string; onError: (error: unknown) => void },
): SpillTopic {
  let gathered: Waiting[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;

  const send = async (): Promise<void> => {
    const batch = gathered;
    gathered = [];
    bytes = 0;
    clearTimeout(timer);
    timer = undefined;
    try {
      const { pubsub, publisher } = await client();
      const request = { topic: pubsub.topic(about.topic).name, messages: batch.map(({ data }) => ({ data })) };
      await publisher.publish(request, { ...CALL }); // A copy, because `publish` changes its options.
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

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
    publish(data) {
      if (data.length > MOST.bytes) {
        return Promise.reject(new Error(`the encrypted webhook has ${data.length} bytes; Pub/Sub takes ${MOST.bytes}`));
      }
      if (bytes + data.length > MOST.bytes || gathered.length === MOST.messages) void send();
      bytes += data.length;
      timer ??= setTimeout(() => void send(), GATHER_MS);
      return new Promise((resolve, reject) => {
        gathered.push({ data, resolve, reject });
      });
    },
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
