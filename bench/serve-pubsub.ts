/**
 * The Pub/Sub stand-in in a process of its own, so that what it costs is not counted as the service's. Forked with the
 * project and the topic; answers every message with where it is and how much was published.
 */
import { openTopic } from './open-topic.ts';

export type Published = {
  /** For `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** So many messages so far, repeats and all. */
  count: number;
};

const [projectId = '', name = ''] = process.argv.slice(2);
const topic = await openTopic(projectId, name);
process.on('message', () => {
  process.send?.({ host: topic.host, count: topic.count() } satisfies Published);
});
