import type { PubSub, Subscription, Topic, protos } from '@google-cloud/pubsub';
import { readConfigOf } from '../server/config.ts';
import { withTimeout } from '../core/domain/timing.ts';
import { loadPubsub } from '../server/pubsub/load-pubsub.ts';
import { failed, ok, skipped, warning, type Check } from './check.ts';

const TOPIC = 'SPILL_TOPIC';
const SUBSCRIPTION = 'SPILL_SUBSCRIPTION';
const PUBLISH = 'pubsub.topics.publish';
const CONSUME = 'pubsub.subscriptions.consume';
const GET = 'pubsub.subscriptions.get';

/** An outage of Postgres that outlasts it loses webhooks which were answered 200. */
const RETENTION_S = 7 * 86_400;
/** Less, and a busy process is sent again what it has; more, and what a dead one had waits. */
const ACK_DEADLINE_S = { least: 30, most: 300 };
/** Fewer are used up while Postgres comes and goes. gcloud's own default is 5, the most is 100. */
const ATTEMPTS = 50;

/** A topic or a subscription, as a variable names it. */
type Named = { variable: string; project: string; name: string };

/** Options of a call. */
const CALL = { timeout: 4_000, retry: null };
/** Time for all of it: the client searches for credentials and connects before its own time-out begins. */
const GIVE_UP_MS = 5_000;

const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/**
 * Asks Pub/Sub about one topic or subscription.
 * @param create the command that would make it
 * @returns what `ask` found, or why Pub/Sub gave no answer
 */
async function askPubsub(about: Named, create: string, ask: (pubsub: PubSub) => Promise<Check[]>): Promise<Check[]> {
  const { PubSub } = await loadPubsub();
  const pubsub = new PubSub({ projectId: about.project });
  const asking = async (): Promise<Check[]> => {
    // Without credentials the call itself would print a stack to standard error.
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

/** @returns those of the permissions that we have; undefined at an emulator, which has topics, but no permissions */
async function readPermissions({ iam }: Topic | Subscription, ...asked: string[]): Promise<Set<string> | undefined> {
  try {
    const [given] = await iam.testPermissions(asked, CALL);
    return new Set(asked.filter((each) => given[each] === true));
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
    return failed(variable, 'Google does not know who we are', toDo);
  }
  const what = code === undefined ? 'no answer' : code === UNAVAILABLE ? 'it cannot be reached' : `gRPC status ${code}`;
  return failed(
    variable,
    `${where}: ${what}`,
    'look at PUBSUB_EMULATOR_HOST (unset in production), DNS and the network',
  );
}

/** Checks that a topic exists and takes our messages. Publishes none: every subscriber would have to ignore it. */
export async function examineTopic(about: Named): Promise<Check[]> {
  const { variable, project, name } = about;
  return askPubsub(about, `gcloud pubsub topics create ${name} --project ${project}`, async (pubsub) => {
    const topic = pubsub.topic(name);
    const permissions = await readPermissions(topic, PUBLISH);
    if (permissions === undefined) {
      await topic.getMetadata(CALL);
      return [ok(variable, `"${name}" is there; an emulator asks for no permission`)];
    }
    if (permissions.has(PUBLISH)) return [ok(variable, `"${name}" is there, and we may publish to it`)];
    return [
      failed(
        variable,
        `we may not publish to "${name}", or it is not there`,
        `gcloud pubsub topics add-iam-policy-binding ${name} --project ${project} --role roles/pubsub.publisher ` +
          '--member serviceAccount:<the one this runs as>',
      ),
    ];
  });
}

/** Checks the topic that webhooks are spilled to, and the subscription that brings them back. */
export async function examineSpill(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const config = readConfigOf(env, 'GOOGLE_CLOUD_PROJECT', TOPIC, SUBSCRIPTION, 'PUBSUB_EMULATOR_HOST');
  const { GOOGLE_CLOUD_PROJECT: project, SPILL_TOPIC: topic, SPILL_SUBSCRIPTION: subscription } = config;
  if (topic === undefined && subscription === undefined) {
    return [ok(TOPIC, 'unset: while Postgres is away, webhooks are answered 500')];
  }
  if (topic === undefined || subscription === undefined) {
    const [set, unset] = topic === undefined ? [SUBSCRIPTION, TOPIC] : [TOPIC, SUBSCRIPTION];
    return [failed(unset, `it is unset, and ${set} is set`, 'set both, or neither')];
  }
  const findings = await Promise.all([
    examineTopic({ variable: TOPIC, project, name: topic }),
    examineSubscription({ variable: SUBSCRIPTION, project, name: subscription }, topic),
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
          `we may not read "${name}", or it is not there`,
          `gcloud pubsub subscriptions add-iam-policy-binding ${name} --project ${project} ` +
            '--role roles/pubsub.subscriber --member serviceAccount:<the one this runs as>',
        ),
      ];
    }
    if (permissions?.has(GET) === false) {
      return [skipped(SUBSCRIPTION, `we may read "${name}", but not how it is made, for want of roles/pubsub.viewer`)];
    }
    const [made] = await subscription.getMetadata(CALL);
    const wrong = judgeSubscription(made, about, topic);
    return wrong.length > 0 ? wrong : [ok(SUBSCRIPTION, `"${name}" brings back what "${topic}" takes`)];
  });
}

function judgeSubscription(
  made: protos.google.pubsub.v1.ISubscription,
  { project, name }: Named,
  topic: string,
): Check[] {
  const update = (flags: string): string => `gcloud pubsub subscriptions update ${name} --project ${project} ${flags}`;
  const anew = `make another one on "${topic}": this cannot be changed`;
  const wrong: Check[] = [];
  if (made.topic !== `projects/${project}/topics/${topic}`) {
    wrong.push(failed(SUBSCRIPTION, `"${name}" is of ${made.topic}, so nothing that is spilled comes back`, anew));
  }
  if (made.filter) {
    wrong.push(failed(SUBSCRIPTION, `"${name}" has a filter: what does not pass it is lost`, anew));
  }
  if (made.pushConfig?.pushEndpoint || made.bigqueryConfig || made.cloudStorageConfig || made.bigtableConfig) {
    wrong.push(failed(SUBSCRIPTION, `"${name}" delivers elsewhere by itself: we pull`, update('--push-endpoint=')));
  }
  const { ackDeadlineSeconds: deadline, messageRetentionDuration, deadLetterPolicy } = made;
  if (deadline && (deadline < ACK_DEADLINE_S.least || deadline > ACK_DEADLINE_S.most)) {
    const found = `its ack deadline is ${deadline} s, not from ${ACK_DEADLINE_S.least} to ${ACK_DEADLINE_S.most}`;
    wrong.push(warning(SUBSCRIPTION, found, update('--ack-deadline 60')));
  }
  const kept = Number(messageRetentionDuration?.seconds ?? RETENTION_S);
  if (kept < RETENTION_S) {
    const found = `it keeps messages for ${kept} s: what waits longer for Postgres is lost`;
    wrong.push(warning(SUBSCRIPTION, found, update('--message-retention-duration 7d')));
  }
  const deadLetter = update('--dead-letter-topic <a topic that a subscription keeps> --max-delivery-attempts 100');
  const attempts = deadLetterPolicy?.maxDeliveryAttempts ?? 0;
  if (!deadLetterPolicy?.deadLetterTopic) {
    const found = 'it has no dead letter: what no key opens comes again and again, and is lost in the end';
    wrong.push(warning(SUBSCRIPTION, found, deadLetter));
  } else if (attempts < ATTEMPTS) {
    const found = `what was delivered ${attempts} times goes to the dead letter: Postgres may come and go that often`;
    wrong.push(warning(SUBSCRIPTION, found, deadLetter));
  }
  return wrong;
}
