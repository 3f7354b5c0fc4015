import type { Message } from './queue-messages.ts';

/**
 * What Pub/Sub publishes to the dead-letter topic in place of a message that nobody takes. The attributes are those of
 * https://cloud.google.com/pubsub/docs/dead-letter-topics
 *
 * @param subscription in full: `projects/…/subscriptions/…`
 */
export function toDeadLetter(
  { data, attributes, orderingKey, publishTime }: Message,
  subscription: string,
  attempts: number,
): Pick<Message, 'data' | 'attributes' | 'orderingKey'> {
  const [, project = '', , name = ''] = subscription.split('/');
  return {
    data,
    orderingKey,
    attributes: {
      ...attributes,
      CloudPubSubDeadLetterSourceDeliveryCount: String(attempts),
      CloudPubSubDeadLetterSourceSubscription: name,
      CloudPubSubDeadLetterSourceSubscriptionProject: project,
      CloudPubSubDeadLetterSourceTopicPublishTime: publishTime.toISOString().replace('Z', '+00:00'),
    },
  };
}
