import { createHmac } from 'node:crypto';
import type { Status } from '../../../src/core/domain/lifecycle.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';
import { orderId, senderOf } from './seed-orders.ts';

/** A request as a POS of the `standard` integration posts it. */
export type SignedRequest = { path: string; headers: Record<string, string>; body: string };

/** The statuses through which a sent order moves. */
export const MOVES: readonly Status[] = ['received', 'in_progress', 'ready', 'en_route', 'completed'];

let signed = 0;

/**
 * Makes one webhook about the nth order, with its location's token and signature.
 * @param more fields of the order that replace the default ones
 * @param at milliseconds since 1970, by the clock of the service
 */
export function signRequest(
  senders: readonly Sender[],
  nth: number,
  status: string,
  more: object = {},
  at = Date.now(),
): SignedRequest {
  const { locationId, token, secret } = senderOf(senders, nth);
  signed += 1;
  const id = `msg_${signed.toString(36).padStart(24, '0')}`;
  const timestamp = String(Math.floor(at / 1_000));
  const order = {
    thirdPartyReference: orderId(nth),
    id: `pos-${nth}`,
    status,
    occurredAt: '2026-01-31T18:30:00Z',
    ...more,
  };
  const body = JSON.stringify({ eventType: 'order.status', order });
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    path: `/webhook/standard/${locationId}?token=${token}`,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'standard-pos/1.0',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  };
}
