import { askPubsub, CALL, readPermissions, type Named } from './ask-pubsub.ts';
import { reporterOf, type Finding } from './finding.ts';

const PUBLISH = 'pubsub.topics.publish';

/** Checks that a topic exists and takes our messages. Publishes none: every subscriber would have to ignore it. */
export async function examineTopic(about: Named): Promise<Finding[]> {
  const { part, variable, project, name } = about;
  const { ok, failed } = reporterOf(part);
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
