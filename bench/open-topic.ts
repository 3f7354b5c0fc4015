import { PubSub } from '@google-cloud/pubsub';
import { startPubsub } from '../test/support/start-pubsub.ts';

export type Topic = {
  /** The value of `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** Counts messages so far, repeats included. */
  count(): number;
};

/** Starts a Pub/Sub with one topic. */
export async function openTopic(projectId: string, topic: string): Promise<Topic> {
  // Messages are numbered, so the last one is enough to count them.
  const pubsub = await startPubsub({ remember: 1_000 });
  const client = new PubSub({ projectId, apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic(topic);
  await client.close();
  return { host: pubsub.host, count: () => Number(pubsub.published(topic).at(-1)?.messageId ?? 0) };
}
