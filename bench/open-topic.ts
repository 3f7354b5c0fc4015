import { PubSub } from '@google-cloud/pubsub';
import { startPubsub } from '../test/support/start-pubsub.ts';

export type Topic = {
  /** For `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** So many messages so far, repeats and all. */
  count(): number;
};

/** A Pub/Sub of its own, with one topic. */
export async function openTopic(projectId: string, topic: string): Promise<Topic> {
  // The last message is enough to count by: they are numbered.
  const pubsub = await startPubsub({ remember: 1_000 });
  const client = new PubSub({ projectId, apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic(topic);
  await client.close();
  return { host: pubsub.host, count: () => Number(pubsub.published(topic).at(-1)?.messageId ?? 0) };
}
