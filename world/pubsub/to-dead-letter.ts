import type { Message } from './queue-messages.ts';

/**
 * Makes the dead-letter topic's message, with the attributes of
 * https://cloud.google.com/pubsub/docs/dead-letter-topics
 *
 * @param subscription the full name: `projects/…/subscriptions/…`
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
