import type { PubSub, Subscription, Topic, protos } from '@google-cloud/pubsub';
import { readConfigOf } from '../config/config.ts';
import { withTimeout } from '../core/domain/timing.ts';
import { loadPubsub } from '../pubsub/load-pubsub.ts';
import { drainOf } from '../pubsub/spill-topic.ts';
import { failed, ok, skipped, warning, type Check } from './check.ts';

const TOPIC = 'SPILL_TOPIC';
const SUBSCRIPTION = 'spill subscription';
const PUBLISH = 'pubsub.topics.publish';
const CONSUME = 'pubsub.subscriptions.consume';
const GET = 'pubsub.subscriptions.get';

/** Minimum retention of the subscription. If Postgres is away for longer, webhooks that were answered 200 are lost. */
const RETENTION_S = 7 * 86_400;
/** If the deadline is shorter, a busy process gets messages twice. If it is longer, messages of a dead process wait. */
const ACK_DEADLINE_S = { least: 30, most: 300 };
/** Minimum delivery attempts. A short outage of Postgres uses up fewer. The default of gcloud is 5, the maximum 100. */
const ATTEMPTS = 50;

/** A topic or a subscription. `variable` is the variable that configures it, and the name of its check. */
type Named = { variable: string; project: string; name: string };

const CALL = { timeout: 4_000, retry: null };
/** Total time limit. The client's own time-out starts only after it has found credentials and connected. */
const GIVE_UP_MS = 5_000;

const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/**
 * Queries Pub/Sub about one topic or subscription.
 * @param create the command that would create it
 * @returns the result of `ask`, or a failed check that says why Pub/Sub gave no answer
 */
async function askPubsub(about: Named, create: string, ask: (pubsub: PubSub) => Promise<Check[]>): Promise<Check[]> {
  const { PubSub } = await loadPubsub();
  const pubsub = new PubSub({ projectId: about.project });
  const asking = async (): Promise<Check[]> => {
    // This fails early without credentials. The call itself would print a stack to standard error.
    if (!pubsub.isEmulator) await pubsub.auth.getClient();
    return ask(pubsub);
  };
  try {
    return await withTimeout(GIVE_UP_MS, asking, () => new Error('no answer'));
  } catch (error) {
    return [explain(error as { code?: number; message?: string }, about, create)];
  } finally {
    pubsub.close().catch(() => {});
  }
}

/** @returns the given permissions, without those that we lack; undefined for an emulator, which has no permissions */
async function readPermissions(
  { iam }: Topic | Subscription,
  ...permissions: string[]
): Promise<Set<string> | undefined> {
  try {
    const [given] = await iam.testPermissions(permissions, CALL);
    return new Set(permissions.filter((each) => given[each] === true));
  } catch (error) {
    if ((error as { code?: number }).code === UNIMPLEMENTED) return undefined;
    throw error;
  }
}

function explain(
  { code, message = '' }: { code?: number; message?: string },
  { variable, project, name }: Named,
  create: string,
): Check {
  const where = `"${name}" in project "${project}"`;
  if (code === NOT_FOUND) return failed(variable, `there is no ${where}`, create);
  if (code === UNAUTHENTICATED || code === PERMISSION_DENIED || /credentials/i.test(message)) {
    const toDo =
      'run it as a service account (Workload Identity, or GOOGLE_APPLICATION_CREDENTIALS on your own machine)';
    return failed(variable, 'Google does not accept our credentials', toDo);
  }
  const what = code === undefined ? 'no answer' : code === UNAVAILABLE ? 'it cannot be reached' : `gRPC status ${code}`;
  return failed(variable, `${where}: ${what}`, 'check PUBSUB_EMULATOR_HOST (unset in production), DNS and the network');
}

/** Checks that a topic exists and that we may publish to it. It publishes nothing, because subscribers would get it. */
async function examineTopic(about: Named): Promise<Check[]> {
  const { variable, project, name } = about;
  return askPubsub(about, `gcloud pubsub topics create ${name} --project ${project}`, async (pubsub) => {
    const topic = pubsub.topic(name);
    const permissions = await readPermissions(topic, PUBLISH);
    if (permissions === undefined) {
      await topic.getMetadata(CALL);
      return [ok(variable, `"${name}" exists; an emulator checks no permissions`)];
    }
    if (permissions.has(PUBLISH)) return [ok(variable, `"${name}" exists, and we may publish to it`)];
    return [
      failed(
        variable,
        `we may not publish to "${name}", or it does not exist`,
        `gcloud pubsub topics add-iam-policy-binding ${name} --project ${project} --role roles/pubsub.publisher ` +
          '--member serviceAccount:<the service account of the service>',
      ),
    ];
  });
}

/** The variables with topics that the service publishes to. */
const PUBLISHED = ['STATUS_TOPIC', 'KITCHEN_TOPIC', 'ATTENTION_TOPIC'] as const;

/** Checks the topics for live messages and, if they are set, for the availability of kitchens and for attention events. */
export async function examineTopics(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const config = readConfigOf(env, 'GOOGLE_CLOUD_PROJECT', ...PUBLISHED, 'PUBSUB_EMULATOR_HOST');
  const { GOOGLE_CLOUD_PROJECT: project } = config;
  if (project === undefined) return [ok('GOOGLE_CLOUD_PROJECT', 'unset: nothing is published to topics')];
  const topics = PUBLISHED.map(async (variable) => {
    const name = config[variable];
    return name === undefined ? [] : examineTopic({ variable, project, name });
  });
  return (await Promise.all(topics)).flat();
}

/** Checks the topic for spilled webhooks, and the subscription that delivers them. */
export async function examineSpill(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const config = readConfigOf(env, 'GOOGLE_CLOUD_PROJECT', TOPIC, 'PUBSUB_EMULATOR_HOST');
  const { GOOGLE_CLOUD_PROJECT: project, SPILL_TOPIC: topic } = config;
  if (topic === undefined || project === undefined) {
    return [ok(TOPIC, 'unset: while Postgres is away, webhooks are answered 500')];
  }
  const findings = await Promise.all([
    examineTopic({ variable: TOPIC, project, name: topic }),
    examineSubscription({ variable: SUBSCRIPTION, project, name: drainOf(topic) }, topic),
  ]);
  return findings.flat();
}

async function examineSubscription(about: Named, topic: string): Promise<Check[]> {
  const { project, name } = about;
  const create =
    `gcloud pubsub subscriptions create ${name} --project ${project} --topic ${topic} --ack-deadline 60 ` +
    '--message-retention-duration 7d --expiration-period never';
  return askPubsub(about, create, async (pubsub) => {
    const subscription = pubsub.subscription(name);
    const permissions = await readPermissions(subscription, CONSUME, GET);
    if (permissions?.has(CONSUME) === false) {
      return [
        failed(
          SUBSCRIPTION,
          `we may not read "${name}", or it does not exist`,
          `gcloud pubsub subscriptions add-iam-policy-binding ${name} --project ${project} ` +
            '--role roles/pubsub.subscriber --member serviceAccount:<the service account of the service>',
        ),
      ];
    }
    if (permissions?.has(GET) === false) {
      return [
        skipped(
          SUBSCRIPTION,
          `we may read "${name}", but roles/pubsub.viewer is missing, so its settings were not checked`,
        ),
      ];
    }
    const [made] = await subscription.getMetadata(CALL);
    const wrong = judgeSubscription(made, about, topic);
    return wrong.length > 0 ? wrong : [ok(SUBSCRIPTION, `"${name}" delivers the messages of "${topic}"`)];
  });
}

function judgeSubscription(
  made: protos.google.pubsub.v1.ISubscription,
  { project, name }: Named,
  topic: string,
): Check[] {
  const update = (flags: string): string => `gcloud pubsub subscriptions update ${name} --project ${project} ${flags}`;
  const recreate = `create another subscription on "${topic}", because this setting cannot be changed`;
  const wrong: Check[] = [];
  if (made.topic !== `projects/${project}/topics/${topic}`) {
    wrong.push(failed(SUBSCRIPTION, `"${name}" belongs to ${made.topic}, so no spilled webhook comes back`, recreate));
  }
  if (made.filter) {
    wrong.push(
      failed(SUBSCRIPTION, `"${name}" has a filter, so messages that do not pass the filter are lost`, recreate),
    );
  }
  if (made.pushConfig?.pushEndpoint || made.bigqueryConfig || made.cloudStorageConfig || made.bigtableConfig) {
    wrong.push(
      failed(
        SUBSCRIPTION,
        `"${name}" pushes to an endpoint, so the service cannot pull its messages`,
        update('--push-endpoint='),
      ),
    );
  }
  const { ackDeadlineSeconds: deadline, messageRetentionDuration, deadLetterPolicy } = made;
  if (deadline && (deadline < ACK_DEADLINE_S.least || deadline > ACK_DEADLINE_S.most)) {
    const found = `its ack deadline is ${deadline} s, not from ${ACK_DEADLINE_S.least} to ${ACK_DEADLINE_S.most}`;
    wrong.push(warning(SUBSCRIPTION, found, update('--ack-deadline 60')));
  }
  const kept = Number(messageRetentionDuration?.seconds ?? RETENTION_S);
  if (kept < RETENTION_S) {
    const found = `it stores messages for ${kept} s: messages that wait longer for Postgres are lost`;
    wrong.push(warning(SUBSCRIPTION, found, update('--message-retention-duration 7d')));
  }
  const deadLetter = update('--dead-letter-topic <a topic with a subscription> --max-delivery-attempts 100');
  const attempts = deadLetterPolicy?.maxDeliveryAttempts ?? 0;
  if (!deadLetterPolicy?.deadLetterTopic) {
    const found =
      'it has no dead-letter topic: messages that cannot be decrypted are delivered again and again, and finally lost';
    wrong.push(warning(SUBSCRIPTION, found, deadLetter));
  } else if (attempts < ATTEMPTS) {
    const found = `messages go to the dead-letter topic after ${attempts} deliveries: short outages of Postgres may use them up`;
    wrong.push(warning(SUBSCRIPTION, found, deadLetter));
  }
  return wrong;
}
