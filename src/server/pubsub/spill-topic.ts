import type { Message, Subscription } from '@google-cloud/pubsub';
import type { SpillMessage } from '../../core/spill/drain-spill.ts';
import { loadPubsub } from './load-pubsub.ts';
import type { PubsubConnection } from '../plugins/pubsub.ts';

/** The time for a request: that of a webhook's answer, in case Postgres used none of it. No sender waits for longer. */
const CALL = { timeout: 1_400, retry: null };
/** Time for which messages are gathered into one request. */
const GATHER_MS = 3;
/** Messages and bytes of a request. Pub/Sub takes 1,000 and 10 MB, including its own overhead. */
const MOST = { messages: 500, bytes: 9_000_000 };

/** Unacknowledged messages and bytes held at a time. */
const HELD = { maxMessages: 1_000, maxBytes: 16 * 2 ** 20, allowExcessMessages: false };
/** Time for which acknowledgements are gathered. The library's default of 100 ms would make the drain wait for messages. */
const ACK_MS = 20;
/** Time for the last acknowledgements when the subscription is closed. */
const CLOSE_S = 2;
/** Time until a subscription that failed is read again. */
const AGAIN_MS = 5_000;

export type SpillTopic = {
  /** Resolves when Pub/Sub has acknowledged the message. @throws if it does not, or if the message is too large */
  publish(data: Buffer): Promise<void>;
  /** Reads the subscription until it is stopped. Then all unacknowledged messages return to Pub/Sub. */
  read(receive: (message: SpillMessage) => void): { stop(): Promise<void> };
};

type Waiting = { data: Buffer; resolve(): void; reject(error: unknown): void };

/** The name of the subscription that reads a spill topic. */
export const drainOf = (topic: string): string => `${topic}-drain`;

/** The topic that holds webhooks while Postgres is away, and the subscription that reads them. */
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
      await publisher.publish(request, { ...CALL }); // A copy, because it changes the options.
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
            // A subscription with an error has closed itself.
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
