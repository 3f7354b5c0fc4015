import type { Availability } from '../core/domain/availability.ts';
import type { PubsubConnection } from './pubsub-connection.ts';
import { eventTopic } from './event-topic.ts';

export const KITCHEN_EVENT_TYPE = 'expediter.kitchen.availability-changed.v1';
/** The `$id` of docs/kitchen-availability.schema.json. */
export const KITCHEN_SCHEMA = 'urn:expediter:kitchen-availability:v1';
export function kitchenTopic(
  connection: PubsubConnection,
  name: string,
): (availability: Availability) => Promise<unknown> {
  const publish = eventTopic(connection, name);
  return async (availability) =>
    publish({
      type: KITCHEN_EVENT_TYPE,
      schema: KITCHEN_SCHEMA,
      subject: availability.locationId,
      sequence: availability.sequence,
      // A repeat has the same time.
      time: new Date(availability.sequence).toISOString(),
      data: availability,
      attributes: {
        type: 'kitchenAvailabilityChanged',
        locationId: availability.locationId,
        state: availability.state,
      },
    });
}
