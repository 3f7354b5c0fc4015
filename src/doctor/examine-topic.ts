import { withTimeout } from '../core/domain/with-timeout.ts';
import type { PubSub } from '@google-cloud/pubsub';
import { readConfigOf } from '../config.ts';
import { loadPubsub } from '../load-pubsub.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, failed } = reporterOf('topic');
const CHECK = 'STATUS_TOPIC';
const PUBLISH = 'pubsub.topics.publish';
const CALL = { timeout: 4_000, retry: null };
/** Time for the check: the client searches for credentials and connects before its own time-out begins. */
const GIVE_UP_MS = 5_000;

const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** Checks that the topic exists and takes our messages. Publishes none: every subscriber would have to ignore it. */
export async function examineTopic(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const config = readConfigOf(env, 'GOOGLE_CLOUD_PROJECT', 'STATUS_TOPIC', 'PUBSUB_EMULATOR_HOST');
  const { PubSub } = await loadPubsub();
  const pubsub = new PubSub({ projectId: config.GOOGLE_CLOUD_PROJECT });
  try {
    const check = (): Promise<Finding> => examine(pubsub, config.GOOGLE_CLOUD_PROJECT, config.STATUS_TOPIC);
    return [await withTimeout(GIVE_UP_MS, check, () => new Error('no answer'))];
  } catch (error) {
    return [explain(error as { code?: number; message?: string }, config)];
  } finally {
    pubsub.close().catch(() => {});
  }
}

async function examine(pubsub: PubSub, project: string, name: string): Promise<Finding> {
  const topic = pubsub.topic(name);
  // Without credentials the call itself would print a stack to standard error.
  if (!pubsub.isEmulator) await pubsub.auth.getClient();
  try {
    const [permissions] = await topic.iam.testPermissions([PUBLISH], CALL);
    if (permissions[PUBLISH] === true) return ok(CHECK, `"${name}" is there, and we may publish to it`);
    return failed(
      CHECK,
      `we may not publish to "${name}", or it is not there`,
      `gcloud pubsub topics add-iam-policy-binding ${name} --project ${project} --role roles/pubsub.publisher ` +
        '--member serviceAccount:<the one this runs as>',
    );
  } catch (error) {
    // An emulator has topics, but no permissions.
    if ((error as { code?: number }).code !== UNIMPLEMENTED) throw error;
    await topic.getMetadata(CALL);
    return ok(CHECK, `"${name}" is there; an emulator asks for no permission`);
  }
}

function explain(
  { code, message = '' }: { code?: number; message?: string },
  { GOOGLE_CLOUD_PROJECT: project, STATUS_TOPIC: name }: { GOOGLE_CLOUD_PROJECT: string; STATUS_TOPIC: string },
): Finding {
  const where = `"${name}" in project "${project}"`;
  if (code === NOT_FOUND) {
    return failed(CHECK, `there is no ${where}`, `gcloud pubsub topics create ${name} --project ${project}`);
  }
  if (code === UNAUTHENTICATED || code === PERMISSION_DENIED || /credentials/i.test(message)) {
    const toDo =
      'run it as a service account (Workload Identity, or GOOGLE_APPLICATION_CREDENTIALS on your own machine)';
    return failed(CHECK, 'Google does not know who we are', toDo);
  }
  const what = code === undefined ? 'no answer' : code === UNAVAILABLE ? 'it cannot be reached' : `gRPC status ${code}`;
  return failed(CHECK, `${where}: ${what}`, 'look at PUBSUB_EMULATOR_HOST (unset in production), DNS and the network');
}
