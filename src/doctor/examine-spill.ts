import type { protos } from '@google-cloud/pubsub';
import { readConfigOf } from '../config.ts';
import { askPubsub, CALL, readPermissions, type Named } from './ask-pubsub.ts';
import { examineTopic } from './examine-topic.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed, skipped } = reporterOf('spill');
const TOPIC = 'SPILL_TOPIC';
const SUBSCRIPTION = 'SPILL_SUBSCRIPTION';
const CONSUME = 'pubsub.subscriptions.consume';
const GET = 'pubsub.subscriptions.get';

/** An outage of Postgres that outlasts it loses webhooks which were answered 200. */
const RETENTION_S = 7 * 86_400;
/** Less, and a busy process is sent again what it has; more, and what a dead one had waits. */
const ACK_DEADLINE_S = { least: 30, most: 300 };
/** Fewer are used up while Postgres comes and goes. gcloud's own default is 5, the most is 100. */
const ATTEMPTS = 50;

/** Checks the topic that webhooks are spilled to, and the subscription that brings them back. */
export async function examineSpill(env: NodeJS.ProcessEnv): Promise<Finding[]> {
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
    examineTopic({ part: 'spill', variable: TOPIC, project, name: topic }),
    examineSubscription({ part: 'spill', variable: SUBSCRIPTION, project, name: subscription }, topic),
  ]);
  return findings.flat();
}

async function examineSubscription(about: Named, topic: string): Promise<Finding[]> {
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
    const wrong = judge(made, about, topic);
    return wrong.length > 0 ? wrong : [ok(SUBSCRIPTION, `"${name}" brings back what "${topic}" takes`)];
  });
}

function judge(made: protos.google.pubsub.v1.ISubscription, { project, name }: Named, topic: string): Finding[] {
  const update = (flags: string): string => `gcloud pubsub subscriptions update ${name} --project ${project} ${flags}`;
  const anew = `make another one on "${topic}": this cannot be changed`;
  const wrong: Finding[] = [];
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
