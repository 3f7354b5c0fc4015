import { createHmac, randomUUID } from 'node:crypto';
import type { SignedWebhook, Ticket } from '../simulator.ts';
import { MERCHANT } from './square-oauth.ts';

export const FULFILLMENT_UID = 'VWJ1N9leLqjSDLvF2hvYjD';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * Eleven repeats within 24 hours of anything but 2xx within 10 s: https://developer.squareup.com/docs/webhooks/overview
 * (older versions of the page: hourly from the 32nd minute on).
 */
export const SQUARE_DELIVERY = {
  waits: [1, 2, 4, 8, 16, 32].map((minutes) => minutes * MINUTE).concat([1, 2, 4, 8, 8].map((hours) => hours * HOUR)),
  timeoutMs: 10_000,
  acknowledges: (status: number) => status >= 200 && status < 300,
};

export type SquareEvents = {
  /**
   * Makes Square's event for a status: a state of the fulfillment, a state of the order as in `order.updated CANCELED`,
   * or the name of another event.
   */
  describe(ticket: Ticket, nativeStatus: string): Record<string, unknown>;
  /** Signs an event: https://developer.squareup.com/docs/webhooks/step3validate */
  sign(webhookUrl: string, signatureKey: string, event: Record<string, unknown>): SignedWebhook;
};

/** Makes events. It remembers each fulfillment's state, since an event also has the previous one. */
export function squareEvents(locationId: string): SquareEvents {
  const states = new Map<Ticket, { now: string; before: string | undefined }>();

  function describe(ticket: Ticket, nativeStatus: string): Record<string, unknown> {
    const orderId = ticket.providerOrderId;
    const created_at = new Date().toISOString();
    const about = { order_id: orderId, location_id: locationId, version: 4, created_at, updated_at: created_at };
    const envelope = (type: string, id: string, data: object) => {
      return { merchant_id: MERCHANT, type, event_id: randomUUID(), created_at, data: { id, ...data } };
    };
    const ofOrder = (name: string, object: object) =>
      envelope(name, orderId, {
        type: name.replaceAll('.', '_'),
        object: { [name.replaceAll('.', '_')]: { ...about, ...object } },
      });

    const [name = '', orderState] = nativeStatus.split(' ');
    if (name === 'webhooks.test_notification') return envelope(name, randomUUID(), { type: 'webhooks' });
    if (name === 'order.created') return ofOrder(name, { state: 'OPEN' });
    if (name === 'order.updated') return ofOrder(name, { state: orderState ?? 'OPEN' });
    const fulfillment_uid = FULFILLMENT_UID;
    if (name === 'unchanged') {
      const state = states.get(ticket)?.now ?? 'PROPOSED';
      const fulfillment_update = [{ fulfillment_uid, old_state: state, new_state: state }];
      return ofOrder('order.fulfillment.updated', { state: 'OPEN', fulfillment_update });
    }
    const known = states.get(ticket) ?? { now: 'PROPOSED', before: undefined };
    const before = known.now === name ? known.before : known.now;
    states.set(ticket, { now: name, before });
    return ofOrder('order.fulfillment.updated', {
      state: 'OPEN',
      fulfillment_update: [{ fulfillment_uid, ...(before !== undefined && { old_state: before }), new_state: name }],
    });
  }

  function sign(webhookUrl: string, signatureKey: string, event: Record<string, unknown>): SignedWebhook {
    const body = Buffer.from(JSON.stringify(event));
    const signature = createHmac('sha256', signatureKey).update(webhookUrl).update(body).digest('base64');
    return {
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Square Connect v2',
        'square-environment': 'Production',
        'square-initial-delivery-timestamp': String(event['created_at']),
        'x-square-hmacsha256-signature': signature,
      },
      body,
    };
  }

  return { describe, sign };
}
