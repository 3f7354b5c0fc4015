import type { StatusEvent } from '../../src/core/domain/order.ts';
import { uuidV7 } from '../../src/core/domain/uuid-v7.ts';
import type { TranslatedWebhook } from '../../src/core/domain/webhook.ts';

/** An event whose native status is its status, unless it says another. */
export type Said = Partial<StatusEvent> & Pick<StatusEvent, 'status'>;

/** A webhook of club-1, received now. @param about what differs */
export function translatedWebhook(events: readonly Said[], about: Partial<TranslatedWebhook> = {}): TranslatedWebhook {
  return {
    id: uuidV7(),
    locationId: 'club-1',
    integration: 'standard',
    receivedAt: new Date(),
    headers: {},
    body: Buffer.from('{}'),
    truncated: false,
    events: events.map((event) => ({ nativeStatus: event.status, ...event })),
    ...about,
  };
}
