import type { PosContext } from '../../core/domain/provider.ts';
import { callPos, type PosAnswer } from '../call-pos.ts';
import { limitRate } from '../limit-rate.ts';
import { secretsOf, type Settings } from './payloads.ts';
import { sign } from './sign.ts';

/** The limits that the POS states by 429. */
const withinLimits = limitRate([]);

/**
 * Calls the POS about one order, signed by Standard Webhooks where there is a secret.
 * @param about the request's id, the same for each repeat: the order's, or made of it
 * @throws as `callPos` does
 */
export function callStandard(
  { settings, now, signal, fetch }: PosContext<Settings>,
  about: string,
  { url, body }: { url: string; body?: string },
): Promise<PosAnswer> {
  const id = headerSafe(about);
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const secrets = secretsOf(settings);
  const headers = {
    accept: 'application/json',
    // guard: pos-key
    ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': id }),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(secrets.length > 0 && { 'webhook-signature': sign(secrets, id, timestamp, body ?? '') }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  return withinLimits(settings.ordersUrl, now, () =>
    callPos({ method, url, headers, signal, fetch, ...(body !== undefined && { body }) }),
  );
}

/**
 * Percent-encodes an id that is not visible ASCII, since headers carry no other. `%` is encoded to keep ids distinct.
 */
function headerSafe(id: string): string {
  return /^[!-$&-~]+$/.test(id) ? id : encodeURIComponent(id);
}
