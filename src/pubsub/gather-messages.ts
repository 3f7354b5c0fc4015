import type { PubsubConnection } from './pubsub-connection.ts';

type Waiting = { data: Buffer; resolve(): void; reject(error: unknown): void };

/** The status code of gRPC for a request whose content is refused. */
const INVALID_ARGUMENT = 3;
/** Maximum messages and bytes of a request. Pub/Sub's limits are 1,000 and 10 MB, including its own overhead. */
const MOST = { messages: 500, bytes: 9_000_000 };

/**
 * Makes a function that publishes messages without an ordering key. It collects them for `gatherMs` and sends them in
 * one request, because a request costs more than its messages. If Pub/Sub refuses the content of a request, each message
 * is sent alone, so that one message stops no other.
 * @param about.timeoutMs of a request. There are no retries, because callers retry
 * @returns a function that publishes a message, and resolves when the topic has acknowledged it
 */
export function gatherMessages(
  { client }: PubsubConnection,
  about: { topic: string; gatherMs: number; timeoutMs: number },
): (data: Buffer) => Promise<void> {
  let gathered: Waiting[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;

  const send = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const { pubsub, publisher } = await client();
      const request = { topic: pubsub.topic(about.topic).name, messages: batch.map(({ data }) => ({ data })) };
      await publisher.publish(request, { timeout: about.timeoutMs, retry: null });
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (batch.length > 1 && (error as { code?: unknown }).code === INVALID_ARGUMENT) {
        for (const each of batch) void send([each]);
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  };

  const sendGathered = (): void => {
    const batch = gathered;
    gathered = [];
    bytes = 0;
    clearTimeout(timer);
    timer = undefined;
    void send(batch);
  };

  return (data) => {
    const { length } = data;
    if (length > MOST.bytes) {
      return Promise.reject(new Error(`the message has ${length} bytes; Pub/Sub takes ${MOST.bytes}`));
    }
    if (bytes + length > MOST.bytes || gathered.length === MOST.messages) sendGathered();
    bytes += length;
    timer ??= setTimeout(sendGathered, about.gatherMs);
    return new Promise((resolve, reject) => {
      gathered.push({ data, resolve, reject });
    });
  };
}
