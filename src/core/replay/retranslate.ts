import { webhookPath } from '../domain/paths.ts';
import type { Pool } from 'pg';
import type { Refusal, StoredWebhook } from './stored-webhook.ts';
import { WrongLocation, findLocation, type DecryptSettings } from '../locations/locations.ts';
import { secretsOf } from '../locations/hide-secrets.ts';
import { toCauseText } from '../domain/cause-text.ts';
import { noteUnread } from '../domain/unread-fields.ts';
import type { Translated } from '../domain/webhook.ts';
import type { SettingsKeys, WebhookSecrets } from '../locations/settings-key.ts';
import { checkEvents, verifyAndTranslate } from '../statuses/translate-webhook-request.ts';

export type RetranslateDeps = {
  pool: Pool;
  decryptSettings: DecryptSettings;
  keys: SettingsKeys;
  /** The public base URL, without a trailing slash. Some vendors sign the URL that they call. */
  publicUrl: string;
};

/** `unread` are the fields of the body that were left out. */
export type Retranslated = Translated & { unread?: string[] };

/**
 * Translates a stored webhook again, without storing anything. A webhook that was dropped on arrival is stored with its
 * target and all headers. It is verified again as at its arrival. Any other webhook was verified on arrival and has
 * neither. It is not verified again, even if Postgres refused it or an earlier replay could not read it.
 * @param about.isChosen true if a person chose this webhook: then a right signature with a wrong time counts
 * @returns its translation by today's settings and code, or the refusal
 */
export async function retranslate(
  deps: RetranslateDeps,
  stored: StoredWebhook,
  { isChosen }: { isChosen: boolean },
): Promise<Retranslated | Refusal> {
  if (stored.truncated) {
    return {
      refused: 'only its beginning is stored: it was over WEBHOOK_BODY_LIMIT or the daily quota',
      cause: { code: 'only_beginning_stored' },
    };
  }
  if (stored.erased) {
    return { refused: 'its body was erased with the member data of its order', cause: { code: 'erased' } };
  }

  const location = await findLocation(deps.pool, stored.locationId);
  if (location === undefined) {
    return { refused: 'its location no longer exists', cause: { code: 'no_location' } };
  }
  const { integration } = location;
  if (integration !== stored.integration) {
    return {
      refused: `it arrived through "${stored.integration}", but its location now uses "${integration}"`,
      cause: { code: 'other_integration', integration: toCauseText(integration) },
    };
  }

  const opened = await orRefused(deps.decryptSettings(location));
  if ('refused' in opened) return opened;
  if (stored.locked !== undefined) return stored.locked;
  if (stored.polled) return { events: checkEvents(JSON.parse(stored.body.toString())) };

  const { target, headers, body: _body, hidden, ...credentials }: WebhookSecrets = stored.secrets ?? {};
  const webhook = {
    headers: { ...stored.headers, ...headers, ...credentials },
    body: stored.body,
    url: deps.publicUrl + (target ?? webhookPath(stored)),
    receivedAt: stored.firstReceivedAt,
  };
  const secrets = secretsOf(opened.provider, opened.settings, hidden);
  const { provider, settings } = opened;
  const translate = (verified: boolean): Retranslated => {
    const again = { ...webhook, verified };
    const { result, unread } = noteUnread(() => verifyAndTranslate(provider, settings, again, secrets));
    return { ...result, unread };
  };
  const translated = translate(target === undefined);
  const { cause } = translated.dropped ?? {};
  // A sender that repeats a webhook with its first headers is told apart from a copy by a person.
  // guard: chosen-by-a-person
  const isRight = isChosen && cause !== undefined && 'isRight' in cause;
  return isRight ? translate(true) : translated;
}

/** Makes a refusal of an error whose message operators may see, because it has at most a field name or a key id. */
async function orRefused<Value extends object>(work: Promise<Value>): Promise<Value | Refusal> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof WrongLocation) || error.cause === undefined) throw error;
    return { refused: error.message, cause: error.cause };
  }
}
