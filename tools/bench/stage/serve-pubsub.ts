/**
 * Runs the Pub/Sub stand-in in its own process, so that its work does not count as the service's. The arguments are the
 * project and the topic. Every message is answered with the host and the number of published messages.
 */
import { openTopic } from './open-topic.ts';

export type Published = {
  /** The value of `PUBSUB_EMULATOR_HOST`. */
  host: string;
  /** The number of messages so far, with repeats. */
  count: number;
};

const [projectId = '', name = ''] = process.argv.slice(2);
const topic = await openTopic(projectId, name);
process.on('message', () => {
  process.send?.({ host: topic.host, count: topic.count() } satisfies Published);
});
