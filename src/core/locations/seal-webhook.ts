import { z } from 'zod';
import { seal, unseal, type SettingsKeys } from './settings-key.ts';

/** What is stored of a webhook under SETTINGS_KEY. */
export const WebhookSecrets = z.object({
  /**
   * The request target, with which a replay verifies a dropped webhook again. Empty if it was verified when it came. (A
   * process of a version before 0.3 reads no text without one.)
   */
  target: z.string(),
  authorization: z.string().exactOptional(),
  cookie: z.string().exactOptional(),
  /** The headers beside these that are not stored in clear as they came. */
  headers: z.record(z.string(), z.string()).exactOptional(),
  /** The body in base64, if our own token is in it. */
  body: z.base64().exactOptional(),
});
export type WebhookSecrets = z.infer<typeof WebhookSecrets>;

/** A webhook's row. */
export type WebhookPlace = { locationId: string; webhookId: string };

export function sealWebhook(keys: SettingsKeys, place: WebhookPlace, secrets: WebhookSecrets): Promise<string> {
  return seal(keys, secrets, placeOfWebhook(place));
}

/** @throws as `unseal` does */
export async function unsealWebhook(keys: SettingsKeys, place: WebhookPlace, sealed: string): Promise<WebhookSecrets> {
  return WebhookSecrets.parse(await unseal(keys, sealed, placeOfWebhook(place)));
}

export function placeOfWebhook({ locationId, webhookId }: WebhookPlace): string {
  return `webhooks/${locationId}/${webhookId}`;
}
