import { NotAuthentic } from '../../core/domain/errors.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { verifyHmac } from '../../core/domain/verify-hmac.ts';
import { eventOfFulfillment, eventOfOrder, activeFulfillments } from './read-status.ts';
import { AnyEvent, FulfillmentUpdated, OrderUpdated, type Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-square-hmacsha256-signature',
  settings: ['signatureKey'],
  urlSetting: 'notificationUrl',
  byConnect: true,
} satisfies WebhookAuth;

/** Both events name the order only by Square's id. @throws NotAuthentic, Poison */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) verify(webhook, settings);

  const json = parseJson(webhook.body, 'an object with type and data');
  const { type, created_at: sentAt } = readShape(AnyEvent, json);
  switch (type) {
    case 'order.fulfillment.updated': {
      const updated = readShape(FulfillmentUpdated, json).data.object.order_fulfillment_updated;
      if (updated.location_id !== settings.locationId) return [];
      const about = { providerOrderId: updated.order_id, occurredAt: updated.updated_at ?? sentAt };
      const changes = updated.fulfillment_update.filter((each) => each !== undefined);
      // If the state is the same as before, another field of the fulfillment changed.
      const moved = activeFulfillments(changes, ({ new_state }) => new_state).filter(
        ({ old_state, new_state }) => new_state !== old_state,
      );
      return moved.flatMap(({ new_state }) => eventOfFulfillment(new_state, about, settings));
    }
    case 'order.updated': {
      const updated = readShape(OrderUpdated, json).data.object.order_updated;
      if (updated.location_id !== settings.locationId) return [];
      return eventOfOrder(updated.state, {
        providerOrderId: updated.order_id,
        occurredAt: updated.updated_at ?? sentAt,
      });
    }
    default:
      return [];
  }
}

/**
 * Verifies the signature, which covers the subscription's URL: the URL in the settings, or the URL that was called.
 * While `connect` moves the subscription to a new token, Square signs for the new URL before the settings have this
 * URL, and a later repeat may be signed for the old URL. The key stays the same.
 */
function verify(webhook: Webhook, { signatureKey, notificationUrl }: Settings): void {
  if (signatureKey === undefined) {
    throw new NotAuthentic('signatureKey is missing: run expediter provider connect, which puts it into the settings', {
      cause: { code: 'key_unknown', setting: 'signatureKey' },
    });
  }
  // Without PUBLIC_URL, the called URL is only a path.
  const urls = [notificationUrl ?? webhook.url, webhook.url].filter((url) => URL.canParse(url));
  let refusal = new NotAuthentic('the URL that the signature covers is unknown: set notificationUrl or PUBLIC_URL', {
    cause: { code: 'signed_url_unknown', setting: 'notificationUrl' },
  });
  for (const url of new Set(urls)) {
    try {
      return verifyHmac(webhook, {
        header: webhookAuth.header,
        secret: signatureKey,
        signed: [url, webhook.body],
        encoding: 'base64',
      });
    } catch (error) {
      if (!(error instanceof NotAuthentic)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}
