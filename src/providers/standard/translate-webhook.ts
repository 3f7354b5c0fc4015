import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import { parseJson } from '../parse-json.ts';
import { secretsOf } from './payloads.ts';
import type { Settings } from './payloads.ts';
import { readEvent } from './read-event.ts';
import { verify } from './sign.ts';

/** Verifies the signature, where there is a secret, and reads the event. @throws NotAuthentic, Poison */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  const secrets = secretsOf(settings);
  if (secrets.length > 0 && !webhook.verified) verify(secrets, webhook);
  return readEvent(parseJson(webhook.body, 'an object with eventType and order'));
}
