/**
 * Runs the Pub/Sub stand-in in a process of its own, so that its costs are not the service's. Its arguments are the
 * project and the topic; it answers every message with its host and the number of messages published.
 */
import { openTopic } from './open-topic.ts';

export type Published = {
  /** The value of `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** Messages so far, repeats included. */
  count: number;
};

const [projectId = '', name = ''] = process.argv.slice(2);
const topic = await openTopic(projectId, name);
process.on('message', () => {
  process.send?.({ host: topic.host, count: topic.count() } satisfies Published);
});
