import { PubSub } from '@google-cloud/pubsub';
import { startPubsub } from '../../../world/pubsub/start-pubsub.ts';

export type Topic = {
  /** The value of `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** Counts all messages so far, with repeats. */
  count(): number;
  /** The milliseconds from the commit of each of the latest messages until it was published, after the first `count`. */
  lagsMs(count: number): number[];
};

/** Starts a stand-in for Pub/Sub with one topic. */
export async function openTopic(projectId: string, topic: string): Promise<Topic> {
  // Messages are numbered, so the last one is enough to count them.
  const pubsub = await startPubsub({ remember: 10_000 });
  const client = new PubSub({ projectId, apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic(topic);
  await client.close();
  return {
    host: pubsub.host,
    count: () => Number(pubsub.published(topic).at(-1)?.messageId ?? 0),
    lagsMs: (count) =>
      pubsub
        .published(topic)
        .flatMap(({ messageId, publishTime, attributes }) =>
          Number(messageId) > count ? [publishTime.getTime() - Date.parse(attributes['ce-time'] ?? '')] : [],
        ),
  };
}
